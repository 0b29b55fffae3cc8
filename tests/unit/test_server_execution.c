/* SPDX-License-Identifier: MIT */
/* Executions as bytes: what goes in comes out, and nothing else does. */
#include "server/execution.h"

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "tap.h"

#define ID "f47ac10b-58cc-4372-a567-0e02b2c3d479"

static struct execution_bytes bytes_of(const char *text)
{
    return (struct execution_bytes){.data = text, .length = strlen(text)};
}

static const char *const words[] = {"one", "", "three with a\nnewline"};
static struct execution_pair pairs[] = {{"A", "1"}, {"B", ""}};
static struct execution_event events[] = {{"escape_attempt", "ptrace", SEVERITY_HIGH}};
static struct execution_file files[] = {{"a/b.txt", {"x\0y", 3}, false}, {"c", {"", 0}, true}};

static struct execution_request new_request(void)
{
    return (struct execution_request){
        .id = ID,
        .request_id = "r-1",
        .client = "127.0.0.1",
        .domain = "",
        .language = "python",
        .code = {"print('\0')", 10},
        .stdin_bytes = bytes_of("in"),
        .args = (const char **)(uintptr_t)words,
        .arg_count = ARRAY_LENGTH(words),
        .env = pairs,
        .env_count = ARRAY_LENGTH(pairs),
        .files = files,
        .file_count = ARRAY_LENGTH(files),
        .returns = (const char **)(uintptr_t)words,
        .return_count = 1,
        .allow = (const char **)(uintptr_t)words,
        .allow_count = 1,
        .network = true,
        .work_dir = "/srv/x",
        .timeout_ms = 10000,
        .limits = {1, 2, 3, 4},
        .events = events,
        .event_count = 1,
        .cpu_ms = 5,
        .output_bytes = 6,
        .compile = {7, 8, 9, 10},
        .compile_args = (const char **)(uintptr_t)words,
        .compile_arg_count = 2,
        .main = "own.py",
        .ordered = true,
        .interactive = true,
    };
}

static struct execution_piece order[] = {{false, 2}, {true, 1}, {false, 1}};

static struct execution_result new_result(void)
{
    static struct execution_result compile = {.status = EXECUTION_OK,
                                              .output = {"", 0},
                                              .error_output = {"w", 1},
                                              .ordered = true,
                                              .stage = STAGE_COMPILE};
    return (struct execution_result){
        .id = ID,
        .status = EXECUTION_TIMEOUT,
        .exit_code = -1,
        .signal = 9,
        .output = {"\xff\0z", 3},
        .error_output = bytes_of("oh"),
        .output_truncated = true,
        .duration_us = 5,
        .cpu_time_us = 6,
        .memory_peak_bytes = (uint64_t)1 << 40,
        .pids_used = 8,
        .events = events,
        .event_count = 1,
        .files = files,
        .file_count = 2,
        .message = "too long",
        .unenforced = (const char **)(uintptr_t)words,
        .unenforced_count = 3,
        .started_ns = 1234567890123456789,
        .compile = &compile,
        .ordered = true,
        .order = order,
        .order_count = ARRAY_LENGTH(order),
    };
}

static bool same_bytes(struct execution_bytes a, struct execution_bytes b)
{
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0 && b.data[b.length] == 0;
}

static void test_request(void)
{
    struct execution_request request = new_request(), got = {0};
    autostr struct str packed = {0}, again = {0};
    tap_is_int(execution_request_encode(&request, &packed, NULL), 0, "a request becomes bytes");
    tap_is_int(execution_request_decode(packed.data, packed.length, &got, NULL), 0,
               "and a request again");
    tap_ok(same_bytes(request.code, got.code) && same_bytes(files[0].content, got.files[0].content),
           "with what has a NUL in it");
    tap_is_str(got.args[2], words[2], "with its arguments");
    tap_is_str(got.work_dir, "/srv/x", "with its directory");
    tap_is_int(execution_request_encode(&got, &again, NULL), 0, "once more");
    tap_ok(again.length == packed.length && memcmp(again.data, packed.data, packed.length) == 0,
           "it gives the very same bytes");
    execution_request_done(&got);
    unsigned accepted = 0;
    for (size_t length = 0; length < packed.length; length++)
        if (execution_request_decode(packed.data, length, &got, NULL) == 0) {
            accepted++;
            execution_request_done(&got);
        }
    tap_is_int(accepted, 0, "no part of it is a request");
    str_append_char(&packed, 0);
    tap_is_int(execution_request_decode(packed.data, packed.length, &got, NULL), BRIG_E_INVALID,
               "nor is it with a byte behind it");
}

static int pass(const struct execution_request *request)
{
    struct execution_request got = {0};
    autostr struct str packed = {0};
    int result = execution_request_encode(request, &packed, NULL);
    if (result == 0)
        result = execution_request_decode(packed.data, packed.length, &got, NULL);
    execution_request_done(&got);
    return result;
}

static void test_request_limits(void)
{
    struct execution_request request = new_request();
    autofree char *code = calloc(1, EXECUTION_CODE_MAX + 2);
    autofree const char **many = calloc(EXECUTION_ARGS_MAX + 1, sizeof *many);
    request.code = (struct execution_bytes){code, EXECUTION_CODE_MAX};
    tap_is_int(pass(&request), 0, "code of a megabyte passes");
    request.code.length++;
    tap_is_int(pass(&request), BRIG_E_INVALID, "a byte more does not");
    request = new_request();
    for (size_t i = 0; i <= EXECUTION_ARGS_MAX; i++)
        many[i] = "x";
    request.args = many;
    request.arg_count = EXECUTION_ARGS_MAX;
    tap_is_int(pass(&request), 0, "as many arguments as may be pass");
    request.arg_count++;
    tap_is_int(pass(&request), BRIG_E_INVALID, "one more does not");
    request = new_request();
    request.id = "../../../../../../../../../../etc/x";
    tap_is_int(pass(&request), BRIG_E_INVALID, "an id that is none is refused");
    request = new_request();
    struct execution_file outside = {"../x", {"", 0}, false};
    request.files = &outside;
    request.file_count = 1;
    tap_is_int(pass(&request), BRIG_E_INVALID, "a file that would lie outside is refused");
    request = new_request();
    request.language = NULL;
    tap_is_int(pass(&request), BRIG_E_INVALID, "one without a language is refused");
    request = new_request();
    request.work_dir = NULL;
    tap_is_int(pass(&request), 0, "one without a directory passes");
}

static void test_result(void)
{
    struct execution_result result = new_result(), got = {0};
    autostr struct str packed = {0};
    tap_is_int(execution_result_encode(&result, &packed, NULL), 0, "a result becomes bytes");
    tap_is_int(execution_result_decode(packed.data, packed.length, &got, NULL), 0,
               "and a result again");
    tap_ok(got.status == EXECUTION_TIMEOUT && got.exit_code == -1 && got.signal == 9,
           "as it ended");
    tap_ok(same_bytes(result.output, got.output) && got.output_truncated, "with its output");
    tap_ok(got.started_ns == result.started_ns && got.memory_peak_bytes == (uint64_t)1 << 40,
           "with its numbers");
    tap_ok(got.files[1].truncated && !got.files[0].truncated, "with its files");
    execution_result_done(&got);
    unsigned accepted = 0;
    for (size_t length = 0; length < packed.length; length++)
        if (execution_result_decode(packed.data, length, &got, NULL) == 0) {
            accepted++;
            execution_result_done(&got);
        }
    tap_is_int(accepted, 0, "no part of it is a result");
    struct execution_request request;
    tap_is_int(execution_request_decode(packed.data, packed.length, &request, NULL), BRIG_E_INVALID,
               "a result is no request");
}

static void test_stages(void)
{
    struct execution_request request = new_request();
    struct execution_result result = new_result(), got = {0};
    autostr struct str packed = {0}, text = {0}, rest = {0};
    request.main = "../own.py";
    tap_is_int(pass(&request), BRIG_E_INVALID, "the code's file is below /workspace");
    tap_is_int(execution_result_encode(&result, &packed, NULL), 0, "a result with two stages");
    tap_is_int(execution_result_decode(packed.data, packed.length, &got, NULL), 0, "can be read");
    tap_ok(got.compile && same_bytes(got.compile->error_output, result.compile->error_output),
           "with the first");
    execution_interleave(&got, &text);
    tap_ok(text.length == 5 && memcmp(text.data, "\xff\0ozh", 5) == 0,
           "output is put in order; what no piece covers comes last");
    execution_result_done(&got);
    result.order = (struct execution_piece[]){{true, 100}, {true, 100}, {false, 100}};
    execution_interleave(&result, &rest);
    tap_ok(rest.length == 5 && memcmp(rest.data, "oh\xff\0z", 5) == 0,
           "pieces longer than the output are cut");
}

static void test_words(void)
{
    char id[EXECUTION_ID_LENGTH + 1], other[EXECUTION_ID_LENGTH + 1];
    execution_id_make(id);
    execution_id_make(other);
    tap_ok(execution_id_is_valid(id) && id[14] == '4', "an id that was made is one");
    tap_ok(strcmp(id, other) != 0, "and no other");
    tap_ok(!execution_id_is_valid("f47ac10b-58cc-4372-a567-0e02b2c3d47"), "a short one is none");
    tap_ok(!execution_id_is_valid("f47ac10b058cc-4372-a567-0e02b2c3d479"), "nor without a dash");
    tap_ok(!execution_id_is_valid("g47ac10b-58cc-4372-a567-0e02b2c3d479"), "nor with a g");
    static const char *const good[] = {"a",     "a/b", ".x",
                                       "a/..b", "...", "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"};
    static const char *const bad[] = {"",       "/a",  "a/",
                                      "a//b",   ".",   "..",
                                      "a/../b", "a/.", "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"};
    for (size_t i = 0; i < ARRAY_LENGTH(good); i++)
        tap_ok(execution_file_name_is_valid(good[i]), "'%s' may be a file's name", good[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        tap_ok(!execution_file_name_is_valid(bad[i]), "'%s' may not", bad[i]);
    for (int i = 0; i < EXECUTION_STATUSES_; i++) {
        const char *name = execution_status_name((enum execution_status)i);
        tap_is_int(execution_status_from_name(name), i, "'%s' is known", name);
    }
    tap_is_int(execution_status_from_name("fine"), EXECUTION_STATUSES_, "'fine' is not");
}

int main(void)
{
    test_request();
    test_request_limits();
    test_result();
    test_stages();
    test_words();
    return tap_done();
}
