/* SPDX-License-Identifier: MIT */
/* The body of an HTTP/1 request, followed piece by piece to its end. Pure, no allocation. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/http_head.h"

#define HTTP_CHUNK_LINE_MAX 256 /* a chunk's size and extensions, which are passed over */
#define HTTP_TRAILERS_MAX 8192  /* bytes behind the last chunk, which are passed over */

/* Zero-initialised is a body that has ended. The members are the reader's. */
struct http_body {
    unsigned step;
    uint64_t left;      /* bytes of the body, or of the chunk */
    size_t line_length; /* of the line being read */
    size_t trailer_length;
    unsigned digits;
    const char *reason; /* HTTP_BAD and HTTP_TOO_LARGE: why; a constant */
};

void http_body_init(struct http_body *body, const struct http_head *head);

/* Goes on with bytes of the connection, from the first that was not consumed. Says how many it
 * consumed, and which of them are the body's own (none: length 0). HTTP_NEED_MORE: call it again
 * with what follows, at once if something was consumed and bytes are left. HTTP_DONE: the body has
 * ended; what was not consumed is the next request. *ret_data may come with either. */
enum http_state http_body_read(struct http_body *body, const char *bytes, size_t length,
                               size_t *ret_consumed, struct http_slice *ret_data);
