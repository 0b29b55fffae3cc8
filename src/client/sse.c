/* SPDX-License-Identifier: MIT */
/* Server-sent events, as the HTML standard reads them, but that a line ends with \n or \r\n alone: the
 * server writes nothing else. */
#include "client/sse.h"

#include <stdio.h>
#include <string.h>

void sse_done(struct sse *sse)
{
    str_done(&sse->line);
    str_done(&sse->data);
}

static void clear(struct str *text)
{
    text->length = 0;
    if (text->data)
        text->data[0] = '\0';
}

static int end_event(struct sse *sse, sse_take *take, void *context)
{
    int result = 0;
    static char nothing[] = "";
    if (sse->has_data)
        result = take(context, sse->event[0] ? sse->event : "message",
                      sse->data.data ? sse->data.data : nothing, sse->data.length);
    clear(&sse->data);
    sse->has_data = false;
    sse->event[0] = '\0';
    return result;
}

static void take_field(struct sse *sse, const char *name, size_t name_length, const char *value)
{
    if (name_length == 5 && memcmp(name, "event", 5) == 0) {
        (void)snprintf(sse->event, sizeof sse->event, "%s", value);
    } else if (name_length == 4 && memcmp(name, "data", 4) == 0) {
        if (sse->has_data)
            str_append_char(&sse->data, '\n');
        str_append(&sse->data, value);
        sse->has_data = true;
    }
}

static int end_line(struct sse *sse, sse_take *take, void *context)
{
    const char *line = sse->line.data ? sse->line.data : "";
    size_t length = strlen(line);
    int result = 0;
    if (length > 0 && line[length - 1] == '\r')
        sse->line.data[--length] = '\0';
    if (length == 0) {
        result = end_event(sse, take, context);
    } else if (line[0] != ':') { /* a comment */
        const char *colon = strchr(line, ':');
        const char *value = colon ? colon + 1 : "";
        take_field(sse, line, colon ? (size_t)(colon - line) : length, value + (*value == ' '));
    }
    clear(&sse->line);
    return result;
}

int sse_feed(struct sse *sse, const char *bytes, size_t length, sse_take *take, void *context)
{
    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end ? (size_t)(end - bytes) : length;
        str_append_bytes(&sse->line, bytes, part);
        if (sse->line.failed || sse->data.failed || sse->line.length > SSE_LINE_MAX ||
            sse->data.length > SSE_LINE_MAX) {
            sse->failed = true;
            return -1;
        }
        int result = end ? end_line(sse, take, context) : 0;
        if (result != 0)
            return result;
        bytes += part + (end != NULL);
        length -= part + (end != NULL);
    }
    return 0;
}
