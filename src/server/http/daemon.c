/* SPDX-License-Identifier: MIT */
/* Between libmicrohttpd and us: connections, what every request goes through, its body. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config.h"
#include "server/http/answer.h"
#include "server/http/cors.h"
#include "server/http/head.h"
#include "server/http/http.h"
#include "server/http/linger.h"
#include "server/http/rate.h"
#include "server/http/route.h"
#include "server/http/stream.h"
#include "server/http/tls.h"

/* What the library needs of a connection's memory beside the headers. */
#define POOL_EXTRA_BYTES 16384
/* What GnuTLS would speak by itself goes back to TLS 1.0 (RFC 8996 does away with it). */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
/* A body of unknown length that is too large is read on for this much, so that the answer arrives. */
#define EXCESS_BYTES_MAX ((uint64_t)16 << 20)

static const char *header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* ---- Connections ---- */

static void begin_connection(struct http *http, struct MHD_Connection *library,
                             void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(library, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection || !info) {
        free(connection);
        return; /* its first request is refused */
    }
    connection->http = http;
    connection->fd = info->connect_fd;
    connection->deadline_ms = http->now_ms + http->config->server.header_timeout_ms;
    connection->next = http->connections;
    if (http->connections)
        http->connections->previous = connection;
    http->connections = connection;
    http->connection_count++;
    *socket_context = connection;
}

static void end_connection(struct http *http, struct connection *connection)
{
    if (connection->drain && !http->tls)
        linger_add(http, connection->fd);
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        http->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    http->connection_count--;
    free(connection);
}

static void note_connection(void *context, struct MHD_Connection *library, void **socket_context,
                            enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        begin_connection(context, library, socket_context);
    else if (*socket_context)
        end_connection(context, *socket_context);
}

void daemon_tick(struct http *http)
{
    for (struct connection *connection = http->connections; connection;
         connection = connection->next)
        if (connection->deadline_ms && connection->deadline_ms <= http->now_ms) {
            connection->deadline_ms = 0;
            (void)shutdown(connection->fd, SHUT_RDWR); /* the library sees it, and ends it */
        }
    struct exchange *next;
    for (struct exchange *exchange = http->exchanges; exchange; exchange = next) {
        next = exchange->next;
        stream_tick(exchange);
    }
}

/* ---- What every request goes through; each may answer it ---- */

static bool is_request_id(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789-_.");
    return length > 0 && length <= HTTP_REQUEST_ID_MAX && !text[length];
}

static void take_request_id(struct exchange *exchange)
{
    const char *given = header(exchange, "X-Request-ID");
    if (given && is_request_id(given))
        (void)snprintf(exchange->request_id, sizeof exchange->request_id, "%s", given);
    else
        execution_id_make(exchange->request_id);
}

static void find_client(struct exchange *exchange)
{
    const struct clients *clients = &exchange->http->clients;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    autostr struct str forwarded = {0};
    /* A proxy may add a line of its own behind that of its client, which is not to be believed. */
    if (clients->proxy_count > 0 || clients->trusts_unix)
        head_join(exchange->connection, "X-Forwarded-For", &forwarded);
    exchange->client = clients_find(clients, info ? info->client_addr : NULL,
                                    forwarded.failed ? NULL : forwarded.data);
}

static bool check_host(struct exchange *exchange)
{
    const char *host = exchange->http->tells_hosts ? header(exchange, "Host") : NULL;
    if (!host || cors_host_is_own(host))
        return true;
    answer_error(exchange, ERROR_WRONG_HOST, NULL);
    return false;
}

static void answer_no_path(struct exchange *exchange)
{
    char message[STR_SHOWN_MAX + 80];
    (void)snprintf(message, sizeof message, "unknown path '%s'; GET /openapi.json lists the paths",
                   str_shown(exchange->path).text);
    answer_error(exchange, ERROR_NOT_FOUND, message);
}

static void answer_no_method(struct exchange *exchange)
{
    char message[2 * STR_SHOWN_MAX + ROUTE_METHODS_MAX + 40], methods[ROUTE_METHODS_MAX] = "";
    (void)route_methods(exchange->path, methods);
    (void)snprintf(message, sizeof message, "%s is not for %s, which has %s",
                   str_shown(exchange->method).text, str_shown(exchange->path).text, methods);
    answer_error(exchange, ERROR_METHOD_NOT_ALLOWED, message);
}

/* The last part of its path. */
static void answer_bad_id(struct exchange *exchange)
{
    char message[STR_SHOWN_MAX + 96];
    const char *slash = strrchr(exchange->path, '/');
    (void)snprintf(
        message, sizeof message,
        "'%s' is not an id: an id is a UUID, as POST /execute and GET /executions return it",
        str_shown(slash ? slash + 1 : exchange->path).text);
    answer_error(exchange, ERROR_INVALID_ID, message);
}

static bool find_route(struct exchange *exchange)
{
    switch (route_find(exchange->method, exchange->path, &exchange->route, exchange->path_id)) {
    case ROUTE_FOUND:
        return true;
    case ROUTE_NO_PATH:
        answer_no_path(exchange);
        return false;
    case ROUTE_NO_METHOD:
        answer_no_method(exchange);
        return false;
    case ROUTE_BAD_ID:
        answer_bad_id(exchange);
        return false;
    case ROUTE_OPTIONS:
        answer_empty(exchange, MHD_HTTP_NO_CONTENT);
        return false;
    }
    return false;
}

static bool check_rate(struct exchange *exchange)
{
    struct http *http = exchange->http;
    uint64_t wait_ms = 0;
    if (exchange->route && exchange->route->flags & ROUTE_UNCOUNTED)
        return true;
    if (rate_take(http->rate, &exchange->client.address, exchange->began_us, &wait_ms))
        return true;
    http->metrics.rate_limited++;
    answer_retry_after(exchange, (unsigned long)((wait_ms + 999) / 1000));
    answer_error(exchange, ERROR_RATE_LIMITED, NULL);
    return false;
}

static const char *given_key(const struct exchange *exchange)
{
    static const char bearer[] = "Bearer ";
    const char *key = header(exchange, "X-API-Key");
    const char *authorization = key ? NULL : header(exchange, "Authorization");
    if (authorization && strncasecmp(authorization, bearer, sizeof bearer - 1) == 0)
        key = authorization + sizeof bearer - 1;
    return key ? key : "";
}

static bool check_key(struct exchange *exchange)
{
    const struct keys *keys = &exchange->http->keys;
    if (keys->count == 0 || exchange->route->flags & ROUTE_OPEN)
        return true;
    const char *key = given_key(exchange);
    if (keys_check(keys, key, strlen(key), exchange->domain, &exchange->key))
        return true;
    answer_error(exchange, ERROR_UNAUTHORIZED,
                 *key ? "this API key is not in security.allowed_keys" : NULL);
    return false;
}

/* A form of a web page cannot have this type: a browser would ask first. */
static bool check_type(struct exchange *exchange)
{
    static const char json[] = "application/json";
    const char *type = header(exchange, "Content-Type");
    if (!(exchange->route->flags & ROUTE_BODY) ||
        (type && strncasecmp(type, json, sizeof json - 1) == 0 &&
         strchr(" ;", type[sizeof json - 1]))) /* finds the NUL as well */
        return true;
    answer_error(exchange, ERROR_UNSUPPORTED_MEDIA_TYPE, NULL);
    return false;
}

static void refuse_size(struct exchange *exchange)
{
    char text[96];
    (void)snprintf(text, sizeof text, "the body is larger than %llu bytes",
                   (unsigned long long)exchange->http->config->server.max_body_bytes);
    str_done(&exchange->body);
    answer_error(exchange, ERROR_BODY_TOO_LARGE, text);
}

/* True if it has one that is too large. */
static bool is_too_large(const struct exchange *exchange, const char *length)
{
    return length && strtoull(length, NULL, 10) > exchange->http->config->server.max_body_bytes;
}

/* ---- Requests ---- */

/* What was made is handed over. */
static enum MHD_Result send_answer(struct exchange *exchange)
{
    const struct server_config *config = exchange->http->config;
    struct connection *socket = exchange->socket;
    int sent = 0;
    if (exchange->gone)
        return MHD_NO;
    if (exchange->state == EXCHANGE_STREAM)
        return stream_send(exchange) == 0 ? MHD_YES : MHD_NO;
    if (exchange->state != EXCHANGE_ANSWER)
        return MHD_YES; /* suspended */
    sent = answer_send(exchange);
    socket->deadline_ms = exchange->http->now_ms + config->server.idle_timeout_ms +
                          exchange->sent_bytes / HTTP_BYTES_PER_MS_MIN;
    return sent == 0 ? MHD_YES : MHD_NO;
}

static bool prepare(struct exchange *exchange)
{
    take_request_id(exchange);
    find_client(exchange);
    return check_host(exchange) && find_route(exchange) && check_rate(exchange) &&
           check_key(exchange) && check_type(exchange);
}

/* The head is there. An answer now would close the connection, as what follows is not read then: that
 * is for bodies that are not to come at all. */
static enum MHD_Result begin_request(struct exchange *exchange)
{
    exchange->socket->deadline_ms =
        exchange->http->now_ms + exchange->http->config->server.header_timeout_ms;
    (void)prepare(exchange);
    if (!head_is_sound(exchange->connection)) {
        answer_error(exchange, ERROR_MALFORMED_REQUEST, NULL);
        exchange->closes = exchange->socket->drain = true;
        return send_answer(exchange);
    }
    if (is_too_large(exchange, header(exchange, "Content-Length"))) {
        refuse_size(exchange);
        exchange->socket->drain = true;
        return send_answer(exchange);
    }
    bool refused = exchange->state == EXCHANGE_ANSWER;
    return refused && header(exchange, "Expect") ? send_answer(exchange) : MHD_YES;
}

static enum MHD_Result take_body(struct exchange *exchange, const char *bytes, size_t length)
{
    const struct server_config *config = exchange->http->config;
    exchange->body_bytes += length;
    exchange->socket->deadline_ms = exchange->began_us / 1000 + config->server.header_timeout_ms +
                                    exchange->body_bytes / HTTP_BYTES_PER_MS_MIN;
    if (exchange->body_bytes > config->server.max_body_bytes + EXCESS_BYTES_MAX)
        return MHD_NO;
    if (exchange->state != EXCHANGE_BODY)
        return MHD_YES; /* it is refused, and read away */
    if (exchange->body_bytes > config->server.max_body_bytes) {
        refuse_size(exchange);
        return MHD_YES;
    }
    bool room = exchange_charge(exchange, length);
    if (room)
        str_append_bytes(&exchange->body, bytes, length);
    if (!room || exchange->body.failed) {
        str_done(&exchange->body);
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    }
    return MHD_YES;
}

static enum MHD_Result handle_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_length, void **state)
{
    struct exchange *exchange = *state;
    if (!exchange) {
        exchange = exchange_new(context, connection, method, url);
        if (!exchange)
            return MHD_NO;
        *state = exchange;
        exchange->http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
        return begin_request(exchange);
    }
    if (*upload_length > 0) {
        enum MHD_Result result = take_body(exchange, upload, *upload_length);
        *upload_length = 0;
        return result;
    }
    if (exchange->state == EXCHANGE_BODY)
        exchange->route->handle(exchange);
    return send_answer(exchange);
}

static void log_request(const struct exchange *exchange)
{
    const struct access_line line = {
        .request_id = exchange->request_id,
        .client = exchange->client.text,
        .method = exchange->method,
        .path = exchange->path,
        .execution_id = exchange->execution_id,
        .domain = exchange->domain,
        .status = exchange->gone ? 499 : exchange->status,
        .bytes_in = exchange->body_bytes,
        .bytes_out = exchange->sent_bytes,
        .duration_us = clock_now_us() - exchange->began_us,
        .began_us = exchange->began_us,
        .trace = exchange->http->config->server.trace ? &exchange->trace : NULL};
    metrics_request(&exchange->http->metrics, line.status);
    access_log_add(&exchange->http->log, &line);
}

static void end_request(void *context, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code)
{
    const struct http *http = context;
    struct exchange *exchange = *state;
    (void)connection;
    *state = NULL;
    if (!exchange)
        return;
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        exchange_gone(exchange);
    exchange->socket->deadline_ms = http->now_ms + http->config->server.idle_timeout_ms;
    log_request(exchange);
    exchange_free(exchange);
}

/* ---- The daemon ---- */

static unsigned seconds_of(uint64_t ms)
{
    return (unsigned)((ms + 999) / 1000);
}

int daemon_start(struct http *http, struct brig_error *err)
{
    const struct server_config *config = http->config;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO;
    int listening = fcntl(http->listener, F_GETFL);
    if (listening < 0 || fcntl(http->listener, F_SETFL, listening | O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot use the listening socket");
    const struct MHD_OptionItem secured[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_callback(http->tls)},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    if (http->tls)
        flags |= MHD_USE_TLS;
    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle_request, http, MHD_OPTION_LISTEN_SOCKET, http->listener,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)config->server.max_connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)config->server.max_connections_per_client,
        MHD_OPTION_CONNECTION_TIMEOUT, seconds_of(config->server.idle_timeout_ms),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)config->server.max_header_bytes + POOL_EXTRA_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
        end_request, http, MHD_OPTION_NOTIFY_CONNECTION, note_connection, http,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
        http->tls ? secured : plain, MHD_OPTION_END);
    if (!http->daemon)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "libmicrohttpd cannot be started");
    return 0;
}

void daemon_stop(struct http *http)
{
    /* The library does not stop while somebody is suspended; then the process ends all of it. */
    for (const struct exchange *exchange = http->exchanges; exchange; exchange = exchange->next)
        if (exchange->suspended)
            return;
    if (http->daemon)
        MHD_stop_daemon(take_ptr(&http->daemon));
}
