/* SPDX-License-Identifier: MIT */
/* Parses the body of an HTTP/1 request incrementally. */
#include "net/http.h"

#include "base/encode.h"

#define SIZE_DIGITS_MAX 15 /* cannot overflow */
#define BAD_LINE "a line of a chunk does not end in CR LF"

enum step {
    ENDED,
    IN_LENGTH,     /* `left` bytes to the end */
    CHUNK_SIZE,    /* digits of a chunk's size */
    CHUNK_REST,    /* chunk extensions, to the end of the line */
    IN_CHUNK,      /* `left` bytes of the chunk */
    CHUNK_END,     /* the CR after a chunk */
    TRAILER_START, /* the first byte of a line after the last chunk */
    TRAILER_NAME,  /* the name of a trailer */
    TRAILER_VALUE, /* the value of a trailer */
    LINE_END,      /* the LF after a CR, then step `next` */
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

/* Expects the LF after a CR. */
static enum http_state end_line(struct http_body *body, enum step next)
{
    body->next = next;
    body->digits = 0;
    body->line_length = 0;
    return go_on(body, LINE_END);
}

static enum http_state end_size(struct http_body *body)
{
    return end_line(body, body->left > 0 ? IN_CHUNK : TRAILER_START);
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
        return end_size(body);
    /* Some servers take blanks before the extension for a part of the size. */
    return c == ';' ? go_on(body, CHUNK_REST) : refuse(body, HTTP_BAD, BAD_LINE);
}

static enum http_state read_rest(struct http_body *body, char c)
{
    if (++body->line_length > HTTP_CHUNK_LINE_MAX)
        return refuse(body, HTTP_TOO_LARGE, "a chunk's extensions are too long");
    if (c == '\r')
        return end_size(body);
    if (!http_is_text(c))
        return refuse(body, HTTP_BAD, "a chunk's extension has a control character");
    return HTTP_NEED_MORE;
}

/* Trailers are checked like headers; they are not forwarded. */
static enum http_state read_trailer(struct http_body *body, char c)
{
    if (++body->trailer_length > HTTP_TRAILERS_MAX)
        return refuse(body, HTTP_TOO_LARGE, "what follows the last chunk is too long");
    if (c == '\r' && body->step == TRAILER_VALUE)
        return end_line(body, TRAILER_START);
    if (c == '\r' && body->step == TRAILER_START)
        return end_line(body, ENDED);
    if (body->step == TRAILER_VALUE)
        return http_is_text(c)
                   ? HTTP_NEED_MORE
                   : refuse(body, HTTP_BAD, "what follows the last chunk has a control character");
    if (c == ':' && body->step == TRAILER_NAME)
        return go_on(body, TRAILER_VALUE);
    if (!http_is_token(c))
        return refuse(body, HTTP_BAD, "what follows the last chunk is not a header");
    return go_on(body, TRAILER_NAME);
}

/* Handles one byte of the framing. */
static enum http_state read_byte(struct http_body *body, char c)
{
    switch ((enum step)body->step) {
    case CHUNK_SIZE:
        return read_size(body, c);
    case CHUNK_REST:
        return read_rest(body, c);
    case CHUNK_END:
        return c == '\r' ? end_line(body, CHUNK_SIZE) : refuse(body, HTTP_BAD, BAD_LINE);
    case TRAILER_START:
    case TRAILER_NAME:
    case TRAILER_VALUE:
        return read_trailer(body, c);
    case LINE_END:
        return c == '\n' ? go_on(body, body->next) : refuse(body, HTTP_BAD, BAD_LINE);
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

/* Takes as much data of the body as is present. */
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
