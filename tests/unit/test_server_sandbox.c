/* SPDX-License-Identifier: MIT */
/* Requests about sandboxes: their encoding, which is cut off and changed at every byte, and the
 * bodies of HTTP requests, at their limits and one past them. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/api/sandbox_request.h"
#include "server/sandbox.h"
#include "tap.h"

#define UUID "f47ac10b-58cc-4372-a567-0e02b2c3d479"

static struct execution_pair pairs[] = {{"A", "1"}, {"B", ""}};
static const char *texts[] = {"one", "", "three", NULL};

static struct sandbox_request new_request(void)
{
    return (struct sandbox_request){.operation = SANDBOX_START,
                                    .request_id = "r",
                                    .client = "c",
                                    .domain = "d",
                                    .id = UUID,
                                    .command = 7,
                                    .name = "n",
                                    .timeout_ms = 5,
                                    .limits = {1, 2, 3, 4},
                                    .env = pairs,
                                    .env_count = 2,
                                    .metadata = pairs,
                                    .metadata_count = 1,
                                    .args = texts,
                                    .arg_count = 3,
                                    .bytes = {"a\0b", 3},
                                    .keep_input = true,
                                    .rows = 24,
                                    .wait = SANDBOX_FOLLOW,
                                    .path = "/x",
                                    .depth = 64,
                                    .mode = 0777};
}

static void test_request(void)
{
    autostr struct str bytes = {0};
    struct sandbox_request request = new_request(), read;
    tap_is_int(sandbox_request_encode(&request, &bytes, NULL), 0, "a request is encoded");
    tap_is_int(sandbox_request_decode(bytes.data, bytes.length, &read, NULL), 0, "and decoded");
    tap_is_str(read.id, UUID, "with its id");
    tap_ok(read.arg_count == 3 && strcmp(read.args[2], "three") == 0 && !read.args[3],
           "its arguments, ended by NULL");
    tap_ok(read.bytes.length == 3 && memcmp(read.bytes.data, "a\0b", 3) == 0, "its bytes");
    tap_ok(!read.cwd && !read.target && strcmp(read.path, "/x") == 0, "what is absent is absent");
    tap_is_int((int)read.env_count, 2, "its variables");
    sandbox_request_done(&read);
    size_t refused = 0;
    for (size_t length = 0; length < bytes.length; length++)
        refused += sandbox_request_decode(bytes.data, length, &read, NULL) < 0;
    tap_is_int((int)refused, (int)bytes.length, "one that is cut off anywhere is refused");
    for (size_t i = 0; i < bytes.length; i++) { /* must not crash */
        bytes.data[i] ^= 0x41;
        if (sandbox_request_decode(bytes.data, bytes.length, &read, NULL) == 0)
            sandbox_request_done(&read);
        bytes.data[i] ^= 0x41;
    }
    request.id = "";
    bytes.length = 0;
    (void)sandbox_request_encode(&request, &bytes, NULL);
    tap_ok(sandbox_request_decode(bytes.data, bytes.length, &read, NULL) < 0,
           "a command needs the id of a sandbox");
    request.operation = SANDBOX_CREATE;
    bytes.length = 0;
    (void)sandbox_request_encode(&request, &bytes, NULL);
    tap_is_int(sandbox_request_decode(bytes.data, bytes.length, &read, NULL), 0,
               "its creation does not");
    sandbox_request_done(&read);
}

static void test_answer(void)
{
    autostr struct str bytes = {0};
    struct sandbox_info info = {.id = UUID,
                                .name = "",
                                .language = "bash",
                                .state = SANDBOX_PAUSED,
                                .metadata = pairs,
                                .metadata_count = 2,
                                .allow = texts,
                                .allow_count = 1,
                                .pids = 3};
    struct sandbox_command command = {
        .number = 9, .id = UUID, .args = texts, .arg_count = 3, .result = {"r", 1}};
    struct sandbox_entry entry = {.path = "a", .target = "b", .kind = SANDBOX_LINK, .mode = 07777};
    struct sandbox_context context = {.number = 3, .language = "python", .count = 8};
    struct sandbox_answer answer = {.fault = SANDBOX_CONFLICT,
                                    .field = "f",
                                    .message = "m",
                                    .sandboxes = &info,
                                    .sandbox_count = 1,
                                    .commands = &command,
                                    .command_count = 1,
                                    .entries = &entry,
                                    .entry_count = 1,
                                    .bytes = {"x", 1},
                                    .file_size = 5,
                                    .contexts = &context,
                                    .context_count = 1};
    struct sandbox_answer read;
    (void)sandbox_answer_encode(&answer, &bytes, NULL);
    tap_is_int(sandbox_answer_decode(bytes.data, bytes.length, &read, NULL), 0,
               "an answer is decoded");
    tap_ok(read.fault == SANDBOX_CONFLICT && strcmp(read.message, "m") == 0, "with its fault");
    tap_ok(read.sandbox_count == 1 && read.sandboxes[0].state == SANDBOX_PAUSED &&
               read.sandboxes[0].pids == 3,
           "its sandboxes");
    tap_ok(read.command_count == 1 && read.commands[0].number == 9, "its commands");
    tap_ok(read.entry_count == 1 && strcmp(read.entries[0].target, "b") == 0, "its entries");
    tap_ok(read.context_count == 1 && read.contexts[0].count == 8 && !read.contexts[0].cwd,
           "its contexts");
    sandbox_answer_done(&read);
    size_t refused = 0;
    for (size_t length = 0; length < bytes.length; length++)
        refused += sandbox_answer_decode(bytes.data, length, &read, NULL) < 0;
    tap_is_int((int)refused, (int)bytes.length, "one that is cut off anywhere is refused");
}

/* ---- bodies ---- */

static struct request_fault fault;
static struct sandbox_request parsed;

static bool parse(enum sandbox_operation operation, const char *body)
{
    sandbox_request_done(&parsed);
    parsed = (struct sandbox_request){.operation = operation, .wait = SANDBOX_UNTIL_END};
    return sandbox_request_read(body, strlen(body), &parsed, &fault);
}

static void is_refused(enum sandbox_operation operation, const char *body, enum http_error error,
                       const char *field)
{
    tap_ok(!parse(operation, body) && fault.error == error && strcmp(fault.field, field) == 0,
           "refused: %s (%s: %s)", body, fault.field, fault.message);
}

/* People guess names of fields, and types: the message says what is right. */
static void test_advice(void)
{
    static const struct {
        const char *body, *advice;
    } cases[] = {
        {"{\"command\": \"ls\"}", "Did you mean 'cmd'?"},
        {"{\"timeuot\": 5}", "Did you mean 'timeout'?"},
        {"{\"limits\": {\"memory\": 8}}", "Did you mean 'limits.memory_mb'?"},
        {"{\"templateID\": \"base\"}", "add /e2b to E2B_API_URL"},
        {"{\"shell\": true}", "allowed are timeout, env,"},
        {"{\"cmd\": [\"ls\"]}", "an array is sent as argv"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        tap_ok(!parse(SANDBOX_START, cases[i].body) && strstr(fault.message, cases[i].advice),
               "%s: %s", cases[i].body, fault.message);
}

static void test_bodies(void)
{
    tap_ok(parse(SANDBOX_CREATE, "{}"), "a sandbox needs nothing");
    tap_ok(parse(SANDBOX_CREATE, "{\"runtime\": \"python\", \"timeout\": 90, \"allow\": [\"a.b\"], "
                                 "\"limits\": {\"memory_mb\": 64}, \"metadata\": {\"x\": \"y\"}}"),
           "and may say a lot");
    tap_ok(parsed.network && parsed.timeout_ms == 90000 && parsed.limits[0] == 64 &&
               strcmp(parsed.language, "python") == 0,
           "which is read");
    tap_ok(parse(SANDBOX_START, "{\"cmd\": \"ls\", \"background\": true, \"pty\": null}"),
           "null is as good as nothing");
    tap_ok(parsed.arg_count == 3 && strcmp(parsed.args[2], "ls") == 0 &&
               parsed.wait == SANDBOX_AT_ONCE,
           "a line is for a shell");
    tap_ok(parse(SANDBOX_SIGNAL, "{\"signal\": \"SIGKILL\"}") && parsed.signal == 9, "a signal");
    tap_ok(parse(SANDBOX_SIGNAL, "{\"signal\": 64}") && parsed.signal == 64, "as a number");
    tap_ok(parse(SANDBOX_INPUT, "{\"data\": {\"content\": \"AP8=\", \"encoding\": \"base64\"}}") &&
               parsed.bytes.length == 2,
           "input in base64");
    is_refused(SANDBOX_CREATE, "[]", ERROR_INVALID_JSON, "");
    is_refused(SANDBOX_CREATE, "", ERROR_INVALID_JSON, "");
    tap_ok(strstr(fault.message, "no body"), "a missing body is named");
    is_refused(SANDBOX_CREATE, "{", ERROR_INVALID_JSON, "");
    is_refused(SANDBOX_CREATE, "{\"limits\": 5}", ERROR_INVALID_FIELD, "limits");
    is_refused(SANDBOX_CREATE, "{\"cmd\": \"x\"}", ERROR_UNKNOWN_FIELD, "cmd");
    is_refused(SANDBOX_CREATE, "{\"limits.memory_mb\": 8}", ERROR_UNKNOWN_FIELD,
               "limits.memory_mb");
    is_refused(SANDBOX_CREATE, "{\"timeout\": -1}", ERROR_INVALID_FIELD, "timeout");
    is_refused(SANDBOX_CREATE, "{\"name\": \"a\\u0000b\"}", ERROR_INVALID_FIELD, "name");
    is_refused(SANDBOX_START, "{\"argv\": [1]}", ERROR_INVALID_FIELD, "argv");
    is_refused(SANDBOX_START, "{}", ERROR_MISSING_FIELD, "cmd");
    is_refused(SANDBOX_SIGNAL, "{\"signal\": 65}", ERROR_INVALID_FIELD, "signal");
    is_refused(SANDBOX_RESIZE, "{\"rows\": 10001}", ERROR_INVALID_FIELD, "rows");
    is_refused(SANDBOX_MOVE, "{\"from\": \"a\"}", ERROR_MISSING_FIELD, "to");
    tap_ok(parse(SANDBOX_RESIZE, "{\"rows\": 10000, \"cols\": 1}"), "10000 rows are possible");
    sandbox_request_done(&parsed);
}

static void test_paths(void)
{
    static const char *const cases[][2] = {
        {"a", "a"},  {"./a", "a"},           {"a//b", "a/b"},      {"a/./b/.", "a/b"},
        {"/", "/"},  {"//a///b//", "/a/b"},  {"/./", "/"},         {".", "."},
        {"./", "."}, {"../a/..", "../a/.."}, {".a/..b", ".a/..b"}, {"a/", "a"},
    };
    char tidy[SANDBOX_PATH_MAX + 1], longest[SANDBOX_PATH_MAX + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        sandbox_tidy_path(cases[i][0], tidy);
        tap_is_str(tidy, cases[i][1], "the path %s", cases[i][0]);
    }
    memset(longest, 'x', SANDBOX_PATH_MAX);
    longest[SANDBOX_PATH_MAX] = '\0';
    sandbox_tidy_path(longest, tidy);
    tap_ok(strcmp(tidy, longest) == 0, "the longest path stays");
    longest[1] = '/';
    sandbox_tidy_path(longest, tidy);
    tap_ok(strcmp(tidy, longest) == 0, "also with a slash");
}

int main(void)
{
    test_paths();
    test_request();
    test_answer();
    test_bodies();
    test_advice();
    return tap_done();
}
