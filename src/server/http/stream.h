/* SPDX-License-Identifier: MIT */
/* An answer of server-sent events, for one client who may read as slowly as it likes: output is
 * kept for it as it came, up to what is kept of a run at all, and written as events when it is read.
 * What goes beyond is dropped and said so at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/execution.h"

struct exchange;
struct str;
struct stream;

#define STREAM_BYTES_MAX (EXECUTION_OUTPUT_MAX + EXECUTION_STDERR_MAX)
#define STREAM_COMMENT_MS 15000

struct stream *stream_new(struct exchange *exchange, bool base64); /* NULL: no memory */
void stream_free(struct stream *stream);                           /* accepts NULL */
void stream_output(struct stream *stream, bool is_stderr, const void *bytes, size_t length);
/* The last event; `json` is moved out of. */
void stream_end(struct stream *stream, const char *event, struct str *json);
bool stream_has_dropped(const struct stream *stream);
/* Queues it with the library: 0, or negative if the connection has to be closed. */
int stream_send(struct exchange *exchange);
/* Makes it time for a comment. */
void stream_comment(struct stream *stream);
/* Lets a comment be sent if it is time for one. */
void stream_tick(struct exchange *exchange);
