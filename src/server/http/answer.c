/* SPDX-License-Identifier: MIT */
/* Requests and their answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "server/config/config.h"
#include "server/http/async.h"
#include "server/http/http.h"
#include "server/http/sandbox.h"
#include "server/http/stream.h"
#include "server/http/upgrade.h"
#include "server/http/web.h"

/* ---- Exchanges ---- */

struct exchange *exchange_new(struct http *http, struct MHD_Connection *connection,
                              const char *method, const char *path)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    exchange->http = http;
    exchange->connection = connection;
    exchange->socket = info ? info->socket_context : NULL;
    exchange->dialect = &execute_own;
    exchange->method = method;
    exchange->path = strdup(path);
    exchange->began_us = clock_now_us();
    if (exchange->socket)
        exchange->socket->busy = true;
    LIST_INSERT_HEAD(&http->exchanges, exchange, link);
    if (!exchange->path || !exchange->socket) {
        exchange_free(exchange);
        return NULL;
    }
    return exchange;
}

void exchange_free(struct exchange *exchange)
{
    if (exchange->ticket)
        exchange->ticket->exchange = NULL;
    LIST_REMOVE(exchange, link);
    exchange->charged += exchange->held;
    exchange_release(exchange);
    if (exchange->stream)
        stream_free(exchange->stream);
    str_done(&exchange->body);
    str_done(&exchange->answer);
    str_done(&exchange->pending);
    upgrade_free(exchange);
    str_done(&exchange->headers);
    if (exchange->kept)
        exchange->free_kept(exchange->kept);
    free(exchange->path);
    free(exchange);
}

static bool count_bytes(struct http *http, size_t bytes, size_t *count)
{
    if (bytes > HTTP_MEMORY_MAX - http->memory)
        return false;
    http->memory += bytes;
    *count += bytes;
    return true;
}

bool exchange_charge(struct exchange *exchange, size_t bytes)
{
    return count_bytes(exchange->http, bytes, &exchange->charged);
}

bool exchange_hold(struct exchange *exchange, size_t bytes)
{
    return count_bytes(exchange->http, bytes, &exchange->held);
}

void exchange_release(struct exchange *exchange)
{
    exchange->http->memory -= exchange->charged;
    exchange->charged = 0;
}

/* libmicrohttpd does not watch the socket of a suspended connection, so the loop does: it wakes when
 * the client disconnects or shuts down its sending side; after the latter, only when it disconnects.
 * EPOLLHUP and EPOLLERR are always reported. */
static void watch_end(const struct exchange *exchange)
{
    struct epoll_event event = {.events = EPOLLONESHOT | (exchange->half_closed ? 0 : EPOLLRDHUP),
                                .data.u64 = LOOP_END + exchange->ticket->tag};
    int epoll = exchange->http->epoll, fd = exchange->socket->fd;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        (void)epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

const char *exchange_header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

const char *exchange_parameter(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *exchange_value(const struct exchange *exchange, const char *name)
{
    const char *value = exchange_header(exchange, name);
    return value ? value : exchange_parameter(exchange, name);
}

void exchange_suspend(struct exchange *exchange)
{
    if (exchange->upgrade) /* it is already */
        return;
    if (exchange->suspended) { /* another question of the same exchange */
        if (exchange->ticket)
            watch_end(exchange);
        return;
    }
    exchange->suspended = true;
    exchange->socket->deadline_ms = 0;
    if (exchange->ticket)
        watch_end(exchange);
    MHD_suspend_connection(exchange->connection);
}

void exchange_resume(struct exchange *exchange)
{
    if (!exchange->suspended || exchange->upgrade) /* upgrade.c resumes it at the end */
        return;
    exchange->suspended = false;
    (void)epoll_ctl(exchange->http->epoll, EPOLL_CTL_DEL, exchange->socket->fd, NULL);
    MHD_resume_connection(exchange->connection);
}

/* After shutdown(2) a client may still wait for its answer, or it may be gone. To find out, send an
 * interim response: if the client is gone, its kernel answers with a reset. HTTP/1.0 has no interim
 * responses, so its runs continue to their end. TLS always ends both directions. */
void exchange_half_closed(struct exchange *exchange)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (exchange->http->tls) {
        exchange_gone(exchange);
        return;
    }
    exchange->half_closed = true;
    if (exchange->stream) {
        stream_comment(exchange->stream);
        exchange_resume(exchange);
        return;
    }
    watch_end(exchange);
    if (!exchange->http_1_0)
        (void)send(exchange->socket->fd, interim, sizeof interim - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void exchange_abandon(struct exchange *exchange)
{
    struct ticket *ticket = take_ptr(&exchange->ticket);
    if (!ticket)
        return;
    ticket->exchange = NULL;
    if (ticket->kind == TICKET_RUN)
        execute_abandon(exchange->http, ticket);
    else if (ticket->kind == TICKET_WAIT)
        ticket_free(exchange->http, ticket);
    else if (ticket->kind == TICKET_SANDBOX)
        sandbox_abandon(exchange->http, ticket);
}

void exchange_gone(struct exchange *exchange)
{
    exchange->gone = true;
    exchange_abandon(exchange);
    exchange_resume(exchange);
}

/* ---- Setting an answer ---- */

void answer_text(struct exchange *exchange, unsigned status, const char *content_type,
                 struct str *text)
{
    str_done(&exchange->answer);
    exchange->answer = *text;
    str_init(text);
    exchange->status = status;
    exchange->content_type = content_type;
    exchange->state = EXCHANGE_ANSWER;
    if (exchange->answer.failed)
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    else
        exchange_resume(exchange);
}

void answer_json(struct exchange *exchange, unsigned status, struct str *text)
{
    str_append_char(text, '\n');
    answer_text(exchange, status, "application/json", text);
}

void answer_own_error(struct exchange *exchange, enum http_error error, const char *field,
                      const char *message)
{
    const struct error_row *row = error_row(error);
    autostr struct str text = {0};
    struct json j;
    json_init(&j, &text);
    json_open_object(&j, NULL);
    json_text(&j, "error", message ? message : row->text);
    json_text(&j, "code", row->code);
    if (field && *field)
        json_text(&j, "field", field);
    if (*exchange->execution_id)
        json_text(&j, "id", exchange->execution_id);
    json_text(&j, "request_id", exchange->request_id);
    json_close_object(&j);
    if (exchange->stream) {
        stream_end(exchange->stream, "error", text.failed ? NULL : text.data);
    } else if (text.failed) { /* out of memory: send the status only */
        str_done(&text);
        answer_text(exchange, row->status, NULL, &text);
    } else {
        answer_json(exchange, row->status, &text);
    }
}

void answer_field_error(struct exchange *exchange, enum http_error error, const char *field,
                        const char *message)
{
    exchange->error = error;
    if (error_row(error)->status == MHD_HTTP_SERVICE_UNAVAILABLE)
        exchange->retry_after_s = 1;
    exchange->dialect->fail(exchange, error, field, message);
}

void answer_error(struct exchange *exchange, enum http_error error, const char *message)
{
    answer_field_error(exchange, error, NULL, message);
}

/* ---- Sending an answer ---- */

/* Answers are data for the client program only: a browser must not cache, frame or interpret
 * them. */
static const struct {
    const char *name, *value;
} fixed_headers[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-store"},
};

static void add(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

bool answer_allows_origin(const struct exchange *exchange, const char *origin)
{
    const struct config_list *origins = &exchange->http->config->server.cors_origins;
    for (size_t i = 0; i < origins->count; i++)
        if (str_equal(origins->items[i], "*") || str_equal(origins->items[i], origin))
            return true;
    return false;
}

bool answer_is_for_foreign_page(const struct exchange *exchange)
{
    const char *origin = exchange_header(exchange, "Origin");
    const char *host = exchange_header(exchange, "Host");
    const char *own = origin ? strstr(origin, "://") : NULL;
    return origin && !answer_allows_origin(exchange, origin) &&
           !(own && host && strcasecmp(own + 3, host) == 0);
}

/* Without an Access-Control-Allow-Origin header, browsers refuse web pages of other origins;
 * server.cors_origins lists the exceptions. */
static void add_cors(const struct exchange *exchange, struct MHD_Response *response,
                     const char *methods)
{
    if (exchange->http->config->server.cors_origins.count == 0)
        return;
    const char *origin = exchange_header(exchange, "Origin");
    add(response, "Vary", "Origin");
    if (!origin || !answer_allows_origin(exchange, origin))
        return;
    add(response, "Access-Control-Allow-Origin", origin);
    add(response, "Access-Control-Expose-Headers",
        "X-Request-ID, X-Execution-ID, Retry-After, Mcp-Session-Id");
    if (!methods)
        return;
    add(response, "Access-Control-Allow-Methods", methods);
    add(response, "Access-Control-Allow-Headers",
        "Authorization, Content-Type, Idempotency-Key, X-API-Key, X-Auth-Token, X-Auth-User, "
        "X-Request-ID, tokens, traceparent, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, "
        "Mcp-Name");
    add(response, "Access-Control-Max-Age", "600");
}

static void add_headers(const struct exchange *exchange, struct MHD_Response *response)
{
    char methods[ROUTE_METHODS_MAX];
    bool options = strcmp(exchange->method, MHD_HTTP_METHOD_OPTIONS) == 0;
    bool known = route_methods(exchange->path, methods);
    for (size_t i = 0; i < ARRAY_LENGTH(fixed_headers); i++)
        add(response, fixed_headers[i].name, fixed_headers[i].value);
    bool page = exchange->route && exchange->route->flags & ROUTE_PAGE;
    add(response, "Content-Security-Policy",
        page ? WEB_POLICY : "default-src 'none'; form-action 'none'; frame-ancestors 'none'");
    add(response, "X-Request-ID", exchange->request_id);
    if (exchange->content_type)
        add(response, "Content-Type", exchange->content_type);
    if (*exchange->execution_id)
        add(response, "X-Execution-ID", exchange->execution_id);
    for (const char *name = str_list_next(&exchange->headers, NULL), *value; name;
         name = str_list_next(&exchange->headers, value)) {
        value = str_list_next(&exchange->headers, name);
        add(response, name, value);
    }
    if (exchange->replayed)
        add(response, "Idempotency-Replayed", "true");
    if (exchange->retry_after_s)
        add(response, "Retry-After", str_number(exchange->retry_after_s).text);
    if (exchange->status == MHD_HTTP_UNAUTHORIZED)
        add(response, "WWW-Authenticate", "Bearer");
    if (exchange->http->tls)
        add(response, "Strict-Transport-Security", "max-age=31536000");
    if (exchange->http->draining || exchange->closes)
        add(response, "Connection", "close");
    if (known && (options || exchange->status == MHD_HTTP_METHOD_NOT_ALLOWED))
        add(response, "Allow", methods);
    add_cors(exchange, response, options && known ? methods : NULL);
}

int answer_queue(struct exchange *exchange, struct MHD_Response *response)
{
    if (!response)
        return -1;
    add_headers(exchange, response);
    enum MHD_Result queued = MHD_queue_response(exchange->connection, exchange->status, response);
    MHD_destroy_response(response);
    exchange->state = EXCHANGE_ANSWERED;
    return queued == MHD_YES ? 0 : -1;
}

int answer_send(struct exchange *exchange)
{
    struct str *text = &exchange->answer;
    /* Large answers are charged only now, and refused if the memory is used up; small ones are
     * always sent. */
    if (text->length > MESSAGE_PIECE_MAX && !exchange_charge(exchange, text->length)) {
        str_done(text);
        answer_error(exchange, ERROR_OVERLOADED,
                     "the answer is too large for now; GET /executions/{id} has it");
    }
    exchange->sent_bytes = text->length;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text->length, text->data, MHD_RESPMEM_MUST_FREE);
    if (response)
        str_init(text); /* libmicrohttpd frees it */
    return answer_queue(exchange, response);
}
