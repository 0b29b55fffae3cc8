/* SPDX-License-Identifier: MIT */
/* WebSockets to the upstream of a credential. libcurl connects (TLS, the host's proxy); this file
 * sends the request, which has the credential as any other, and reads the answer. After "101
 * Switching Protocols" it relays bytes in both directions; any other answer is relayed as usual. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/broker_inject.h"

#define UPGRADE_REPLY_MAX 65536 /* the head of the answer, or a part of what follows */
#define ROUNDS_MAX 16           /* before other connections are served */

static const struct curl_api *api_of(const struct inject_client *client)
{
    return &client->broker->inject->api;
}

bool upgrade_is_asked(const struct http_head *head)
{
    int index = http_head_find(head, "upgrade", 0);
    return head->upgrade && index >= 0 && http_head_find(head, "upgrade", (size_t)index + 1) < 0 &&
           http_slice_like(head->headers[index].value, "websocket") && head->minor == 1 &&
           http_slice_is(head->method, "GET") && head->framing == HTTP_BODY_NONE;
}

/* ---- The request ---- */

static size_t append(char *to, size_t at, const char *text)
{
    size_t length = strlen(text);
    if (to)
        memcpy(to + at, text, length);
    return at + length;
}

/* "Name;" is how libcurl writes a header without a value. */
static size_t append_header(char *to, size_t at, const char *line)
{
    size_t length = strlen(line);
    bool empty = length > 0 && line[length - 1] == ';' && !strchr(line, ':');
    at = append(to, at, line);
    if (to && empty)
        to[at - 1] = ':';
    return append(to, at, "\r\n");
}

static void print_host(const struct inject_client *client, char *text, size_t size)
{
    const struct http_authority *host = &client->inject->upstream;
    char address[NET_ADDRESS_TEXT_MAX] = "", port[16] = "";
    bool v6 = host->is_address && host->address.family == NET_V6;
    if (host->is_address)
        net_address_print(&host->address, address);
    if (host->port != (client->inject->tls ? 443 : 80))
        (void)snprintf(port, sizeof port, ":%u", host->port);
    (void)snprintf(text, size, "%s%s%s%s", v6 ? "[" : "", host->is_address ? address : host->name,
                   v6 ? "]" : "", port);
}

/* Writes the head of the request and returns its size; `to` is NULL to measure it. */
static size_t write_request(const struct inject_client *client, char *to)
{
    char host[NET_NAME_MAX + 32];
    print_host(client, host, sizeof host);
    size_t at = append(to, 0, "GET ");
    at = append(to, at, client->target);
    at = append(to, at, " HTTP/1.1\r\nHost: ");
    at = append(to, at, host);
    at = append(to, at, "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
    for (const struct curl_slist *line = client->headers; line; line = line->next)
        at = append_header(to, at, line->data);
    for (size_t i = 0; i < client->inject->header_count; i++)
        at = append_header(to, at, client->broker->inject->header_lines[client->index][i]);
    return append(to, at, "\r\n");
}

static void wipe_request(struct upgrade *upgrade)
{
    if (upgrade->request)
        explicit_bzero(upgrade->request, upgrade->request_size);
    free(upgrade->request);
    upgrade->request = NULL;
    upgrade->request_size = upgrade->request_sent = 0;
}

bool upgrade_prepare(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    upgrade->reply_size = upgrade->reply_at = 0;
    upgrade->reply = malloc(UPGRADE_REPLY_MAX);
    return upgrade->reply && transfer_engine_init(&upgrade->engine, client->broker->inject);
}

/* ---- Ends ---- */

void upgrade_drop(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    (void)loop_forget(&client->broker->loop, &upgrade->watch);
    wipe_request(upgrade);
    free(upgrade->reply);
    upgrade->reply = NULL;
}

static bool fail(struct inject_client *client, const char *why)
{
    inject_transferred(client, DOOR_BECAUSE_NO_CONNECT, why);
    return false;
}

static bool finish(struct inject_client *client)
{
    inject_transferred(client, DOOR_BECAUSE_CLOSED, NULL);
    return false;
}

/* The functions below return false when the transfer has ended. *moved is set if bytes were
 * moved. */

/* ---- To the upstream ---- */

static bool send_some(struct inject_client *client, const char *bytes, size_t size,
                      size_t *ret_sent)
{
    *ret_sent = 0;
    CURLcode result = api_of(client)->easy_send(client->easy, bytes, size, ret_sent);
    if (result == CURLE_OK || result == CURLE_AGAIN)
        return true;
    return fail(client, "the upstream closed the connection");
}

static bool send_request(struct inject_client *client, bool *moved)
{
    struct upgrade *upgrade = &client->upgrade;
    size_t sent;
    if (!upgrade->request)
        return true;
    if (!send_some(client, upgrade->request + upgrade->request_sent,
                   upgrade->request_size - upgrade->request_sent, &sent))
        return false;
    upgrade->request_sent += sent;
    *moved |= sent > 0;
    if (upgrade->request_sent == upgrade->request_size)
        wipe_request(upgrade);
    return true;
}

static bool send_input(struct inject_client *client, bool *moved)
{
    size_t sent;
    if (client->upgrade.phase != UPGRADE_OPEN || client->input_size == 0)
        return true;
    if (!send_some(client, client->input, client->input_size, &sent))
        return false;
    client->input_size -= sent;
    memmove(client->input, client->input + sent, client->input_size);
    client->bytes_out += sent;
    broker_count_bytes(client->broker, sent);
    *moved |= sent > 0;
    return true;
}

/* ---- From the upstream ---- */

/* The head of an answer that is not 101 was sent to the client. */
static bool begin_body(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    struct http_head head = {.framing = HTTP_BODY_LENGTH};
    if (client->reply_encoded)
        head.framing = HTTP_BODY_CHUNKED;
    else if (client->reply_length[0])
        head.content_length = strtoull(client->reply_length, NULL, 10);
    upgrade->phase = UPGRADE_BODY;
    upgrade->until_close = !client->reply_encoded && !client->reply_length[0];
    http_body_init(&upgrade->body, &head);
    bool none = !transfer_has_body(client) || (head.framing == HTTP_BODY_LENGTH &&
                                               head.content_length == 0 && !upgrade->until_close);
    return none ? finish(client) : true;
}

/* Takes complete lines of the head. */
static bool take_head(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    while (upgrade->phase == UPGRADE_HEAD) {
        const char *line = upgrade->reply + upgrade->reply_at;
        size_t left = upgrade->reply_size - upgrade->reply_at;
        const char *end = left > 0 ? memchr(line, '\n', left) : NULL;
        if (!end)
            return upgrade->reply_at == 0 && upgrade->reply_size == UPGRADE_REPLY_MAX
                       ? fail(client, "the head of the answer is too large")
                       : true;
        size_t length = (size_t)(end - line) + 1;
        bool is_status = length >= 9 && memcmp(line, "HTTP/1.", 7) == 0;
        upgrade->reply_at += length;
        if ((client->status == 0 && !is_status) || !transfer_take_line(client, line, length))
            return fail(client, "the answer is malformed");
        if (client->reply_begun && client->status == 101) {
            upgrade->phase = UPGRADE_OPEN;
            inject_watch(client);
        } else if (client->reply_begun) {
            return begin_body(client);
        }
    }
    return true;
}

static bool take_body(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    while (upgrade->reply_at < upgrade->reply_size && !inject_has_output(client)) {
        const char *bytes = upgrade->reply + upgrade->reply_at;
        size_t left = upgrade->reply_size - upgrade->reply_at, consumed = left;
        struct http_slice data = {.at = bytes, .length = left};
        enum http_state state = HTTP_NEED_MORE;
        if (!upgrade->until_close)
            state = http_body_read(&upgrade->body, bytes, left, &consumed, &data);
        upgrade->reply_at += consumed;
        if (state == HTTP_BAD || state == HTTP_TOO_LARGE)
            return fail(client, "the body of the answer is malformed");
        if (data.length > 0 && !transfer_take_body(client, data.at, data.length))
            return fail(client, "the client is gone");
        if (state == HTTP_DONE)
            return finish(client);
        if (consumed == 0)
            return true;
    }
    return true;
}

static bool take_reply(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    if (upgrade->phase == UPGRADE_HEAD && !take_head(client))
        return false;
    if (upgrade->phase == UPGRADE_BODY)
        return take_body(client);
    size_t left = upgrade->reply_size - upgrade->reply_at;
    if (upgrade->phase == UPGRADE_OPEN && left > 0) {
        const char *bytes = upgrade->reply + upgrade->reply_at;
        upgrade->reply_at = upgrade->reply_size;
        if (!transfer_take_body(client, bytes, left))
            return fail(client, "the client is gone");
    }
    return true;
}

static bool reply_ended(struct inject_client *client)
{
    const struct upgrade *upgrade = &client->upgrade;
    bool complete =
        upgrade->phase == UPGRADE_OPEN || (upgrade->phase == UPGRADE_BODY && upgrade->until_close);
    return complete ? finish(client) : fail(client, "the upstream closed the connection");
}

static bool receive(struct inject_client *client, bool *moved)
{
    struct upgrade *upgrade = &client->upgrade;
    size_t got = 0;
    if (inject_has_output(client))
        return true; /* no more than the client accepts */
    upgrade->reply_size -= upgrade->reply_at;
    memmove(upgrade->reply, upgrade->reply + upgrade->reply_at, upgrade->reply_size);
    upgrade->reply_at = 0;
    CURLcode result = api_of(client)->easy_recv(client->easy, upgrade->reply + upgrade->reply_size,
                                                UPGRADE_REPLY_MAX - upgrade->reply_size, &got);
    if (result != CURLE_OK && result != CURLE_AGAIN)
        return fail(client, api_of(client)->easy_strerror(result));
    if (result == CURLE_OK && got == 0)
        return reply_ended(client);
    upgrade->reply_size += got;
    *moved |= got > 0;
    return take_reply(client);
}

/* ---- Events ---- */

static void upstream_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    upgrade_go_on(container_of(watch, struct inject_client, upgrade.watch));
}

/* Without events to wait for the socket is not watched at all: epoll would report a hang-up of the
 * upstream again and again while the client does not read. */
static bool watch_upstream(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    struct loop *loop = &client->broker->loop;
    bool sends = upgrade->request || (upgrade->phase == UPGRADE_OPEN && client->input_size > 0);
    uint32_t events = (inject_has_output(client) ? 0 : EPOLLIN) | (sends ? EPOLLOUT : 0);
    if (events == 0) {
        (void)loop_forget(loop, &upgrade->watch);
        return true;
    }
    if (upgrade->watch.fd >= 0) {
        loop_rewatch(loop, &upgrade->watch, events);
        return true;
    }
    upgrade->watch = (struct watch){.fd = upgrade->socket, .ready = upstream_ready};
    if (loop_watch(loop, &upgrade->watch, events))
        return true;
    upgrade->watch.fd = -1;
    return fail(client, "out of memory");
}

void upgrade_go_on(struct inject_client *client)
{
    bool moved = true;
    if (client->upgrade.phase < UPGRADE_HEAD)
        return;
    for (unsigned round = 0; moved && round < ROUNDS_MAX; round++) {
        moved = false;
        if (!send_request(client, &moved) || !send_input(client, &moved) ||
            !receive(client, &moved))
            return;
    }
    if (moved)
        loop_queue(&client->broker->loop, &client->go_on);
    if (watch_upstream(client))
        inject_watch(client);
}

void upgrade_connected(struct inject_client *client)
{
    struct upgrade *upgrade = &client->upgrade;
    curl_socket_t socket = CURL_SOCKET_BAD;
    size_t size = write_request(client, NULL);
    if (api_of(client)->easy_getinfo(client->easy, CURLINFO_ACTIVESOCKET, &socket) != CURLE_OK ||
        socket == CURL_SOCKET_BAD || !(upgrade->request = malloc(size))) {
        (void)fail(client, "the request cannot be sent");
        return;
    }
    upgrade->request_size = write_request(client, upgrade->request);
    upgrade->socket = socket;
    upgrade->phase = UPGRADE_HEAD;
    upgrade_go_on(client);
}
