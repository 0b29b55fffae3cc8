/* SPDX-License-Identifier: MIT */
/* Saying no in the client's own protocol. */
#include "net/broker_refusal.h"

#include <stdio.h>
#include <sys/socket.h>

#include "net/client_hello.h"

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

static bool say(const struct connection *connection, const void *bytes, size_t size)
{
    return send(connection->client.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static bool say_alert(const struct connection *connection, enum door_because because)
{
    uint8_t alert[CLIENT_HELLO_ALERT_SIZE];
    client_hello_alert(because == DOOR_BECAUSE_WRONG_SNI || because == DOOR_BECAUSE_NO_SNI
                           ? CLIENT_HELLO_ALERT_UNRECOGNIZED_NAME
                           : CLIENT_HELLO_ALERT_ACCESS_DENIED,
                       alert);
    return say(connection, alert, sizeof alert);
}

bool refusal_say(struct connection *connection, enum door_verdict verdict,
                 enum door_because because, const char *detail)
{
    if (verdict != DOOR_DENIED)
        return false; /* as if the server could not be reached */
    if (connection->is_tls)
        return say_alert(connection, because);
    if (connection->inspect != INSPECT_HTTP && connection->inspect != WATCH_HTTP)
        return false;
    char text[REFUSAL_TEXT_MAX], what[NET_NAME_MAX + 32], address[NET_ADDRESS_TEXT_MAX] = "";
    if (!connection->has_name)
        net_address_print(&connection->address, address);
    (void)snprintf(what, sizeof what, "blocked: %s:%u",
                   connection->has_name ? connection->name : address, connection->port);
    size_t length = refusal_http(text, 403, "Forbidden", what, detail);
    return say(connection, text, length);
}
