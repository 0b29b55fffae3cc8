/* SPDX-License-Identifier: MIT */
/* Programs that want a proxy find one: HTTP (CONNECT, and plain requests by their whole URI) and
 * SOCKS5. It only says where a connection goes; what becomes of it is the same for all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "net/broker_connection.h"
#include "net/broker_refusal.h"
#include "net/http_head.h"
#include "net/socks.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

void front_start(struct connection *connection)
{
    struct broker *broker = connection->broker;
    connection->stage = CONNECTION_FRONT;
    loop_rewatch(&broker->loop, &connection->client, EPOLLIN | EPOLLRDHUP);
    loop_arm(&broker->loop, &connection->timer,
             (int64_t)broker->config.limits[CONFIG_LIMIT_INSPECT_MS]);
}

static void refuse_bad(struct connection *connection, const char *reason)
{
    connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_BAD_REQUEST, reason);
}

/* ---- HTTP ---- */

static bool is_of_proxy(const struct http_header *header)
{
    static const char *const names[] = {"connection", "keep-alive", "proxy-connection",
                                        "proxy-authorization", "upgrade"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (http_slice_like(header->name, names[i]))
            return true;
    return false;
}

/* The request as the server expects it. It is the only one on this connection: the next may be for
 * another server. */
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
    free(connection->input);
    connection->input_size = connection->input_capacity = text.length;
    connection->input = text.data;
    text = (struct str){0};
    connection->rewritten = true;
    return true;
}

static void aim(struct connection *connection, const struct http_authority *host, uint16_t port)
{
    if (host->is_address)
        connection_aim_address(connection, &host->address, port);
    else
        connection_aim_name(connection, host->name, port);
}

static void obey_request(struct connection *connection, const struct http_head *head)
{
    struct http_authority host = head->host;
    if (head->form == HTTP_FORM_AUTHORITY) {
        connection_drop_input(connection, head->length);
        aim(connection, &host, host.port ? host.port : HTTPS_PORT);
        return;
    }
    if (head->form != HTTP_FORM_ABSOLUTE || head->https) {
        refuse_bad(connection, "this is a proxy: CONNECT, or a request by its whole http:// URI");
        return;
    }
    if (!rewrite(connection, head)) {
        refuse_bad(connection, "the request is too large");
        return;
    }
    aim(connection, &host, host.port ? host.port : HTTP_PORT);
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

/* ---- SOCKS ---- */

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
        connection->answered = true; /* there is nothing more to be said */
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
    if (request.is_address)
        connection_aim_address(connection, &request.address, request.port);
    else
        connection_aim_name(connection, request.name, request.port);
}

/* ---- Both ---- */

void front_ready(struct connection *connection)
{
    if (!connection_read(connection))
        return;
    if (connection->via == DOOR_SOCKET_SOCKS)
        read_socks(connection);
    else
        read_http(connection);
}

bool front_succeed(struct connection *connection)
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
    if (because == DOOR_BECAUSE_BAD_REQUEST)
        return refusal_http(text, 400, "Bad Request", "refused", detail);
    if (!connection->has_name && connection->has_address)
        net_address_print(&connection->address, address);
    bool denied = verdict == DOOR_DENIED;
    (void)snprintf(what, sizeof what, "%s: %s:%u", denied ? "blocked" : "not reached",
                   connection->has_name ? connection->name : address, connection->port);
    if (denied)
        return refusal_http(text, 403, "Forbidden", what, detail);
    return refusal_http(text, because == DOOR_BECAUSE_TIMEOUT ? 504 : 502,
                        because == DOOR_BECAUSE_TIMEOUT ? "Gateway Timeout" : "Bad Gateway", what,
                        detail);
}

bool front_refuse(struct connection *connection, enum door_verdict verdict,
                  enum door_because because, const char *detail)
{
    char text[REFUSAL_TEXT_MAX] = "";
    size_t length = 0;
    if (connection->answered)
        return false;
    if (connection->via == DOOR_SOCKET_HTTP_PROXY) {
        length = http_refusal(connection, verdict, because, detail, text);
    } else if (connection->via == DOOR_SOCKET_SOCKS && connection->greeted) {
        socks_reply(socks_code_of(verdict, because), (uint8_t *)text);
        length = SOCKS_REPLY_SIZE;
    }
    return length > 0 && send(connection->client.fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                             (ssize_t)length;
}
