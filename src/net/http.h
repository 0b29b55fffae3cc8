/* SPDX-License-Identifier: MIT */
/* A strict parser for HTTP/1 requests: everything that two parsers could read differently is bad.
 * The bytes come from a jail and are untrusted. Pure, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

#define HTTP_HEAD_MAX 65536 /* bytes of a head, including the empty line */
#define HTTP_HEADERS_MAX 128
#define HTTP_METHOD_MAX 32

enum http_state {
    HTTP_NEED_MORE,
    HTTP_DONE,
    HTTP_BAD,       /* answer 400 and close: the bytes that follow cannot be trusted */
    HTTP_TOO_LARGE, /* answer 431 and close */
};

/* A part of the input: lives as long as the input, and is not NUL-terminated. */
struct http_slice {
    const char *at;
    size_t length;
};

struct http_header {
    struct http_slice name, value; /* the value without the blanks around it */
};

enum http_form {
    HTTP_FORM_ORIGIN,    /* /path?query */
    HTTP_FORM_ABSOLUTE,  /* http://host/path?query */
    HTTP_FORM_AUTHORITY, /* host:port, of CONNECT */
    HTTP_FORM_ASTERISK,  /* *, of OPTIONS */
};

enum http_framing {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
};

/* The destination of a request, from its Host header or its target. */
struct http_authority {
    bool is_address;             /* otherwise a name */
    char name[NET_NAME_MAX + 1]; /* in the form of net_name_read() */
    struct net_address address;
    uint16_t port; /* 0 if none was given */
};

struct http_head {
    size_t length; /* of the head: the offset of the body */
    struct http_slice method, target;
    enum http_form form;
    bool https;             /* HTTP_FORM_ABSOLUTE: the scheme is https, else http */
    struct http_slice path; /* with its query, always beginning with '/'; "*"; empty for CONNECT */
    unsigned minor;         /* HTTP/1.minor: 0 or 1 */
    bool has_host;          /* a Host header, or a host in the target; always in HTTP/1.1 */
    struct http_authority host; /* if both are present, they agree */
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t header_count;
    enum http_framing framing;
    uint64_t content_length; /* HTTP_BODY_LENGTH */
    bool keep_alive;         /* the client may send another request */
    bool upgrade;            /* the client requests another protocol */
    bool expect_continue;    /* the client waits for "100 Continue" before it sends the body */
    const char *reason;      /* HTTP_BAD and HTTP_TOO_LARGE: why; a constant */
};

/* Parses a head from all bytes of the request so far. `seen` is how many of them an earlier call
 * has seen, else 0. With HTTP_DONE, *ret_head is filled in; otherwise only its `reason` is
 * valid. */
enum http_state http_head_read(const char *bytes, size_t length, size_t seen,
                               struct http_head *ret_head);

bool http_slice_is(struct http_slice slice, const char *text);   /* exact comparison */
bool http_slice_like(struct http_slice slice, const char *text); /* ignores case */
/* Whether a server that turns headers into variables (CGI, WSGI) would confuse the names:
 * x-api-key, X_Api_Key. */
bool http_slice_alias(struct http_slice slice, const char *text);

/* Removes leading and trailing blanks. */
struct http_slice http_trim(struct http_slice slice);

/* Parses "host" or "host:port", with an IPv6 address in brackets, without a user. */
bool http_authority_read(struct http_slice text, struct http_authority *ret_authority);

/* The index of the first header with this name, from `from` on, or -1. */
int http_head_find(const struct http_head *head, const char *name, size_t from);

/* Whether the header is for the next hop only and must not be forwarded: Connection and the headers
 * it names, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade, Proxy-…. Host and Content-Length
 * are not in this list: code that rewrites the request drops them itself. */
bool http_head_is_hop(const struct http_head *head, const struct http_header *header);

/* Writes the path in canonical form: without "." and ".." segments, empty segments and unnecessary
 * escapes; other escapes have upper-case digits. The query is unchanged. `to` has room for
 * path.length bytes and must not overlap the path. False if servers could interpret the path
 * differently: it leads above the root, or has a broken escape, a backslash, a ';', a control
 * character, an encoded '%', '?' or '#', or an encoded slash next to something other than a
 * name. */
bool http_path_normalise(struct http_slice path, char *to, size_t *ret_length);

/* Whether a normalised path is the prefix or below it: "/v1" matches "/v1", "/v1/x" and "/v1?x",
 * but not "/v10"; "/v1/" matches only paths below it; "/" matches every path. */
bool http_path_below(struct http_slice path, const char *prefix);

/* ---- The body, parsed incrementally ---- */

#define HTTP_CHUNK_LINE_MAX 256 /* a chunk's size and extensions, which are ignored */
#define HTTP_TRAILERS_MAX 8192  /* bytes after the last chunk, which are ignored */

/* Zero-initialised it is a body that has ended. The members are private. */
struct http_body {
    unsigned step, next;
    uint64_t left;      /* remaining bytes of the body, or of the chunk */
    size_t line_length; /* of the current line */
    size_t trailer_length;
    unsigned digits;
    const char *reason; /* HTTP_BAD and HTTP_TOO_LARGE: why; a constant */
};

void http_body_init(struct http_body *body, const struct http_head *head);

/* Continues with the bytes that were not consumed yet. Returns how many it consumed and which of
 * them are data of the body (none: length 0). HTTP_NEED_MORE: call it again with the bytes that
 * follow, at once if something was consumed and bytes are left. HTTP_DONE: the body has ended; the
 * remaining bytes are the next request. *ret_data may be set with either. */
enum http_state http_body_read(struct http_body *body, const char *bytes, size_t length,
                               size_t *ret_consumed, struct http_slice *ret_data);

/* ---- Characters (RFC 9110 and 9112) ---- */

static inline bool http_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Characters in the names of methods and headers. */
bool http_is_token(char c);
/* Characters in values, including blanks: no control character except the tab. */
bool http_is_text(char c);
