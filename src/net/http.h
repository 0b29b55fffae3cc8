/* SPDX-License-Identifier: MIT */
/* HTTP/1 requests, read so strictly that no server reads them otherwise: what two readers could
 * understand differently is bad. The bytes come from a jail and may be anything. Pure, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

#define HTTP_HEAD_MAX 65536 /* bytes of a head, with the empty line */
#define HTTP_HEADERS_MAX 128
#define HTTP_METHOD_MAX 32

enum http_state {
    HTTP_NEED_MORE,
    HTTP_DONE,
    HTTP_BAD,       /* answer 400, then close: the bytes after it cannot be trusted */
    HTTP_TOO_LARGE, /* answer 431, then close */
};

/* A part of the bytes that were read: lives as long as they do, and does not end with a NUL. */
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

/* Where a request goes to, by its Host or its target. */
struct http_authority {
    bool is_address;             /* else a name */
    char name[NET_NAME_MAX + 1]; /* as net_name_read() gives it */
    struct net_address address;
    uint16_t port; /* 0 if none was given */
};

struct http_head {
    size_t length; /* of the head: where the body begins */
    struct http_slice method, target;
    enum http_form form;
    bool https;             /* HTTP_FORM_ABSOLUTE: the scheme is https, else http */
    struct http_slice path; /* with its query, always beginning with '/'; "*"; empty for CONNECT */
    unsigned minor;         /* HTTP/1.minor: 0 or 1 */
    bool has_host;          /* a Host, or a target with one; of HTTP/1.1 always */
    struct http_authority host; /* if both were given, they agree */
    struct http_header headers[HTTP_HEADERS_MAX];
    size_t header_count;
    enum http_framing framing;
    uint64_t content_length; /* HTTP_BODY_LENGTH */
    bool keep_alive;         /* the client would send another request */
    bool upgrade;            /* it asks for another protocol */
    bool expect_continue;    /* it waits for "100 Continue" before it sends the body */
    const char *reason;      /* HTTP_BAD and HTTP_TOO_LARGE: why; a constant */
};

/* Reads a head from all bytes of the request up to now. `seen` is how many of them an earlier call
 * has had, else 0. Fills *ret_head with HTTP_DONE; else only `reason` of it means something. */
enum http_state http_head_read(const char *bytes, size_t length, size_t seen,
                               struct http_head *ret_head);

bool http_slice_is(struct http_slice slice, const char *text);   /* letter for letter */
bool http_slice_like(struct http_slice slice, const char *text); /* upper and lower case alike */
/* The same header to a server that makes variables of them (CGI, WSGI): x-api-key, X_Api_Key. */
bool http_slice_alias(struct http_slice slice, const char *text);

/* Without the blanks around it. */
struct http_slice http_trim(struct http_slice slice);

/* "host" or "host:port", with an IPv6 address in brackets, and no user before it. */
bool http_authority_read(struct http_slice text, struct http_authority *ret_authority);

/* The first header of this name, from `from` on; its index or -1. */
int http_head_find(const struct http_head *head, const char *name, size_t from);

/* Is the header only for the next hop, so that it must not be passed on: Connection, what that
 * names, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade, Proxy-…? Host and Content-Length are
 * not: whatever writes the request anew leaves them out itself. */
bool http_head_is_hop(const struct http_head *head, const struct http_header *header);

/* Writes the path in its one spelling: without "." and ".." segments, empty segments and escapes that
 * are not needed; other escapes have upper-case digits. The query stays as it is. `to` has room for
 * path.length bytes, and may not be the path itself. False if servers could read the path
 * differently: it leads above the root, or has a broken escape, a backslash, a ';', a control
 * character, an encoded '%', '?' or '#', or an encoded slash next to something other than a name. */
bool http_path_normalise(struct http_slice path, char *to, size_t *ret_length);

/* Is a normalised path the prefix or below it? "/v1" has "/v1", "/v1/x" and "/v1?x", but not "/v10";
 * "/v1/" has only what is below; "/" has every path. */
bool http_path_below(struct http_slice path, const char *prefix);

/* ---- The body, followed piece by piece to its end ---- */

#define HTTP_CHUNK_LINE_MAX 256 /* a chunk's size and extensions, which are passed over */
#define HTTP_TRAILERS_MAX 8192  /* bytes after the last chunk, which are passed over */

/* Zero-initialised is a body that has ended. The members are the reader's. */
struct http_body {
    unsigned step, next;
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

/* ---- Characters (RFC 9110 and 9112) ---- */

static inline bool http_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* In the names of methods and headers. */
bool http_is_token(char c);
/* In values, blanks among them: no control character but the tab. */
bool http_is_text(char c);
