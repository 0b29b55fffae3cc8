/* SPDX-License-Identifier: MIT */
/* The interface to libmicrohttpd: connections, checks of every request, and its body. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "server/api/e2b.h"
#include "server/api/judge0.h"
#include "server/config/config.h"
#include "server/http/http.h"
#include "server/http/request.h"
#include "server/http/stream.h"
#include "server/http/tls.h"
#include "server/http/upgrade.h"

/* Memory of libmicrohttpd for a connection, in addition to the headers. */
#define POOL_EXTRA_BYTES 16384
/* GnuTLS enables TLS 1.0 by default, which RFC 8996 deprecates. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
/* A body that is too large is read up to this excess, so that the client gets the answer: if the
 * connection were closed at once, the kernel would reset it when more data arrives. */
#define EXCESS_BYTES_MAX ((uint64_t)64 << 20)

/* ---- Connections ---- */

/* Connections that are accepted beyond the limit while idle ones are closed for them. */
#define CONNECTIONS_SPARE 16

/* When there are as many connections as may be, an idle one is closed, so that probes and other
 * clients get in: first one of a client that has too many, otherwise the oldest. */
static void make_room(struct http *http)
{
    struct connection *connection, *victim = NULL;
    if (http->connection_count < http->connection_most)
        return;
    LIST_FOREACH(connection, &http->connections, link)
    if (!connection->busy && !connection->closing &&
        (!victim || connection->surplus || !victim->surplus))
        victim = connection;
    if (!victim)
        return;
    victim->closing = true;
    (void)shutdown(victim->fd, SHUT_RDWR); /* libmicrohttpd notices and closes */
}

/* Can be true only if there are more connections than one client may have. Clients of a UNIX socket
 * have no address. */
static bool is_surplus(const struct http *http, const struct net_address *address)
{
    uint64_t most = http->config->server.max_connections_per_client, count = 0;
    const struct connection *other;
    if (http->connection_count < most)
        return false;
    LIST_FOREACH(other, &http->connections, link)
    count += net_address_equal(&other->address, address);
    return count >= most;
}

static void begin_connection(struct http *http, struct MHD_Connection *library,
                             void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(library, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection = info ? calloc(1, sizeof *connection) : NULL;
    if (!connection)
        return; /* its first request is refused */
    connection->fd = info->connect_fd;
    info = MHD_get_connection_info(library, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct client client =
        clients_find(&http->clients, info ? info->client_addr : NULL, NULL);
    connection->address = client.address;
    connection->surplus = !str_equal(client.text, "unix") && is_surplus(http, &client.address);
    make_room(http);
    connection->deadline_ms = http->now_ms + http->config->server.header_timeout_ms;
    LIST_INSERT_HEAD(&http->connections, connection, link);
    http->connection_count++;
    *socket_context = connection;
}

static void end_connection(struct http *http, struct connection *connection)
{
    LIST_REMOVE(connection, link);
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
    struct connection *connection;
    LIST_FOREACH(connection, &http->connections, link)
    if (connection->deadline_ms && connection->deadline_ms <= http->now_ms) {
        connection->deadline_ms = 0;
        (void)shutdown(connection->fd, SHUT_RDWR);
    }
    struct exchange *exchange;
    LIST_FOREACH(exchange, &http->exchanges, link)
    if (exchange->stream) {
        stream_tick(exchange);
        if (exchange->dialect->tick)
            exchange->dialect->tick(exchange);
    } else if (exchange->upgrade)
        upgrade_tick(exchange);
}

/* ---- The head: libmicrohttpd accepts more than is safe behind a proxy ---- */

struct head {
    unsigned lengths, encodings, hosts;
    bool unsound;
};

/* RFC 9110, 5.6.2. */
static bool is_token(const char *text, size_t length)
{
    static const char signs[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return length > 0 && strnlen(text, length) == length && strspn(text, signs) >= length;
}

static bool has_control(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' && text[i] != '\t')
            return true;
    return false;
}

/* libmicrohttpd appends a folded line to the name of the previous header, so a name that only
 * begins like one of the checked headers is refused too. */
static bool begins_like(const char *name, const char *wanted)
{
    return strncasecmp(name, wanted, strlen(wanted)) == 0;
}

static enum MHD_Result look_at(void *context, enum MHD_ValueKind kind, const char *name,
                               size_t name_length, const char *value, size_t value_length)
{
    struct head *head = context;
    (void)kind;
    if (!is_token(name, name_length) || has_control(value, value_length)) {
        head->unsound = true;
        return MHD_NO;
    }
    head->hosts += strcasecmp(name, "Host") == 0;
    if (begins_like(name, "Content-Length")) {
        head->lengths++;
        head->unsound = head->unsound || strcasecmp(name, "Content-Length") != 0;
    } else if (begins_like(name, "Transfer-Encoding")) {
        head->encodings++;
        head->unsound = head->unsound || strcasecmp(name, "Transfer-Encoding") != 0 ||
                        strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* Returns false if a proxy might have parsed the head differently (request smuggling): several
 * lengths, names with blanks, values with control characters, two Host headers. */
static bool head_is_sound(struct MHD_Connection *connection)
{
    struct head head = {0};
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look_at, &head);
    return !head.unsound && head.lengths + head.encodings <= 1 && head.hosts <= 1;
}

static enum MHD_Result join_forwarded(void *context, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    struct str *out = context;
    (void)kind;
    if (strcasecmp(name, "X-Forwarded-For") == 0 && value)
        str_appendf(out, "%s%s", out->length > 0 ? "," : "", value);
    return MHD_YES;
}

/* ---- Checks of every request; each may answer it ---- */

static void take_request_id(struct exchange *exchange)
{
    const char *given = exchange_header(exchange, "X-Request-ID");
    size_t length = given ? strspn(given, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789-_.")
                          : 0;
    if (length > 0 && length <= HTTP_REQUEST_ID_MAX && !given[length])
        (void)snprintf(exchange->request_id, sizeof exchange->request_id, "%s", given);
    else
        execution_id_make(exchange->request_id);
}

/* One that is not valid is ignored, as W3C Trace Context asks for. */
static void take_traceparent(struct exchange *exchange)
{
    const char *given = exchange_header(exchange, "traceparent");
    if (given && execution_traceparent_is_valid(given))
        (void)snprintf(exchange->traceparent, sizeof exchange->traceparent, "%s", given);
}

static void find_client(struct exchange *exchange)
{
    const struct clients *clients = &exchange->http->clients;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    autostr struct str forwarded = {0};
    /* A proxy may add a second header after the client's. All of them are joined; only addresses
     * added by trusted proxies are believed. */
    if (clients->proxy_count > 0)
        (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, join_forwarded,
                                        &forwarded);
    exchange->client = clients_find(clients, info ? info->client_addr : NULL,
                                    forwarded.failed ? NULL : forwarded.data);
}

static bool check_host(struct exchange *exchange)
{
    const char *host = exchange->http->checks_host ? exchange_header(exchange, "Host") : NULL;
    /* A web page cannot know the token that these routes need. */
    bool token = (exchange->route->flags & ROUTE_OPEN) && (exchange->route->flags & ROUTE_FOREIGN);
    if (!host || clients_host_is_own(&exchange->http->config->server.hosts, host) || token ||
        exchange->route->flags & ROUTE_PROBE)
        return true;
    answer_error(exchange, ERROR_WRONG_HOST, NULL);
    return false;
}

static bool take_route(struct exchange *exchange, const struct route *route)
{
    exchange->route = route;
    if (route->dialect)
        exchange->dialect = route->dialect;
    return true;
}

static void answer_bad_id(struct exchange *exchange)
{
    char message[STR_SHOWN_MAX + 64], id[STR_SHOWN_MAX];
    const char *slash = strchr(exchange->path + 1, '/');
    (void)snprintf(id, sizeof id, "%.*s", slash ? (int)strcspn(slash + 1, "/") : 0,
                   slash ? slash + 1 : "");
    (void)snprintf(message, sizeof message,
                   "'%s' is not an id: an id is a UUID, as the server has returned it",
                   str_shown(id).text);
    answer_error(exchange, ERROR_INVALID_ID, message);
}

static bool find_route(struct exchange *exchange)
{
    char message[2 * STR_SHOWN_MAX + ROUTE_METHODS_MAX + 40], methods[ROUTE_METHODS_MAX] = "";
    const struct route *route = NULL;
    autostr struct str nothing = {0};
    if (e2b_find_host(exchange_header(exchange, "Host"), &route))
        return take_route(exchange, route);
    if (judge0_takes_path(exchange->path) && !exchange->http->config->judge0.enabled) {
        answer_error(exchange, ERROR_NOT_FOUND, "judge0.enabled is false");
        return false;
    }
    switch (route_find(exchange->method, exchange->path, &route, exchange->path_id)) {
    case ROUTE_FOUND:
        return take_route(exchange, route);
    case ROUTE_NO_PATH:
        (void)snprintf(message, sizeof message,
                       "unknown path '%s'; GET /openapi.json lists the paths",
                       str_shown(exchange->path).text);
        if (!e2b_answer_stray(exchange))
            answer_error(exchange, ERROR_NOT_FOUND, message);
        return false;
    case ROUTE_NO_METHOD:
        (void)route_methods(exchange->path, methods);
        (void)snprintf(message, sizeof message, "method %s is not allowed for %s; allowed are %s",
                       str_shown(exchange->method).text, str_shown(exchange->path).text, methods);
        answer_error(exchange, ERROR_METHOD_NOT_ALLOWED, message);
        return false;
    case ROUTE_BAD_ID:
        (void)take_route(exchange, route);
        answer_bad_id(exchange);
        return false;
    case ROUTE_OPTIONS:
        answer_text(exchange, MHD_HTTP_NO_CONTENT, NULL, &nothing);
        return false;
    }
    return false;
}

static bool check_connections(struct exchange *exchange)
{
    if (!exchange->socket->surplus || exchange->route->flags & ROUTE_PROBE)
        return true;
    exchange->closes = true;
    exchange->retry_after_s = 1;
    answer_error(exchange, ERROR_TOO_MANY_CONNECTIONS, NULL);
    return false;
}

static bool check_draining(struct exchange *exchange)
{
    if (exchange->route->flags & ROUTE_UNCOUNTED || !http_refuses(exchange->http))
        return true;
    answer_error(exchange, ERROR_SHUTTING_DOWN, NULL);
    return false;
}

/* Finds the API key of the request. Returns whether it may go on; a wrong key is refused only after
 * the rate of its client was checked, so that keys cannot be guessed quickly. */
static bool find_key(struct exchange *exchange, bool *ret_given)
{
    static const char bearer[] = "Bearer ";
    const struct config_list *keys = &exchange->http->config->security.allowed_keys;
    if (keys->count == 0 || exchange->route->flags & ROUTE_OPEN)
        return true;
    const char *key = exchange_header(exchange, "X-API-Key");
    if (!key && exchange->dialect->key_name)
        key = exchange_value(exchange, exchange->dialect->key_name);
    const char *authorization = key ? NULL : exchange_header(exchange, "Authorization");
    if (authorization && strncasecmp(authorization, bearer, sizeof bearer - 1) == 0)
        key = authorization + sizeof bearer - 1;
    else if (authorization && exchange->dialect->plain_key)
        key = authorization;
    *ret_given = key && *key;
    return key && clients_check_key(keys, key, exchange->domain);
}

/* A key with a rate of its own may use it from any address. */
static bool take_token(struct exchange *exchange, uint64_t *ret_wait_ms)
{
    const struct server_config *config = exchange->http->config;
    const typeof(config->security) *security = &config->security;
    size_t index = config_find_key(config, exchange->domain);
    const struct config_api_key *key = index < CONFIG_LIST_MAX ? &security->keys[index] : NULL;
    bool own = key && key->rate_limit_rps > 0;
    uint64_t per_second = own ? key->rate_limit_rps : security->key_rate_limit_rps;
    uint64_t burst = own ? key->rate_limit_burst : security->key_rate_limit_burst;
    struct rate *rate = exchange->http->rate;
    if (key && per_second > 0)
        return rate_take_key(rate, exchange->domain, per_second, burst, exchange->began_us,
                             ret_wait_ms);
    return rate_take(rate, &exchange->client.address, exchange->began_us, ret_wait_ms);
}

static bool check_rate(struct exchange *exchange)
{
    uint64_t wait_ms = 0;
    if (exchange->route->flags & ROUTE_UNCOUNTED || take_token(exchange, &wait_ms))
        return true;
    exchange->retry_after_s = (unsigned long)((wait_ms + 999) / 1000);
    answer_error(exchange, ERROR_RATE_LIMITED, NULL);
    return false;
}

static bool check_key(struct exchange *exchange)
{
    bool given = false, known = find_key(exchange, &given);
    if (!check_rate(exchange))
        return false;
    if (!known)
        answer_error(exchange, ERROR_UNAUTHORIZED,
                     given ? "this API key is not in security.allowed_keys"
                     : exchange->dialect->plain_key
                         ? "an API key is needed: send it as Authorization: KEY"
                         : NULL);
    return known;
}

bool exchange_is_form(const struct exchange *exchange)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = exchange_header(exchange, "Content-Type");
    return exchange->route->flags & ROUTE_FORM && *exchange->domain && type &&
           strncasecmp(type, form, sizeof form - 1) == 0;
}

/* Whether the head tells of one. */
static bool has_body(const struct exchange *exchange)
{
    const char *length = exchange_header(exchange, "Content-Length");
    return exchange_header(exchange, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

/* HTML forms cannot send this type: a browser asks with a preflight request first. */
static bool check_type(struct exchange *exchange)
{
    bool bytes = exchange->route->flags & ROUTE_BYTES;
    const char *wanted = bytes ? "application/octet-stream" : "application/json";
    const char *type = exchange_header(exchange, "Content-Type");
    if (!(exchange->route->flags & (ROUTE_BODY | ROUTE_BYTES)) || exchange_is_form(exchange) ||
        (type && strncasecmp(type, wanted, strlen(wanted)) == 0 &&
         strchr(" ;", type[strlen(wanted)]))) /* also matches the NUL */
        return true;
    if (!type && !bytes && !has_body(exchange))
        answer_error(exchange, ERROR_INVALID_JSON,
                     REQUEST_NO_BODY ", with Content-Type: application/json");
    else
        answer_error(exchange, ERROR_UNSUPPORTED_MEDIA_TYPE,
                     bytes ? "the body has to be sent with Content-Type: application/octet-stream"
                           : NULL);
    return false;
}

/* Browsers send a POST for any web page without a preflight request if its type is one that forms
 * have, or if it has no body. Where no API key is needed, this must not start anything. */
static bool check_page(struct exchange *exchange)
{
    static const char *const simple[] = {"text/plain", "multipart/form-data",
                                         "application/x-www-form-urlencoded"};
    const char *type = exchange_header(exchange, "Content-Type");
    bool unasked = !type;
    for (size_t i = 0; type && i < ARRAY_LENGTH(simple); i++)
        unasked = unasked || strncasecmp(type, simple[i], strlen(simple[i])) == 0;
    if (strcmp(exchange->method, MHD_HTTP_METHOD_POST) != 0 || !unasked || *exchange->domain ||
        exchange->route->flags & ROUTE_OPEN || !answer_is_for_foreign_page(exchange))
        return true;
    answer_error(exchange, ERROR_WRONG_ORIGIN, NULL);
    return false;
}

static void check_head(struct exchange *exchange)
{
    take_request_id(exchange);
    take_traceparent(exchange);
    find_client(exchange);
    (void)(find_route(exchange) && check_host(exchange) && check_connections(exchange) &&
           check_draining(exchange) && check_key(exchange) && check_type(exchange) &&
           check_page(exchange));
}

/* ---- Requests ---- */

static enum MHD_Result send_answer(struct exchange *exchange)
{
    if (exchange->gone)
        return MHD_NO;
    if (exchange->state == EXCHANGE_STREAM)
        return stream_send(exchange) == 0 ? MHD_YES : MHD_NO;
    if (exchange->state == EXCHANGE_UPGRADE) /* suspended, or over */
        return exchange->suspended ? MHD_YES : MHD_NO;
    if (exchange->state != EXCHANGE_ANSWER)
        return MHD_YES; /* suspended */
    int sent = answer_send(exchange);
    exchange->socket->deadline_ms = exchange->http->now_ms +
                                    exchange->http->config->server.idle_timeout_ms +
                                    exchange->sent_bytes / HTTP_BYTES_PER_MS_MIN;
    return sent == 0 ? MHD_YES : MHD_NO;
}

static void refuse_size(struct exchange *exchange)
{
    char text[96];
    (void)snprintf(text, sizeof text, "the body is larger than %llu bytes",
                   (unsigned long long)exchange->http->config->server.max_body_bytes);
    str_done(&exchange->body);
    answer_error(exchange, ERROR_BODY_TOO_LARGE, text);
}

/* A connection keeps its place while it has a request that was not refused and that needs a key; until
 * the request is `whole`, only if a body is expected. A client without a key could otherwise take all
 * places by sending bodies or reading answers slowly. */
static void note_busy(struct exchange *exchange, bool whole)
{
    unsigned flags = exchange->route ? exchange->route->flags : ROUTE_OPEN;
    exchange->socket->busy = exchange->state == EXCHANGE_BODY &&
                             (whole ? !(flags & ROUTE_OPEN) : (flags & ROUTE_BODY) != 0);
}

static uint64_t announced_bytes(const struct exchange *exchange)
{
    const char *length = exchange_header(exchange, "Content-Length");
    return length ? strtoull(length, NULL, 10) : 0;
}

/* The credential was checked: the body is read, or the request is refused. An answer sent now closes
 * the connection without reading the body. This is done for clients that wait for 100 Continue, for
 * bodies that are far too large, and if the end of the body is not known. */
static enum MHD_Result end_head(struct exchange *exchange)
{
    const struct server_config *config = exchange->http->config;
    exchange->admitting = false;
    if (exchange->gone)
        return MHD_NO;
    exchange->socket->deadline_ms = exchange->http->now_ms + config->server.header_timeout_ms;
    note_busy(exchange, false);
    bool unread = exchange_header(exchange, "Expect") ||
                  announced_bytes(exchange) > config->server.max_body_bytes + EXCESS_BYTES_MAX;
    return unread && exchange->state == EXCHANGE_ANSWER ? send_answer(exchange) : MHD_YES;
}

/* The head is complete. If it has a credential that another process has to check, the connection is
 * suspended, and libmicrohttpd reads nothing of the body meanwhile. */
static enum MHD_Result begin_request(struct exchange *exchange)
{
    uint64_t announced = announced_bytes(exchange);
    check_head(exchange);
    if (!head_is_sound(exchange->connection)) {
        answer_error(exchange, ERROR_MALFORMED_REQUEST, NULL);
        exchange->closes = true;
        return send_answer(exchange);
    }
    if (announced > exchange->http->config->server.max_body_bytes)
        refuse_size(exchange);
    bool has_body = announced > 0 || exchange_header(exchange, "Transfer-Encoding");
    if (has_body && exchange->state == EXCHANGE_BODY && exchange->route->admit) {
        exchange->admitting = true;
        exchange->route->admit(exchange);
    }
    return exchange->suspended ? MHD_YES : end_head(exchange);
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
        return MHD_YES; /* already refused: read and discard */
    if (exchange->body_bytes > config->server.max_body_bytes) {
        refuse_size(exchange);
        return MHD_YES;
    }
    /* Other routes, among them those that need no credential, do not use it. */
    if (!(exchange->route->flags & (ROUTE_BODY | ROUTE_BYTES | ROUTE_FOREIGN)))
        return MHD_YES;
    bool room = exchange_charge(exchange, length);
    if (room)
        str_append_bytes(&exchange->body, bytes, length);
    if (!room || exchange->body.failed) {
        str_done(&exchange->body);
        answer_error(exchange, ERROR_OVERLOADED, NULL);
    }
    return MHD_YES;
}

/* RFC 9112, 3.2.2: a server also accepts the form that proxies are sent, http://HOST/PATH. */
static const char *path_of(const char *url)
{
    size_t scheme = str_starts_with(url, "http://")    ? strlen("http://")
                    : str_starts_with(url, "https://") ? strlen("https://")
                                                       : 0;
    const char *path = scheme ? strchr(url + scheme, '/') : url;
    return path ? path : "/";
}

static enum MHD_Result handle_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_length, void **state)
{
    struct exchange *exchange = *state;
    if (!exchange) {
        exchange = exchange_new(context, connection, method, path_of(url));
        if (!exchange)
            return MHD_NO;
        *state = exchange;
        exchange->http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
        return begin_request(exchange);
    }
    if (exchange->admitting)
        return end_head(exchange);
    if (*upload_length > 0) {
        enum MHD_Result result = take_body(exchange, upload, *upload_length);
        note_busy(exchange, false);
        *upload_length = 0;
        return result;
    }
    if (exchange->state == EXCHANGE_BODY) {
        note_busy(exchange, true);
        exchange->route->handle(exchange);
    }
    return send_answer(exchange);
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
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK && !exchange->upgrade)
        exchange_gone(exchange);
    exchange->socket->deadline_ms = http->now_ms + http->config->server.idle_timeout_ms;
    exchange->socket->busy = false;
    unsigned status = exchange->gone ? 499 : exchange->status;
    metrics_request(&exchange->http->metrics, exchange->route, status,
                    (double)(clock_now_us() - exchange->began_us) / 1e6);
    if (exchange->error && !exchange->gone)
        exchange->http->metrics.errors[exchange->error]++;
    access_log_add(&exchange->http->log, exchange, status);
    exchange_free(exchange);
}

/* ---- The daemon ---- */

int daemon_start(struct http *http, struct brig_error *err)
{
    const struct server_config *config = http->config;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO;
    unsigned idle_s = (unsigned)((config->server.idle_timeout_ms + 999) / 1000);
    int listening = fcntl(http->listener, F_GETFL);
    if (listening < 0 || fcntl(http->listener, F_SETFL, listening | O_NONBLOCK) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot use the listening socket");
    const struct MHD_OptionItem secured[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_callback()},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    if (http->tls)
        flags |= MHD_USE_TLS;
    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle_request, http, MHD_OPTION_LISTEN_SOCKET, http->listener,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)http->connection_most + CONNECTIONS_SPARE,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
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
    /* libmicrohttpd cannot stop while a connection is suspended; the process exits without it. */
    const struct exchange *exchange;
    LIST_FOREACH(exchange, &http->exchanges, link)
    if (exchange->suspended)
        return;
    if (http->daemon)
        MHD_stop_daemon(take_ptr(&http->daemon));
}
