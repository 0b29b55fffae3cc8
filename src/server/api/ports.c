/* SPDX-License-Identifier: MIT */
/* Passes HTTP requests on to a port of a sandbox. */
#include "server/api/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/api/port_head.h"
#include "server/guest/guest_wire.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"

#define INTERIM_MAX 199 /* statuses up to this one are followed by another head */

/* ---- the request ---- */

/* Appends what a URL can have as it is, and other bytes as %XX. */
static void append_encoded(struct str *out, const char *text, const char *plain)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *text; text++) {
        if (strchr(letters, *text) || strchr(plain, *text))
            str_append_char(out, *text);
        else
            str_appendf(out, "%%%02X", (unsigned char)*text);
    }
}

struct writer {
    struct str *out;
    bool open; /* the client has no API key: Authorization is for the program */
    size_t parameters;
};

static enum MHD_Result add_parameter(void *context, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct writer *writer = context;
    (void)kind;
    str_append(writer->out, writer->parameters++ ? "&" : "?");
    append_encoded(writer->out, name, "[]");
    if (value) {
        str_append_char(writer->out, '=');
        append_encoded(writer->out, value, "");
    }
    return MHD_YES;
}

/* Headers of the connection are this server's, and keys and tokens stay here. So do cookies: a browser
 * sends those that other programs at the same name have set, whatever their port, and programs in
 * sandboxes cannot set any. */
static bool is_passed(const struct writer *writer, const char *name)
{
    static const char *const kept[] = {"Connection",
                                       "Keep-Alive",
                                       "TE",
                                       "Trailer",
                                       "Upgrade",
                                       "Transfer-Encoding",
                                       "Content-Length",
                                       "Expect",
                                       "Host",
                                       "Cookie",
                                       "X-API-Key",
                                       "X-Access-Token",
                                       "E2B-Traffic-Access-Token",
                                       "E2b-Sandbox-Id",
                                       "E2b-Sandbox-Port"};
    for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
        if (strcasecmp(name, kept[i]) == 0)
            return false;
    if (strncasecmp(name, "Proxy-", strlen("Proxy-")) == 0)
        return false;
    return writer->open || strcasecmp(name, "Authorization") != 0;
}

/* The head was checked before: no value has control characters. */
static enum MHD_Result add_header(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct writer *writer = context;
    (void)kind;
    if (value && is_passed(writer, name))
        str_concat(writer->out, name, ": ", value, "\r\n");
    return MHD_YES;
}

/* HTTP/1.0: the answer ends with the connection, and its body is not encoded. */
static void write_request(struct exchange *exchange, unsigned port, const char *path,
                          struct str *out)
{
    struct writer writer = {.out = out, .open = exchange->route->flags & ROUTE_OPEN};
    str_concat(out, exchange->method, " ");
    append_encoded(out, *path ? path : "/", "/:@!$&'()*+,;=");
    (void)MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, add_parameter,
                                    &writer);
    str_appendf(out, " HTTP/1.0\r\nHost: localhost:%u\r\nConnection: close\r\n", port);
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, add_header, &writer);
    if (exchange->body.length > 0 || strcmp(exchange->method, "POST") == 0)
        str_appendf(out, "Content-Length: %zu\r\n", exchange->body.length);
    str_append(out, "\r\n");
    str_append_bytes(out, exchange->body.data, exchange->body.length);
}

/* ---- the answer ---- */

static const struct stream_form form = {.content_type = NULL}; /* it is one of the headers */

static void refuse(struct exchange *exchange, const char *message)
{
    str_done(&exchange->headers);
    answer_error(exchange, ERROR_PORT_CLOSED, message);
}

/* The head is complete; `bytes` are the first of the body. */
static void begin(struct exchange *exchange, const char *bytes, size_t length)
{
    if (stream_begin(exchange, &form, false) && length > 0)
        (void)stream_append(exchange->stream, bytes, length);
}

/* exchange->pending is what came of the head so far. */
static void take_head(struct exchange *exchange)
{
    struct str *pending = &exchange->pending;
    long used = 1;
    exchange->status = 0;
    while (used > 0 && exchange->status <= INTERIM_MAX) {
        str_done(&exchange->headers);
        used =
            port_head_read(pending->data, pending->length, &exchange->status, &exchange->headers);
        if (used > 0 && exchange->status <= INTERIM_MAX) {
            pending->length -= (size_t)used;
            memmove(pending->data, pending->data + used, pending->length);
        }
    }
    if (used > 0)
        begin(exchange, pending->data + used, pending->length - (size_t)used);
    else if (used < 0)
        refuse(exchange, "the program at this port does not answer with HTTP/1");
    if (used < 0 && exchange->ticket) /* ends the connection */
        sandbox_abandon(exchange->http, exchange->ticket);
}

static void add_piece(struct exchange *exchange, enum sandbox_piece kind, const char *bytes,
                      size_t length)
{
    if (kind != SANDBOX_STDOUT || exchange->state == EXCHANGE_ANSWER)
        return;
    if (exchange->stream) {
        if (!stream_append(exchange->stream, bytes, length))
            stream_abort(exchange->stream);
        return;
    }
    str_append_bytes(&exchange->pending, bytes, length);
    if (exchange->pending.failed)
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    else
        take_head(exchange);
}

/* The connection has ended, or there was none. */
static void answered(struct exchange *exchange, const struct sandbox_answer *answer)
{
    if (answer->more || exchange->state == EXCHANGE_ANSWER)
        return;
    if (exchange->stream)
        stream_finish(exchange->stream, "", 0);
    else
        refuse(exchange, exchange->pending.length > 0
                             ? "the program at this port closed the connection too early"
                             : NULL);
}

void ports_ask(struct exchange *exchange, unsigned port, const char *path)
{
    autostr struct str bytes = {0};
    write_request(exchange, port, path, &bytes);
    if (bytes.failed) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    exchange->piece = add_piece;
    sandbox_ask(exchange,
                &(struct sandbox_request){.operation = SANDBOX_RELAY,
                                          .command = port,
                                          .bytes = {bytes.data, bytes.length}},
                answered);
}

void ports_handle(struct exchange *exchange)
{
    uint64_t port = route_number(exchange->route, exchange->path);
    const char *path = strstr(exchange->path, "/ports/");
    path = path ? strchr(path + strlen("/ports/"), '/') : NULL;
    if (port == 0 || port > UINT16_MAX)
        answer_error(exchange, ERROR_NOT_FOUND, "a port is a number from 1 to 65535");
    else
        ports_ask(exchange, (unsigned)port, path ? path : "/");
}
