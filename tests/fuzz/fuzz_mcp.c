/* SPDX-License-Identifier: MIT */
/* What a client sends to brig-mcp: lines in pieces, and the messages in them. Calls are checked and
 * queued, but not started. */
#include <stddef.h>
#include <stdint.h>

#include "mcp/lines.h"
#include "mcp/session.h"
#include "rpc/excerpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every answer is a line of JSON. */
static void check_output(const struct output *output)
{
    struct lines lines = {0};
    const char *line;
    size_t length;
    lines_add(&lines, output->waiting.data, output->waiting.length);
    while (lines_next(&lines, &line, &length) == LINES_LINE) {
        json_t *message = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
        if (!message)
            __builtin_trap();
        json_decref(message);
    }
    lines_done(&lines);
}

static void check_capture(const uint8_t *data, size_t size)
{
    struct excerpt capture = {.max = 16};
    struct str out = {0};
    excerpt_add(&capture, data, size / 3);
    excerpt_add(&capture, data + size / 3, size - size / 3);
    excerpt_print(&capture, &out);
    json_t *text = json_stringn(out.data ? out.data : "", out.length);
    if (!text) /* not UTF-8 */
        __builtin_trap();
    json_decref(text);
    str_done(&out);
    excerpt_done(&capture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session session = {.brig = "/brig", .jail = "jail", .out = {.fd = -1}};
    struct lines lines = {0};
    const char *line;
    size_t length, piece = size > 0 ? data[0] % 64 + 1 : 1;
    enum lines_result found;
    static json_t *tools; /* parsed once: it takes longer than an input */
    if (!tools && tools_load(&session))
        tools = session.tools;
    session.tools = tools;
    if (!tools)
        return 0;
    for (size_t at = 0; at < size; at += piece) {
        lines_add(&lines, data + at, size - at < piece ? size - at : piece);
        while ((found = lines_next(&lines, &line, &length)) != LINES_NONE) {
            if (found == LINES_LINE)
                session_line(&session, line, length);
            else
                session_long_line(&session);
        }
    }
    check_output(&session.out);
    check_capture(data, size);
    calls_free(&session);
    lines_done(&lines);
    output_done(&session.out);
    return 0;
}
