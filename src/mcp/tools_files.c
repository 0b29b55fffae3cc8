/* SPDX-License-Identifier: MIT */
/* The tools file_read, file_write and file_list. Each runs a script in the jail, so that names and
 * links mean what they mean there, and nothing outside is ever opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "mcp/session.h"
#include "rpc/tool.h"

#define READ_BYTES 32768
#define LIST_ENTRIES 1000
#define LIST_BYTES 24576               /* of names in a result */
#define CAPTURE_BYTES ((size_t)262144) /* half of it is more than a script prints */
#define TIMEOUT_S 60

#define ERRORS_APART "exec 2>&3 3>&-; "
#define READ_SCRIPT                                                                                \
    ERRORS_APART                                                                                   \
    "[ -e \"$1\" ] || { echo \"There is no file $1 in the sandbox.\" >&2; exit 1; }; "             \
    "[ -f \"$1\" ] || { echo \"$1 is not a regular file.\" >&2; exit 1; }; "                       \
    "wc -c < \"$1\" && tail -c \"+$2\" \"$1\" | head -c \"$3\""
#define WRITE_SCRIPT ERRORS_APART "mkdir -p \"${1%/*}/\" && cat > \"$1\""
#define APPEND_SCRIPT ERRORS_APART "mkdir -p \"${1%/*}/\" && cat >> \"$1\""
#define LIST_SCRIPT                                                                                \
    ERRORS_APART                                                                                   \
    "[ -d \"$1\" ] || { echo \"There is no directory $1 in the sandbox.\" >&2; exit 1; }; "        \
    "cd \"$1\" && find . -mindepth 1 -maxdepth \"$2\" -printf '%y %s %P\\0' | "                    \
    "LC_ALL=C sort -z -k 3 | head -z -n \"$3\""

/* A path that no program takes for an option. The result is for the caller to free. */
static char *script_path(const struct call *call)
{
    const char *path = call_text(call, "path");
    char *text = NULL;
    path = path && *path ? path : ".";
    (void)str_make(&text, NULL, path[0] == '/' ? "" : "./", path);
    return text;
}

/* ---- file_read ---- */

static void begin_read(struct session *session, struct call *call)
{
    autofree char *path = script_path(call);
    const struct str_number from = str_number((uint64_t)call_number(call, "offset", 0) + 1);
    const struct str_number count = str_number(READ_BYTES);
    if (path)
        call_start_script(session, call, READ_SCRIPT,
                          (const char *const[]){path, from.text, count.text, NULL}, -1, TIMEOUT_S,
                          CAPTURE_BYTES);
}

static void ended_read(struct session *session, struct call *call)
{
    (void)session;
    const struct str *out = &call->child.captures[CHILD_OUTPUT].head;
    if (!call_worked(call, 0))
        return;
    const char *line_end = out->data ? memchr(out->data, '\n', out->length) : NULL;
    if (!line_end) {
        call_fail(call, "The file cannot be read.");
        return;
    }
    uint64_t size = strtoull(out->data, NULL, 10);
    uint64_t offset = (uint64_t)call_number(call, "offset", 0);
    const char *bytes = line_end + 1;
    size_t length = out->length - (size_t)(bytes - out->data);
    json_decref(call->result);
    call->result = tool_file_result(bytes, length, offset, size);
    call->state = CALL_ENDED;
}

const struct tool tool_file_read = {.name = "file_read", .begin = begin_read, .ended = ended_read};

/* ---- file_write ---- */

/* The bytes to write, as a file in memory; -1 on failure. */
static int write_input(const struct call *call)
{
    autostr struct str bytes = {0};
    if (!tool_content(call->arguments, &bytes))
        return -1;
    return child_input(bytes.data ? bytes.data : "", bytes.length);
}

static void begin_write(struct session *session, struct call *call)
{
    autofree char *path = script_path(call);
    autoclose int input = write_input(call);
    if (input < 0)
        call_fail(call, "The content is not base64.");
    else if (path)
        call_start_script(session, call, call_flag(call, "append") ? APPEND_SCRIPT : WRITE_SCRIPT,
                          (const char *const[]){path, NULL}, input, TIMEOUT_S, CAPTURE_BYTES);
}

static void ended_write(struct session *session, struct call *call)
{
    (void)session;
    autostr struct str bytes = {0};
    if (!call_worked(call, 0))
        return;
    (void)tool_content(call->arguments, &bytes); /* as when it began */
    char text[64];
    (void)snprintf(text, sizeof text, "%zu bytes were written", bytes.length);
    call_finish(call, text, json_pack("{s:I}", "bytes", (json_int_t)bytes.length), false);
}

const struct tool tool_file_write = {
    .name = "file_write", .begin = begin_write, .ended = ended_write};

/* ---- file_list ---- */

static void begin_list(struct session *session, struct call *call)
{
    autofree char *path = script_path(call);
    const struct str_number depth = str_number((uint64_t)call_number(call, "depth", 1));
    const struct str_number count = str_number(LIST_ENTRIES + 1);
    if (path)
        call_start_script(session, call, LIST_SCRIPT,
                          (const char *const[]){path, depth.text, count.text, NULL}, -1, TIMEOUT_S,
                          CAPTURE_BYTES);
}

static const char *type_name(char letter)
{
    return letter == 'f' ? "file" : letter == 'd' ? "directory" : letter == 'l' ? "link" : "other";
}

/* Adds "TYPE SIZE PATH". */
static void add_entry(json_t *list, struct str *text, const char *line)
{
    char *path;
    uint64_t size = line[0] ? strtoull(line + 1, &path, 10) : 0;
    if (!line[0] || *path != ' ')
        return;
    autostr struct str clean = {0};
    excerpt_append_clean(&clean, path + 1, strlen(path + 1));
    if (clean.failed || !clean.data)
        return;
    (void)json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "path", clean.data, "type",
                                                type_name(line[0]), "size", (json_int_t)size));
    str_concat(text, clean.data, line[0] == 'd' ? "/\n" : line[0] == 'l' ? "@\n" : "\n");
}

static void ended_list(struct session *session, struct call *call)
{
    (void)session;
    const struct excerpt *capture = &call->child.captures[CHILD_OUTPUT];
    const struct str *out = &capture->head;
    if (!call_worked(call, 0))
        return;
    autostr struct str text = {0};
    json_t *list = json_array();
    size_t at = 0;
    while (at < out->length && memchr(out->data + at, '\0', out->length - at) &&
           json_array_size(list) < LIST_ENTRIES && text.length < LIST_BYTES) {
        add_entry(list, &text, out->data + at);
        at += strlen(out->data + at) + 1;
    }
    bool more = at < capture->seen;
    if (more)
        str_append(&text, "[there are more entries; list a directory further down]\n");
    call_finish(call, text.length > 0 ? text.data : "The directory is empty.",
                json_pack("{s:o, s:b}", "entries", list, "truncated", (int)more), false);
}

const struct tool tool_file_list = {.name = "file_list", .begin = begin_list, .ended = ended_list};
