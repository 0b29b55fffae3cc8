/* SPDX-License-Identifier: MIT */
/* The lines of interpreters in sandboxes: those the executor reads and writes, and what the http
 * process takes from them. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/api/e2b.h"
#include "server/api/e2b_request.h"
#include "server/api/run_line.h"
#include "server/execution.h"
#include "server/executor/interpreter_line.h"
#include "tap.h"

static bool reads(const char *text, struct interpreter_line *line)
{
    *line = (struct interpreter_line){0};
    return interpreter_line_read(text, strlen(text), line);
}

static void check_good_lines(void)
{
    static const struct {
        const char *text;
        enum interpreter_word word;
        uint64_t run;
        const char *name;
    } rows[] = {
        {"{\"type\":\"ready\"}", INTERPRETER_READY, 0, ""},
        {"{\"type\":\"begun\",\"run\":1}", INTERPRETER_BEGUN, 1, ""},
        {"{\"type\":\"done\",\"run\":18446744073709551600}", INTERPRETER_DONE,
         UINT64_C(18446744073709551600), ""},
        {"{\"type\":\"result\",\"run\":7,\"main\":true}", INTERPRETER_RESULT, 7, ""},
        {"{\"type\":\"error\",\"run\":7,\"name\":\"ValueError\",\"value\":\"\"}", INTERPRETER_ERROR,
         7, "ValueError"},
        {"{\"type\":\"error\",\"run\":7,\"name\":\"a b\"}", INTERPRETER_ERROR, 7, ""},
        {"{\"type\":\"error\",\"run\":7,\"name\":\"end}", INTERPRETER_ERROR, 7, ""},
        {"{\"type\":\"error\",\"run\":7,\"value\":\"x\"}", INTERPRETER_ERROR, 7, ""},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct interpreter_line line;
        tap_ok(reads(rows[i].text, &line) && line.word == rows[i].word && line.run == rows[i].run &&
                   strcmp(line.name, rows[i].name) == 0,
               "read: %s", rows[i].text);
    }
}

static void check_bad_lines(void)
{
    static const char *const rows[] = {
        "",
        "}",
        "{}",
        "{\"type\":\"\"}",
        "{\"type\":\"ready\",}",
        "{\"type\":\"ready\",\"run\":1}",
        "{\"type\":\"done\"}",
        "{\"type\":\"done\",\"run\":}",
        "{\"type\":\"done\",\"run\":-1}",
        "{\"type\":\"done\",\"run\":1",
        "{\"type\":\"done\",\"run\":1,\"x\":2}",
        "{\"type\":\"done\",\"run\":18446744073709551616}",
        "{\"type\":\"result\",\"run\":1}",
        "{\"type\":\"quit\",\"run\":1}",
        "{ \"type\":\"ready\"}",
        "{\"run\":1,\"type\":\"done\"}",
    };
    struct interpreter_line line;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_ok(!reads(rows[i], &line), "refused: %s", rows[i]);
    const char *whole = "{\"type\":\"error\",\"run\":12,\"name\":\"Error\"}";
    size_t refused = 0;
    for (size_t length = 0; length < strlen(whole); length++)
        refused += !interpreter_line_read(whole, length, &line);
    tap_is_int(refused, strlen(whole), "one that is cut off anywhere is refused");
}

static void check_names(void)
{
    char name[INTERPRETER_NAME_MAX + 2], text[256];
    struct interpreter_line line;
    memset(name, 'a', sizeof name);
    name[INTERPRETER_NAME_MAX] = '\0';
    (void)snprintf(text, sizeof text, "{\"type\":\"error\",\"run\":1,\"name\":\"%s\"}", name);
    tap_ok(reads(text, &line) && strcmp(line.name, name) == 0, "the longest name is taken");
    name[INTERPRETER_NAME_MAX] = 'a';
    name[INTERPRETER_NAME_MAX + 1] = '\0';
    (void)snprintf(text, sizeof text, "{\"type\":\"error\",\"run\":1,\"name\":\"%s\"}", name);
    tap_ok(reads(text, &line) && !*line.name, "a longer one is left out");
}

static void check_requests(void)
{
    static const struct execution_pair env[] = {{"A", "b\"c"}, {"D", ""}};
    static const char code[] = "x = '\\n'\n\t\x7f\xc3\xbc";
    autostr struct str line = {0}, empty = {0};
    interpreter_line_write(&line, 7, env, 2, code, strlen(code));
    tap_is_str(line.data,
               "{\"run\":7,\"env\":[\"A=b\\u0022c\",\"D=\"],\"code\":\"x = '\\u005cn'\\u000a\\u0009"
               "\\u007f\xc3\xbc\"}\n",
               "everything but plain text is written as \\uXXXX");
    interpreter_line_write(&empty, 1, NULL, 0, "", 0);
    tap_is_str(empty.data, "{\"run\":1,\"env\":[],\"code\":\"\"}\n", "a run without code");
}

static bool takes(const char *text, struct run_line *line)
{
    return run_line_read(text, strlen(text), line);
}

static void check_results(void)
{
    struct run_line line;
    tap_ok(takes("{\"type\":\"result\",\"run\":1,\"main\":true,\"data\":{\"text/plain\":\"1\","
                 "\"application/json\":[1],\"a/b+json\":{},\"image/png\":5}}",
                 &line) &&
               line.main && !line.is_error,
           "a result is taken");
    tap_is_int(json_object_size(line.data), 3, "without a form that is neither text nor JSON");
    run_line_done(&line);
    tap_ok(takes("{\"type\":\"result\",\"main\":1,\"data\":{}}", &line) && !line.main,
           "only true is true");
    run_line_done(&line);
    tap_ok(takes("{\"type\":\"error\",\"name\":\"N\",\"value\":\"\",\"traceback\":\"t\"}", &line) &&
               line.is_error && strcmp(line.traceback, "t") == 0,
           "an error is taken");
    run_line_done(&line);
    static const char *const wrong[] = {
        "",
        "[]",
        "{\"type\":\"result\"}",
        "{\"type\":\"result\",\"data\":[]}",
        "{\"type\":\"result\",\"data\":{\"a\":\"\xff\"}}",
        "{\"type\":\"result\",\"data\":{},\"data\":{}}",
        "{\"type\":\"done\",\"data\":{}}",
        "{\"type\":\"error\",\"name\":\"N\",\"value\":\"\"}",
        "{\"type\":\"error\",\"name\":\"N\",\"value\":\"\",\"traceback\":1}",
        "{\"type\":\"error\",\"name\":\"N\\u0000\",\"value\":\"\",\"traceback\":\"\"}",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        tap_ok(!takes(wrong[i], &line), "not taken: %s", wrong[i]);
}

static void check_result_limits(void)
{
    struct run_line line;
    for (int depth = 61; depth <= 63; depth++) { /* two more are around them */
        autostr struct str text = {0};
        str_append(&text, "{\"type\":\"result\",\"data\":{\"application/json\":");
        for (int i = 0; i < depth; i++)
            str_append_char(&text, '[');
        for (int i = 0; i < depth; i++)
            str_append_char(&text, ']');
        str_append(&text, "}}");
        bool taken = takes(text.data, &line);
        tap_ok(taken == (depth <= 62), "%d arrays in each other", depth);
        if (taken)
            run_line_done(&line);
    }
    for (int forms = RUN_FORMS_MAX; forms <= RUN_FORMS_MAX + 1; forms++) {
        autostr struct str text = {0};
        str_append(&text, "{\"type\":\"result\",\"data\":{");
        for (int i = 0; i < forms; i++)
            str_appendf(&text, "%s\"%d\":\"\"", i ? "," : "", i);
        str_append(&text, "}}");
        bool taken = takes(text.data, &line);
        tap_ok(taken == (forms == RUN_FORMS_MAX), "%d forms", forms);
        if (taken)
            run_line_done(&line);
    }
}

/* ---- what E2B's clients send ---- */

static struct sandbox_request parsed;
static const char *context;

static bool execute(const char *text)
{
    json_auto_t *body = json_loads(text, 0, NULL);
    char message[E2B_MESSAGE_MAX];
    sandbox_request_done(&parsed);
    return e2b_read_code(body, &parsed, &context, message);
}

static bool create(const char *text)
{
    json_auto_t *body = json_loads(text, 0, NULL);
    char message[E2B_MESSAGE_MAX];
    sandbox_request_done(&parsed);
    return e2b_read_context(body, &parsed, message);
}

static void check_e2b(void)
{
    tap_ok(execute("{\"code\":\"x\"}") && !context && strcmp(parsed.language, "python") == 0 &&
               parsed.bytes.length == 1,
           "code is for Python if nothing else is said");
    tap_ok(execute("{\"code\":\"\",\"context_id\":null,\"language\":\"bash\",\"env_vars\":{\"A\":"
                   "\"b\"}}") &&
               strcmp(parsed.language, "bash") == 0 && parsed.env_count == 1,
           "or for another language, with variables");
    tap_ok(execute("{\"code\":\"x\",\"context_id\":\"7\",\"env_vars\":null}") &&
               strcmp(context, "7") == 0 && !parsed.language,
           "or for a context");
    static const char *const wrong[] = {
        "{}",
        "{\"code\":1}",
        "{\"code\":\"x\",\"context_id\":7}",
        "{\"code\":\"x\",\"language\":[]}",
        "{\"code\":\"x\",\"context_id\":\"7\",\"language\":\"python\"}",
        "{\"code\":\"x\",\"env_vars\":[]}",
        "{\"code\":\"x\",\"env_vars\":{\"a b\":\"\"}}",
        "{\"code\":\"x\",\"env_vars\":{\"A\":1}}",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
        tap_ok(!execute(wrong[i]), "refused: %s", wrong[i]);
    tap_ok(create("{}") && strcmp(parsed.language, "python") == 0 && !parsed.cwd,
           "a context is for Python");
    tap_ok(create("{\"language\":\"js\",\"cwd\":\"/tmp\"}") && strcmp(parsed.cwd, "/tmp") == 0,
           "or for another language, with a directory");
    tap_ok(!create("{\"language\":1}") && !create("{\"cwd\":{}}"), "other types are refused");
    sandbox_request_done(&parsed);
    static const struct {
        const char *method, *path, *id;
    } paths[] = {{"POST", "/execute", ""},
                 {"POST", "/contexts", ""},
                 {"GET", "/contexts", ""},
                 {"DELETE", "/contexts/7", "7"},
                 {"POST", "/contexts/7/restart", "7"},
                 {"GET", "/execute", NULL},
                 {"POST", "/contexts/7", NULL}};
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        char id[EXECUTION_ID_LENGTH + 1];
        bool found = e2b_find(E2B_INTERPRETER, paths[i].method, paths[i].path, id);
        tap_is_str(found ? id : NULL, paths[i].id, "%s %s", paths[i].method, paths[i].path);
    }
}

int main(void)
{
    check_e2b();
    check_good_lines();
    check_bad_lines();
    check_names();
    check_requests();
    check_results();
    check_result_limits();
    return tap_done();
}
