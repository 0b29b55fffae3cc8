/* SPDX-License-Identifier: MIT */
/* Server-sent events (the HTML standard, 9.2) from bytes that may be anything. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str;

/* Where one stream's text is between two pieces; zero-initialise. */
struct sse_text {
    unsigned char begun[4]; /* a character of which there is more to come */
    size_t begun_length;
    bool after_return; /* a "\n" that comes next belongs to it */
};

/* Appends one event with the piece as its data, nothing if there is nothing to say. A reader gets
 * the text back with "\n" for every line end, and U+FFFD for each byte that is no UTF-8; no text can
 * end the event or begin another. `last` says that what has begun will not go on. */
void sse_append_text(struct str *out, const char *event, struct sse_text *text, const void *bytes,
                     size_t length, bool last);
/* The same with the data as base64. */
void sse_append_base64(struct str *out, const char *event, const void *bytes, size_t length);
/* An event whose data is JSON, which has no line ends. */
void sse_append_json(struct str *out, const char *event, const char *json);
void sse_append_comment(struct str *out);
