/* SPDX-License-Identifier: MIT */
/* The body of an HTTP/1 request, followed piece by piece to its end. */
#include "net/http_body.h"

#include <stdbool.h>

#include "base/hex.h"
#include "net/http_text.h"

#define SIZE_DIGITS_MAX 15 /* so that it cannot overflow */

enum step {
    ENDED,
    IN_LENGTH,     /* `left` bytes to the end */
    CHUNK_SIZE,    /* digits of a chunk's size */
    CHUNK_REST,    /* its extensions, to the end of the line */
    CHUNK_LF,      /* the LF behind its CR */
    IN_CHUNK,      /* `left` bytes of the chunk */
    CHUNK_END,     /* the CR behind a chunk */
    CHUNK_END_LF,  /* and its LF */
    TRAILER_START, /* the first byte of a line behind the last chunk */
    TRAILER_NAME,  /* the name in it */
    TRAILER_VALUE, /* the rest of it */
    TRAILER_LF,    /* the LF of such a line */
    LAST_LF,       /* that of the empty line */
    BROKEN,
};

void http_body_init(struct http_body *body, const struct http_head *head)
{
    *body = (struct http_body){.step = ENDED};
    switch (head->framing) {
    case HTTP_BODY_NONE:
        return;
    case HTTP_BODY_LENGTH:
        body->left = head->content_length;
        body->step = body->left > 0 ? IN_LENGTH : ENDED;
        return;
    case HTTP_BODY_CHUNKED:
        body->step = CHUNK_SIZE;
        return;
    }
}

static enum http_state refuse(struct http_body *body, enum http_state state, const char *reason)
{
    body->step = BROKEN;
    body->reason = reason;
    return state;
}

static enum http_state go_on(struct http_body *body, enum step step)
{
    body->step = step;
    return HTTP_NEED_MORE;
}

static enum http_state expect(struct http_body *body, char c, char wanted, enum step next)
{
    if (c != wanted)
        return refuse(body, HTTP_BAD, "a line of a chunk does not end in CR LF");
    return go_on(body, next);
}

static enum http_state read_size(struct http_body *body, char c)
{
    int digit = hex_value(c);
    if (digit >= 0) {
        if (++body->digits > SIZE_DIGITS_MAX)
            return refuse(body, HTTP_BAD, "a chunk is too long");
        body->left = body->left << 4 | (unsigned)digit;
        return HTTP_NEED_MORE;
    }
    if (body->digits == 0)
        return refuse(body, HTTP_BAD, "a chunk has no size");
    if (c == '\r')
        return go_on(body, CHUNK_LF);
    /* Blanks before the extension are taken for part of the size by some. */
    return expect(body, c, ';', CHUNK_REST);
}

static enum http_state read_rest(struct http_body *body, char c)
{
    if (++body->line_length > HTTP_CHUNK_LINE_MAX)
        return refuse(body, HTTP_TOO_LARGE, "a chunk's extensions are too long");
    if (c == '\r')
        return go_on(body, CHUNK_LF);
    if (!http_is_text(c))
        return refuse(body, HTTP_BAD, "a chunk's extension has a control character");
    return HTTP_NEED_MORE;
}

static enum http_state begin_chunk(struct http_body *body, char c)
{
    body->digits = 0;
    body->line_length = 0;
    return expect(body, c, '\n', body->left > 0 ? IN_CHUNK : TRAILER_START);
}

/* Trailers are headers, so they are held to the same; they are passed over, not passed on. */
static enum http_state read_trailer_name(struct http_body *body, char c)
{
    if (c == ':' && body->step == TRAILER_NAME)
        return go_on(body, TRAILER_VALUE);
    if (!http_is_token(c))
        return refuse(body, HTTP_BAD, "what follows the last chunk is not a header");
    return go_on(body, TRAILER_NAME);
}

static enum http_state read_trailer_value(struct http_body *body, char c)
{
    if (c == '\r')
        return go_on(body, TRAILER_LF);
    if (!http_is_text(c))
        return refuse(body, HTTP_BAD, "what follows the last chunk has a control character");
    return HTTP_NEED_MORE;
}

static enum http_state read_trailer(struct http_body *body, char c)
{
    if (++body->trailer_length > HTTP_TRAILERS_MAX)
        return refuse(body, HTTP_TOO_LARGE, "what follows the last chunk is too long");
    if (body->step == TRAILER_VALUE)
        return read_trailer_value(body, c);
    if (body->step == TRAILER_START && c == '\r')
        return go_on(body, LAST_LF);
    return read_trailer_name(body, c);
}

/* One byte of what frames the body. */
static enum http_state read_byte(struct http_body *body, char c)
{
    switch ((enum step)body->step) {
    case CHUNK_SIZE:
        return read_size(body, c);
    case CHUNK_REST:
        return read_rest(body, c);
    case CHUNK_LF:
        return begin_chunk(body, c);
    case CHUNK_END:
        return expect(body, c, '\r', CHUNK_END_LF);
    case CHUNK_END_LF:
        return expect(body, c, '\n', CHUNK_SIZE);
    case TRAILER_START:
    case TRAILER_NAME:
    case TRAILER_VALUE:
        return read_trailer(body, c);
    case TRAILER_LF:
        return expect(body, c, '\n', TRAILER_START);
    case LAST_LF:
        return expect(body, c, '\n', ENDED);
    case ENDED:
    case IN_LENGTH:
    case IN_CHUNK:
    case BROKEN:
        break;
    }
    return refuse(body, HTTP_BAD, body->reason);
}

static bool in_data(const struct http_body *body)
{
    return body->step == IN_LENGTH || body->step == IN_CHUNK;
}

/* As much of the body's own as is there. */
static struct http_slice take_data(struct http_body *body, const char *bytes, size_t length)
{
    struct http_slice data = {.at = bytes, .length = length < body->left ? length : body->left};
    body->left -= data.length;
    if (body->left == 0)
        body->step = body->step == IN_LENGTH ? ENDED : CHUNK_END;
    return data;
}

enum http_state http_body_read(struct http_body *body, const char *bytes, size_t length,
                               size_t *ret_consumed, struct http_slice *ret_data)
{
    size_t at = 0;
    *ret_data = (struct http_slice){.at = bytes, .length = 0};
    *ret_consumed = 0;
    while (at < length && body->step != ENDED && !in_data(body)) {
        enum http_state state = read_byte(body, bytes[at++]);
        *ret_consumed = at;
        if (state != HTTP_NEED_MORE)
            return state;
    }
    if (at < length && in_data(body)) {
        *ret_data = take_data(body, bytes + at, length - at);
        *ret_consumed = at + ret_data->length;
    }
    return body->step == ENDED ? HTTP_DONE : HTTP_NEED_MORE;
}
