/* SPDX-License-Identifier: MIT */
/* Checks what a client sends about its destination, and sends refusals.
 *
 * The first bytes of a connection must match its destination: TLS on port 443 and where a rule
 * requests it, HTTP on port 80. If everything is allowed except some names, only these names are
 * looked for; but a connection to an address that did not come from a name must say which name it
 * is for.
 *
 * Programs that use a proxy get one: HTTP (CONNECT, and plain requests with an absolute URI) and
 * SOCKS5. The proxy protocol only provides the destination; the same checks apply to all
 * connections. */
#include "net/broker_connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "net/client_hello.h"
#include "net/http.h"
#include "net/socks.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

/* ---- Inspection ---- */

enum connection_inspect inspect_choose(const struct connection *connection, bool tls_rule)
{
    const struct broker_config *config = &connection->broker->config;
    bool all = config->open || (connection->rule && connection->rule->kind == NET_RULE_ANY);
    bool tls = tls_rule || connection->port == HTTPS_PORT;
    if (!tls && (connection->rewritten || connection->port != HTTP_PORT))
        return INSPECT_NOTHING; /* a plain proxy request was parsed already */
    if (all && !tls_rule) {
        if (!config->watches_names)
            return INSPECT_NOTHING;
        return tls ? WATCH_TLS : WATCH_HTTP;
    }
    if (!connection->has_name || (connection->rule && connection->rule->kind == NET_RULE_HOST))
        return INSPECT_NOTHING; /* there is no name to compare with */
    return tls ? INSPECT_TLS : INSPECT_HTTP;
}

bool inspect_must_name(const struct connection *connection)
{
    const struct broker_config *config = &connection->broker->config;
    bool granted = connection->rule && (connection->rule->kind == NET_RULE_RANGE ||
                                        connection->rule->kind == NET_RULE_HOST);
    return config->denies_names && !connection->has_name && !granted;
}

static void refuse(struct connection *connection, enum door_because because, const char *detail)
{
    connection_refuse(connection, DOOR_DENIED, because, detail);
}

static void refuse_other(struct connection *connection, enum door_because because, const char *what,
                         const char *other)
{
    char detail[DOOR_DETAIL_MAX];
    (void)snprintf(detail, sizeof detail, "%s '%.200s'", what, other);
    refuse(connection, because, detail);
}

/* Whether the rules deny this name, which is not the one connected to. */
static bool is_denied(struct connection *connection, const char *name)
{
    const struct broker_config *config = &connection->broker->config;
    struct net_verdict verdict = net_rules_name(&config->rules, name, connection->port);
    if (verdict.reason != NET_DENIED)
        return false;
    connection->rule = verdict.rule;
    (void)snprintf(connection->name, sizeof connection->name, "%s", name);
    const char *detail;
    enum door_because because = broker_config_because(config, name, verdict.reason, &detail);
    refuse(connection, because, detail);
    return true;
}

/* Browsers send an encrypted client hello, real or GREASE, with every connection to a name, so it
 * cannot be refused there. They do not send one with a connection to an address. */
static void watch_hello(struct connection *connection, const struct client_hello *hello)
{
    if (!hello->has_name && connection->broker->config.denies_names)
        refuse(connection, DOOR_BECAUSE_NO_SNI,
               "TLS without a server name, while a name is denied");
    else if (hello->ech && inspect_must_name(connection))
        refuse(connection, DOOR_BECAUSE_NO_SNI,
               "TLS with an encrypted server name to an address, while a name is denied");
    else if (!hello->has_name || !is_denied(connection, hello->name))
        upstream_start(connection);
}

static void inspect_tls(struct connection *connection)
{
    struct client_hello hello;
    bool watch = connection->inspect == WATCH_TLS;
    enum client_hello_state state =
        client_hello_read((const uint8_t *)connection->input, connection->input_size, &hello);
    connection->is_tls = state == CLIENT_HELLO_DONE || state == CLIENT_HELLO_BAD;
    switch (state) {
    case CLIENT_HELLO_NEED_MORE:
        return;
    case CLIENT_HELLO_NOT_TLS:
        if (watch && !inspect_must_name(connection))
            upstream_start(connection);
        else
            refuse(connection, DOOR_BECAUSE_NOT_TLS, "TLS is due on this port");
        return;
    case CLIENT_HELLO_BAD:
        refuse(connection, DOOR_BECAUSE_BAD_REQUEST, hello.reason);
        return;
    case CLIENT_HELLO_DONE:
        break;
    }
    if (watch)
        watch_hello(connection, &hello);
    else if (!hello.has_name)
        refuse(connection, DOOR_BECAUSE_NO_SNI, "TLS without a server name");
    else if (strcmp(hello.name, connection->name) != 0)
        refuse_other(connection, DOOR_BECAUSE_WRONG_SNI, "TLS for another server,", hello.name);
    else
        upstream_start(connection);
}

static void judge_host(struct connection *connection, const struct http_head *head)
{
    if (!head->has_host || head->host.is_address)
        refuse(connection, DOOR_BECAUSE_WRONG_HOST, "a request that names no host");
    else if (strcmp(head->host.name, connection->name) != 0)
        refuse_other(connection, DOOR_BECAUSE_WRONG_HOST, "a request for another host,",
                     head->host.name);
    else
        upstream_start(connection);
}

static void inspect_http(struct connection *connection)
{
    struct http_head head;
    bool watch = connection->inspect == WATCH_HTTP;
    enum http_state state =
        http_head_read(connection->input, connection->input_size, connection->input_seen, &head);
    connection->input_seen = connection->input_size;
    switch (state) {
    case HTTP_NEED_MORE:
        return;
    case HTTP_BAD:
    case HTTP_TOO_LARGE:
        refuse(connection, DOOR_BECAUSE_BAD_REQUEST, head.reason);
        return;
    case HTTP_DONE:
        break;
    }
    bool named = head.has_host && !head.host.is_address;
    if (!watch)
        judge_host(connection, &head);
    else if (!named && inspect_must_name(connection))
        refuse(connection, DOOR_BECAUSE_WRONG_HOST,
               "a request that names no host, while a name is denied");
    else if (!named || !is_denied(connection, head.host.name))
        upstream_start(connection);
}

static void inspect_input(struct connection *connection)
{
    if (connection->inspect == INSPECT_TLS || connection->inspect == WATCH_TLS)
        inspect_tls(connection);
    else
        inspect_http(connection);
}

/* Waits for the client's first bytes. */
static void read_client(struct connection *connection, enum connection_stage stage)
{
    connection_enter(connection, stage, EPOLLIN | EPOLLRDHUP,
                     connection->broker->config.limits[CONFIG_LIMIT_INSPECT_MS]);
}

void inspect_start(struct connection *connection)
{
    if (!proxy_succeed(connection)) /* the client of a proxy sends more only after that */
        return;
    read_client(connection, CONNECTION_INSPECT);
    if (connection->input_size > 0)
        inspect_input(connection);
}

void inspect_ready(struct connection *connection)
{
    if (connection_read(connection))
        inspect_input(connection);
}

/* ---- Proxies ---- */

void proxy_start(struct connection *connection)
{
    read_client(connection, CONNECTION_PROXY);
}

static void refuse_bad(struct connection *connection, const char *reason)
{
    refuse(connection, DOOR_BECAUSE_BAD_REQUEST, reason);
}

static bool is_of_proxy(const struct http_header *header)
{
    static const char *const names[] = {"connection", "keep-alive", "proxy-connection",
                                        "proxy-authorization", "upgrade"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (http_slice_like(header->name, names[i]))
            return true;
    return false;
}

/* Rewrites the request for the server. No other request is accepted on this connection, because it
 * could be for another server. */
static bool rewrite(struct connection *connection, const struct http_head *head)
{
    autostr struct str text = {0};
    str_append_bytes(&text, head->method.at, head->method.length);
    str_append_char(&text, ' ');
    str_append_bytes(&text, head->path.at, head->path.length);
    str_appendf(&text, " HTTP/1.%u\r\n", head->minor);
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];
        if (is_of_proxy(header))
            continue;
        str_append_bytes(&text, header->name.at, header->name.length);
        str_append(&text, ": ");
        str_append_bytes(&text, header->value.at, header->value.length);
        str_append(&text, "\r\n");
    }
    str_append(&text, "Connection: close\r\n\r\n");
    size_t rest = connection->input_size - head->length;
    str_append_bytes(&text, connection->input + head->length, rest);
    if (text.failed || text.length > CONNECTION_INPUT_MAX)
        return false;
    memcpy(connection->input, text.data, text.length);
    connection->input_size = text.length;
    connection->rewritten = true;
    return true;
}

static void obey_request(struct connection *connection, const struct http_head *head)
{
    const struct http_authority *host = &head->host;
    bool connect = head->form == HTTP_FORM_AUTHORITY;
    if (!connect && (head->form != HTTP_FORM_ABSOLUTE || head->https)) {
        refuse_bad(connection, "this is a proxy: CONNECT, or a request by its whole http:// URI");
        return;
    }
    if (connect) {
        connection_drop_input(connection, head->length);
    } else if (!rewrite(connection, head)) {
        refuse_bad(connection, "the request is too large");
        return;
    }
    uint16_t port = connect ? HTTPS_PORT : HTTP_PORT;
    connection_aim(connection, host->is_address ? NULL : host->name, &host->address,
                   host->port ? host->port : port);
}

static void read_http(struct connection *connection)
{
    struct http_head head;
    enum http_state state =
        http_head_read(connection->input, connection->input_size, connection->input_seen, &head);
    connection->input_seen = connection->input_size;
    if (state == HTTP_DONE)
        obey_request(connection, &head);
    else if (state != HTTP_NEED_MORE)
        refuse_bad(connection, head.reason);
}

static bool greet(struct connection *connection)
{
    size_t consumed = 0;
    uint8_t answer[SOCKS_METHOD_SIZE];
    enum socks_state state =
        socks_greeting_read((const uint8_t *)connection->input, connection->input_size, &consumed);
    if (state == SOCKS_NEED_MORE)
        return false;
    socks_method(state == SOCKS_DONE, answer);
    if (!connection_say(connection, answer, sizeof answer))
        return false;
    if (state == SOCKS_BAD) {
        connection->answered = true; /* no further reply is needed */
        refuse_bad(connection, "not SOCKS5, or with a password only");
        return false;
    }
    connection_drop_input(connection, consumed);
    connection->greeted = true;
    return true;
}

static void read_socks(struct connection *connection)
{
    struct socks_request request;
    if (!connection->greeted && !greet(connection))
        return;
    enum socks_state state =
        socks_request_read((const uint8_t *)connection->input, connection->input_size, &request);
    if (state == SOCKS_NEED_MORE)
        return;
    if (state == SOCKS_BAD) {
        refuse_bad(connection, "not a request to connect");
        return;
    }
    connection_drop_input(connection, request.length);
    connection_aim(connection, request.is_address ? NULL : request.name, &request.address,
                   request.port);
}

void proxy_ready(struct connection *connection)
{
    if (!connection_read(connection))
        return;
    if (connection->via == DOOR_SOCKET_SOCKS)
        read_socks(connection);
    else
        read_http(connection);
}

bool proxy_succeed(struct connection *connection)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    uint8_t reply[SOCKS_REPLY_SIZE];
    if (connection->answered || connection->rewritten)
        return true;
    connection->answered = true;
    if (connection->via == DOOR_SOCKET_HTTP_PROXY)
        return connection_say(connection, established, sizeof established - 1);
    if (connection->via != DOOR_SOCKET_SOCKS)
        return true;
    socks_reply(SOCKS_OK, reply);
    return connection_say(connection, reply, sizeof reply);
}

/* ---- Refusals ---- */

size_t refusal_http(char text[REFUSAL_TEXT_MAX], unsigned status, const char *phrase,
                    const char *what, const char *why)
{
    char body[512];
    int body_length = snprintf(body, sizeof body, "brig: %s: %s\n", what, why);
    if (body_length >= (int)sizeof body)
        body_length = sizeof body - 1;
    int length = snprintf(text, REFUSAL_TEXT_MAX,
                          "HTTP/1.1 %u %s\r\n"
                          "Content-Type: text/plain; charset=utf-8\r\n"
                          "Content-Length: %d\r\n"
                          "Connection: close\r\n"
                          "\r\n"
                          "%s",
                          status, phrase, body_length, body);
    return length < REFUSAL_TEXT_MAX ? (size_t)length : REFUSAL_TEXT_MAX - 1;
}

static enum socks_code socks_code_of(enum door_verdict verdict, enum door_because because)
{
    if (because == DOOR_BECAUSE_BAD_REQUEST)
        return SOCKS_BAD_COMMAND;
    if (verdict == DOOR_DENIED)
        return SOCKS_NOT_ALLOWED;
    return because == DOOR_BECAUSE_NO_CONNECT ? SOCKS_REFUSED : SOCKS_HOST_UNREACHABLE;
}

static size_t http_refusal(const struct connection *connection, enum door_verdict verdict,
                           enum door_because because, const char *detail,
                           char text[REFUSAL_TEXT_MAX])
{
    char what[NET_NAME_MAX + 64], address[NET_ADDRESS_TEXT_MAX] = "";
    bool denied = verdict == DOOR_DENIED, late = because == DOOR_BECAUSE_TIMEOUT;
    if (connection->stage == CONNECTION_PROXY && because == DOOR_BECAUSE_BAD_REQUEST)
        return refusal_http(text, 400, "Bad Request", "refused", detail);
    if (!connection->has_name && connection->has_address)
        net_address_print(&connection->address, address);
    (void)snprintf(what, sizeof what, "%s: %s:%u", denied ? "blocked" : "not reached",
                   connection->has_name ? connection->name : address, connection->port);
    if (denied)
        return refusal_http(text, 403, "Forbidden", what, detail);
    return refusal_http(text, late ? 504 : 502, late ? "Gateway Timeout" : "Bad Gateway", what,
                        detail);
}

static enum client_hello_alert alert_of(enum door_because because)
{
    return because == DOOR_BECAUSE_WRONG_SNI || because == DOOR_BECAUSE_NO_SNI
               ? CLIENT_HELLO_ALERT_UNRECOGNIZED_NAME
               : CLIENT_HELLO_ALERT_ACCESS_DENIED;
}

/* The client of a proxy always gets a reply. Other clients get one only if a rule denies the
 * connection: everything else looks like an unreachable server. */
bool refusal_say(const struct connection *connection, enum door_verdict verdict,
                 enum door_because because, const char *detail)
{
    char text[REFUSAL_TEXT_MAX] = "";
    size_t length = 0;
    bool denied = verdict == DOOR_DENIED, waits = !connection->answered;
    bool http = connection->inspect == INSPECT_HTTP || connection->inspect == WATCH_HTTP;
    if (waits && connection->via == DOOR_SOCKET_SOCKS && connection->greeted) {
        socks_reply(socks_code_of(verdict, because), (uint8_t *)text);
        length = SOCKS_REPLY_SIZE;
    } else if (denied && connection->is_tls) {
        client_hello_alert(alert_of(because), (uint8_t *)text);
        length = CLIENT_HELLO_ALERT_SIZE;
    } else if ((waits && connection->via == DOOR_SOCKET_HTTP_PROXY) || (denied && http)) {
        length = http_refusal(connection, verdict, because, detail, text);
    }
    return length > 0 && send(connection->client.fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                             (ssize_t)length;
}
