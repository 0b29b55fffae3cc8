/* SPDX-License-Identifier: MIT */
#include "mcp/lines.h"

#include <string.h>

void lines_done(struct lines *lines)
{
    str_done(&lines->buffer);
}

void lines_add(struct lines *lines, const void *bytes, size_t length)
{
    struct str *buffer = &lines->buffer;
    if (lines->taken > 0) {
        buffer->length -= lines->taken;
        memmove(buffer->data, buffer->data + lines->taken, buffer->length + 1);
        lines->searched -= lines->taken;
        lines->taken = 0;
    }
    str_append_bytes(buffer, bytes, length);
}

/* Drops an unfinished line that is too long, and what follows of it. */
static enum lines_result cut(struct lines *lines)
{
    bool reported = lines->skipping;
    if (!reported && lines->buffer.length - lines->taken <= LINES_LENGTH_MAX)
        return LINES_NONE;
    lines->skipping = true;
    lines->taken = lines->searched = lines->buffer.length;
    return reported ? LINES_NONE : LINES_LONG;
}

enum lines_result lines_next(struct lines *lines, const char **ret_line, size_t *ret_length)
{
    const struct str *buffer = &lines->buffer;
    for (;;) {
        size_t from = lines->searched;
        const char *end =
            buffer->length > from ? memchr(buffer->data + from, '\n', buffer->length - from) : NULL;
        if (!end) {
            lines->searched = buffer->length;
            return cut(lines);
        }
        const char *line = buffer->data + lines->taken;
        size_t length = (size_t)(end - line);
        lines->taken = lines->searched = lines->taken + length + 1;
        if (lines->skipping) {
            lines->skipping = false;
            continue;
        }
        if (length > LINES_LENGTH_MAX)
            return LINES_LONG;
        *ret_line = line;
        *ret_length = length > 0 && line[length - 1] == '\r' ? length - 1 : length;
        return LINES_LINE;
    }
}
