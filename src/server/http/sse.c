/* SPDX-License-Identifier: MIT */
/* Server-sent events from bytes that may be anything. */
#include "server/http/sse.h"

#include <string.h>

#include "base/base64.h"
#include "base/str.h"
#include "base/utf8.h"

static void begin_event(struct str *out, const char *event)
{
    str_append(out, "event: ");
    str_append(out, event);
    str_append(out, "\ndata: ");
}

static void append_line_end(struct str *out)
{
    str_append(out, "\ndata: ");
}

/* One character or line end; how many bytes it took, 0 if more have to come first. */
static size_t append_one(struct str *out, struct sse_text *text, const unsigned char *p,
                         size_t left, bool last)
{
    size_t length = utf8_length(p, left);
    bool swallow = text->after_return && *p == '\n';
    text->after_return = *p == '\r';
    if (swallow)
        return 1;
    if (*p == '\r' || *p == '\n') {
        append_line_end(out);
        return 1;
    }
    if (length == 0 && !last && utf8_is_beginning(p, left))
        return 0;
    if (length == 0)
        str_append(out, "\xef\xbf\xbd");
    else
        str_append_bytes(out, p, length);
    return length > 0 ? length : 1;
}

/* What had begun, completed from the piece byte by byte. Returns how much of the piece it took. */
static size_t append_begun(struct str *out, struct sse_text *text, const unsigned char *p,
                           size_t length, bool last)
{
    size_t taken = 0;
    while (text->begun_length > 0) {
        size_t used =
            append_one(out, text, text->begun, text->begun_length, last && taken == length);
        if (used > 0) {
            text->begun_length -= used;
            memmove(text->begun, text->begun + used, text->begun_length);
        } else if (taken < length) {
            text->begun[text->begun_length++] = p[taken++];
        } else {
            break;
        }
    }
    return taken;
}

static void append_piece(struct str *out, struct sse_text *text, const unsigned char *p,
                         size_t length, bool last)
{
    size_t at = append_begun(out, text, p, length, last);
    while (at < length) {
        size_t used = append_one(out, text, p + at, length - at, last);
        if (used == 0) {
            text->begun_length = length - at;
            memcpy(text->begun, p + at, text->begun_length);
            return;
        }
        at += used;
    }
}

void sse_append_text(struct str *out, const char *event, struct sse_text *text, const void *bytes,
                     size_t length, bool last)
{
    size_t before = out->length;
    begin_event(out, event);
    size_t begun = out->length;
    append_piece(out, text, bytes, length, last);
    if (out->length == begun && !out->failed) {
        out->length = before;
        return;
    }
    str_append(out, "\n\n");
}

void sse_append_base64(struct str *out, const char *event, const void *bytes, size_t length)
{
    begin_event(out, event);
    base64_append(out, bytes, length);
    str_append(out, "\n\n");
}

void sse_append_json(struct str *out, const char *event, const char *json)
{
    begin_event(out, event);
    str_append(out, json);
    str_append(out, "\n\n");
}

void sse_append_comment(struct str *out)
{
    str_append(out, ": keep-alive\n\n");
}
