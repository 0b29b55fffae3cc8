/* SPDX-License-Identifier: MIT */
/* The table of tools, the check of their arguments, and what all tools need to start brig. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "mcp/mcp_tools_json.h"
#include "mcp/session.h"
#include "rpc/tool.h"

#define WORDS_MAX 1280                 /* of a command line */
#define MESSAGES_BYTES 16384           /* of brig's messages that are kept */
#define ERRORS_BYTES 8192              /* of a script's standard error */
#define RESULT_BYTES ((size_t)4 << 20) /* of the result file */

static const struct tool *const tools[] = {&tool_run_code,   &tool_run_command, &tool_file_read,
                                           &tool_file_write, &tool_file_list,   &tool_diff,
                                           &tool_apply,      &tool_reset};

const struct tool *tools_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(tools); i++)
        if (strcmp(tools[i]->name, name) == 0)
            return tools[i];
    return NULL;
}

bool tools_load(struct session *session)
{
    session->tools = tool_list_load(mcp_tools_json, sizeof mcp_tools_json, session->open_world);
    return session->tools != NULL;
}

/* ---- Arguments ---- */

const char *call_text(const struct call *call, const char *name)
{
    return json_string_value(json_object_get(call->arguments, name));
}

int64_t call_number(const struct call *call, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(call->arguments, name);
    return value ? json_integer_value(value) : otherwise;
}

bool call_flag(const struct call *call, const char *name)
{
    return json_is_true(json_object_get(call->arguments, name));
}

/* ---- Results ---- */

void call_finish(struct call *call, const char *text, json_t *structured, bool is_error)
{
    json_decref(call->result);
    call->result = tool_result(text, structured, is_error);
    call->state = CALL_ENDED;
}

void call_fail(struct call *call, const char *format, ...)
{
    autostr struct str text = {0}, clean = {0};
    va_list args;
    va_start(args, format);
    str_vappendf(&text, format, args);
    va_end(args);
    if (text.data)
        excerpt_append_clean(&clean, text.data, text.length);
    call_finish(call, clean.data, NULL, true);
}

json_t *call_messages(const struct call *call)
{
    static const char prefix[] = "brig: ";
    autostr struct str text = {0};
    json_t *list = json_array();
    excerpt_print(&call->child.captures[CHILD_MESSAGES], &text);
    char *rest = text.data;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        if (str_starts_with(line, prefix))
            line += sizeof prefix - 1;
        if (*line)
            (void)json_array_append_new(list, json_string(line));
    }
    return list;
}

json_t *call_run_result(const struct call *call)
{
    autostr struct str text = {0};
    if (lseek(call->child.result, 0, SEEK_SET) != 0 ||
        read_all(call->child.result, RESULT_BYTES, &text) < 0 || text.failed || !text.data)
        return NULL;
    return json_loadb(text.data, text.length, 0, NULL);
}

bool call_worked(struct call *call, int also)
{
    autostr struct str text = {0};
    size_t index;
    if (call->child.status == 0 || call->child.status == also)
        return true;
    json_t *messages = call_messages(call), *line;
    excerpt_print(&call->child.captures[CHILD_ERRORS], &text);
    json_array_foreach(messages, index, line) str_concat(&text, json_string_value(line), "\n");
    json_decref(messages);
    call_fail(call, "%s", text.length > 0 ? text.data : "brig failed");
    return false;
}

/* ---- Starting brig ---- */

/* A command line; the words are borrowed. */
struct words {
    const char *items[WORDS_MAX + 1];
    size_t count;
};

static void add_word(struct words *words, const char *word)
{
    if (words->count < WORDS_MAX)
        words->items[words->count++] = word;
}

static void add_words(struct words *words, const char *const *more)
{
    for (; more && *more; more++)
        add_word(words, *more);
}

static void start(struct call *call, const struct words *words, int input, bool dies,
                  size_t output_max)
{
    struct brig_error err = {0};
    child_done(&call->child);
    call->child.captures[CHILD_OUTPUT].max = output_max;
    call->child.captures[CHILD_MESSAGES].max = MESSAGES_BYTES;
    call->child.captures[CHILD_ERRORS].max = ERRORS_BYTES;
    if (child_start(&call->child, words->items, input, dies, &err) < 0)
        call_fail(call, "%s", err.message);
}

void call_start_verb(struct session *session, struct call *call, const char *verb,
                     const char *const *words, int input, size_t output_max)
{
    struct words all = {{session->brig, verb, "-j", session->jail}, 4};
    add_words(&all, words);
    start(call, &all, input, false, output_max);
}

void call_start_script(struct session *session, struct call *call, const char *script,
                       const char *const *words, int input, uint64_t timeout_s, size_t output_max)
{
    char timeout[32];
    struct words all = {{session->brig, "run"}, 2};
    if (session->timeout_max_s > 0 && timeout_s > session->timeout_max_s)
        timeout_s = session->timeout_max_s;
    (void)snprintf(timeout, sizeof timeout, "%llus", (unsigned long long)timeout_s);
    add_words(&all, session->run_options);
    add_words(&all, (const char *const[]){"--timeout", timeout, "--pass-fd", "3", "--result",
                                          "fd:4", "--", "sh", "-c", script, "sh", NULL});
    add_words(&all, words);
    session->generation++;
    start(call, &all, input, true, output_max);
}
