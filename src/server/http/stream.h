/* SPDX-License-Identifier: MIT */
/* Server-sent events (the HTML standard, 9.2), and answers that are streams of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"

struct exchange;
struct str;
struct stream;

#define STREAM_BYTES_MAX (EXECUTION_OUTPUT_MAX + EXECUTION_STDERR_MAX)
#define STREAM_COMMENT_MS 15000

/* ---- Events. Pure ---- */

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

/* ---- Streams ---- */

/* The client may read as slowly as it likes: events are kept for it, up to as much output as is kept of a
 * run. Output beyond that, or beyond HTTP_MEMORY_MAX, is dropped, and the end says so. */
struct stream *stream_new(struct exchange *exchange, bool base64); /* NULL: no memory */
void stream_free(struct stream *stream);                           /* accepts NULL */
void stream_output(struct stream *stream, bool is_stderr, const void *bytes, size_t length);
/* The last event. `json` may be NULL for lack of memory. */
void stream_end(struct stream *stream, const char *event, const char *json);
bool stream_has_dropped(const struct stream *stream);
/* Hands it to libmicrohttpd: 0, or negative if the connection has to be closed. */
int stream_send(struct exchange *exchange);
/* Makes a comment due. */
void stream_comment(struct stream *stream);
/* Sends a comment if one is due. */
void stream_tick(struct exchange *exchange);
