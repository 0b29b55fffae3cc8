/* SPDX-License-Identifier: MIT */
/* The tools run_code and run_command. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "mcp/session.h"
#include "rpc/tool.h"

#define TIMEOUT_S 60
/* The kernel's limit for one word of a command line, MAX_ARG_STRLEN, with its NUL. */
#define CODE_BYTES_MAX ((size_t)131072 - 1)

/* The command's errors are separated from the messages of brig itself, which nothing in the jail can
 * then imitate. */
#define ERRORS_APART "exec 2>&3 3>&-; "
#define RUN_SCRIPT ERRORS_APART "exec \"$@\""
#define SHELL_SCRIPT                                                                               \
    ERRORS_APART                                                                                   \
    "if command -v bash > /dev/null; then exec bash -c \"$1\"; fi; exec sh -c \"$1\""

/* ---- Starting ---- */

static void start(struct session *session, struct call *call, const char *script,
                  const char *const *words)
{
    const json_t *text = json_object_get(call->arguments, "stdin");
    autoclose int input =
        text ? child_input(json_string_value(text), json_string_length(text)) : -1;
    if (text && input < 0)
        call_fail(call, "cannot store the standard input");
    else
        call_start_script(session, call, script, words, input,
                          (uint64_t)call_number(call, "timeout_s", TIMEOUT_S), TOOL_OUTPUT_BYTES);
}

static bool is_short(struct call *call, const char *text)
{
    if (strlen(text) <= CODE_BYTES_MAX)
        return true;
    call_fail(call, "The text is longer than 128 KiB. Write it to a file with file_write, and run "
                    "the file with run_command.");
    return false;
}

static void begin_code(struct session *session, struct call *call)
{
    const char *name = call_text(call, "language"), *code = call_text(call, "code");
    const json_t *arguments = json_object_get(call->arguments, "args"), *argument;
    const struct tool_language *language = tool_language_find(name); /* the schema lists them */
    size_t count = 0, index, most = 5 + json_array_size(arguments);
    autofree const char **words = calloc(most, sizeof *words);
    if (!words || !is_short(call, code))
        return;
    words[count++] = language->program;
    words[count++] = language->option;
    words[count++] = code;
    if (language->before)
        words[count++] = language->before;
    json_array_foreach(arguments, index, argument) words[count++] = json_string_value(argument);
    start(session, call, RUN_SCRIPT, words);
}

static void begin_command(struct session *session, struct call *call)
{
    const char *command = call_text(call, "command");
    if (is_short(call, command))
        start(session, call, SHELL_SCRIPT, (const char *const[]){command, NULL});
}

/* ---- The result ---- */

/* A refused connection, with the option of brig mcp that allows it. */
static void add_refused(json_t *list, const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "name"));
    const char *address = json_string_value(json_object_get(event, "address"));
    const char *because = json_string_value(json_object_get(event, "because"));
    const char *detail = json_string_value(json_object_get(event, "detail"));
    json_int_t port = json_integer_value(json_object_get(event, "port"));
    autostr struct str line = {0};
    bool plain = port == 0 || port == 443 || port == 80;
    const char *what = name ? name : address ? address : "an address";
    str_appendf(&line, "network: %s", what);
    if (port > 0)
        str_appendf(&line, ":%lld", (long long)port);
    if (because && (strcmp(because, "no-rule") == 0 || strcmp(because, "port") == 0)) {
        str_appendf(&line, " is not allowed; the user can start this server with --allow %s", what);
        if (!plain)
            str_appendf(&line, ":%lld", (long long)port);
    } else {
        str_concat(&line, " was refused: ", detail ? detail : "not allowed");
    }
    json_t *text = line.failed ? NULL : json_string(line.data), *item;
    size_t index;
    json_array_foreach(list, index, item)
    {
        if (json_equal(item, text)) {
            json_decref(text);
            return;
        }
    }
    (void)json_array_append_new(list, text);
}

static json_t *list_denied(const json_t *result)
{
    json_t *list = json_array();
    const json_t *event, *refused;
    size_t index;
    json_array_foreach(json_object_get(json_object_get(result, "network"), "events"), index, event)
    {
        const char *verdict = json_string_value(json_object_get(event, "verdict"));
        if (verdict && strcmp(verdict, "denied") == 0 && json_array_size(list) < TOOL_DENIED_MAX)
            add_refused(list, event);
    }
    json_array_foreach(json_object_get(json_object_get(result, "denials"), "syscalls"), index,
                       refused)
    {
        if (json_array_size(list) < TOOL_DENIED_MAX)
            (void)json_array_append_new(
                list, json_sprintf("system call: %s",
                                   json_string_value(json_object_get(refused, "name"))));
    }
    return list;
}

static void ended(struct session *session, struct call *call)
{
    (void)session;
    const struct excerpt *captures = call->child.captures;
    json_t *result = call_run_result(call);
    const char *status = json_string_value(json_object_get(result, "outcome"));
    const json_t *code = json_object_get(result, "exit_code");
    json_int_t wall =
        json_integer_value(json_object_get(json_object_get(result, "usage"), "wall_us"));
    autostr struct str out = {0}, errors = {0};
    excerpt_print(&captures[CHILD_OUTPUT], &out);
    excerpt_print(&captures[CHILD_ERRORS], &errors);
    const struct tool_run run = {
        .status = status ? status : "setup-failed",
        .exit_code = json_is_integer(code) ? (int)json_integer_value(code) : -1,
        .signal = json_string_value(json_object_get(result, "signal_name")),
        .output = &out,
        .errors = &errors,
        .truncated =
            excerpt_was_cut(&captures[CHILD_OUTPUT]) || excerpt_was_cut(&captures[CHILD_ERRORS]),
        .duration_ms = wall / 1000,
        .denied = list_denied(result),
        .messages = call_messages(call),
    };
    json_decref(call->result);
    call->result = tool_run_result(&run);
    call->state = CALL_ENDED;
    json_decref(result);
}

const struct tool tool_run_code = {.name = "run_code", .begin = begin_code, .ended = ended};
const struct tool tool_run_command = {
    .name = "run_command", .begin = begin_command, .ended = ended};
