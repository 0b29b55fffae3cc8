/* SPDX-License-Identifier: MIT */
/* Server-sent events (HTML standard, 9.2), and answers that stream them. */
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

/* State of one text stream between two pieces; zero-initialise. */
struct sse_text {
    unsigned char begun[4]; /* the first bytes of an incomplete character */
    size_t begun_length;
    bool after_return; /* the last byte was "\r": ignore a following "\n" */
};

/* Appends one event with the piece as its data, or nothing if there is no complete character. The
 * reader gets "\n" for every line end, and U+FFFD for each byte that is not UTF-8. No text can end
 * the event or begin another. With `last`, an incomplete character will not be continued. */
void sse_append_text(struct str *out, const char *event, struct sse_text *text, const void *bytes,
                     size_t length, bool last);
/* The same with base64 data. */
void sse_append_base64(struct str *out, const char *event, const void *bytes, size_t length);
/* An event with JSON data, which must not contain line ends. */
void sse_append_json(struct str *out, const char *event, const char *json);
void sse_append_comment(struct str *out);

/* ---- Streams ---- */

/* A slow client does not delay the run: events are buffered, up to the amount of output that is
 * kept of a run. Output beyond that, or beyond HTTP_MEMORY_MAX, is dropped, and the last event says
 * so. */

/* Streams of another form than server-sent events. */
struct stream_form {
    const char *content_type;
    void (*idle)(struct str *out); /* appends what keeps the connection alive; NULL: nothing */
    /* All was sent, and nothing was asked for: asks for more. NULL: more comes by itself. */
    void (*drained)(struct exchange *exchange);
};
/* Begins the stream of an exchange, after its key or token was checked; without a form it has server-sent
 * events. False: answered with an error. */
bool stream_begin(struct exchange *exchange, const struct stream_form *form, bool base64);
void stream_free(struct stream *stream); /* accepts NULL */
void stream_output(struct stream *stream, bool is_stderr, const void *bytes, size_t length);
/* Appends an event with JSON. */
void stream_event(struct stream *stream, const char *event, const char *json);
/* Output of a command that may go on for any time: the amount is limited only by what the client
 * has not read yet. Where some is dropped, an event `gap` follows. */
void stream_live(struct stream *stream, const char *event, bool is_stderr, const void *bytes,
                 size_t length);
/* Appends the last event. `json` may be NULL if memory ran out. */
void stream_end(struct stream *stream, const char *event, const char *json);
bool stream_has_dropped(const struct stream *stream);
#define STREAM_FORM_BYTES_MAX ((size_t)16 << 20) /* that the client has not read yet */
/* Appends bytes; false if the reader is too slow, and they are dropped. */
bool stream_append(struct stream *stream, const void *bytes, size_t length);
/* Closes the connection, so that the client notices that something is missing. */
void stream_abort(struct stream *stream);
/* Appends the last bytes. */
void stream_finish(struct stream *stream, const void *bytes, size_t length);

/* Hands the stream to libmicrohttpd. Returns 0, or negative if the connection must be closed. */
int stream_send(struct exchange *exchange);
/* Makes a comment due. */
void stream_comment(struct stream *stream);
/* Sends a comment if one is due. */
void stream_tick(struct exchange *exchange);
