/* SPDX-License-Identifier: MIT */
/* WebSocket connections. */
#include "server/http/upgrade.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/http/http.h"
#include "server/http/websocket.h"

#define READ_BYTES 16384
#define READS_AT_ONCE 8
/* How long a client may take for its part of closing. */
#define CLOSING_MS 2000

struct upgrade {
    const struct upgrade_protocol *protocol;
    uint64_t number; /* of the loop's source */
    char accept[WEBSOCKET_ACCEPT_LENGTH + 1];
    bool open;
    int fd;               /* libmicrohttpd's */
    gnutls_session_t tls; /* libmicrohttpd's, or NULL */
    bool interrupted;     /* the kernel has not taken all of a TLS record */
    struct websocket in;
    unsigned messages; /* since the last tick */
    size_t held;       /* by the protocol */
    struct str out;
    size_t sent; /* bytes of it */
    uint32_t events;
    bool closing;         /* a close frame is in `out`, or no more is to be sent */
    bool heard;           /* the client's close frame */
    bool busy;            /* upgrade_ready() works on it: it is not closed before the end */
    uint64_t deadline_ms; /* for reading what waits; 0: none */
};

/* ---- The handshake ---- */

/* Whether a comma-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        at += strspn(at, " \t");
        if (strncasecmp(at, word, length) == 0 && strchr(", \t", at[length]))
            return true;
    }
    return false;
}

static void open_socket(struct exchange *exchange);

void upgrade_begin(struct exchange *exchange, const struct upgrade_protocol *protocol)
{
    const char *key = exchange_header(exchange, "Sec-WebSocket-Key");
    struct upgrade *upgrade = calloc(1, sizeof *upgrade);
    if (!upgrade) {
        answer_error(exchange, ERROR_OVERLOADED, NULL);
        return;
    }
    *upgrade = (struct upgrade){.protocol = protocol, .fd = -1, .in.most = UPGRADE_TEXT_MAX};
    bool valid = strcmp(exchange->method, "GET") == 0 && !exchange->http_1_0 &&
                 has_word(exchange_header(exchange, "Upgrade"), "websocket") &&
                 has_word(exchange_header(exchange, "Connection"), "upgrade") &&
                 str_equal(exchange_header(exchange, "Sec-WebSocket-Version"), "13") && key &&
                 websocket_accept(key, upgrade->accept);
    /* Browsers let any web page open a WebSocket, with no preflight request. */
    if (!valid || answer_is_for_foreign_page(exchange)) {
        free(upgrade);
        if (valid)
            answer_error(exchange, ERROR_WRONG_ORIGIN, NULL);
        else
            answer_error(exchange, ERROR_MALFORMED_REQUEST,
                         "this path is for WebSocket clients (RFC 6455, version 13)");
        return;
    }
    upgrade->number = ++exchange->http->next_tag;
    exchange->upgrade = upgrade;
    open_socket(exchange);
}

/* ---- The end ---- */

/* libmicrohttpd goes on with the connection: it closes the socket, and ends the exchange. */
static void end(struct exchange *exchange)
{
    struct upgrade *upgrade = exchange->upgrade;
    upgrade->closing = true;
    if (!upgrade->open || upgrade->busy)
        return;
    upgrade->open = false;
    (void)epoll_ctl(exchange->http->epoll, EPOLL_CTL_DEL, upgrade->fd, NULL);
    exchange->gone = !upgrade->heard;
    exchange_abandon(exchange);
    exchange->suspended = false;
    MHD_resume_connection(exchange->connection);
}

void upgrade_free(struct exchange *exchange)
{
    struct upgrade *upgrade = take_ptr(&exchange->upgrade);
    if (!upgrade)
        return;
    websocket_done(&upgrade->in);
    str_done(&upgrade->out);
    free(upgrade);
}

/* ---- Sending ---- */

static size_t unread(const struct upgrade *upgrade)
{
    return upgrade->out.length - upgrade->sent;
}

/* While it closes, only the client's close frame matters; nothing else is kept or passed on. */
static bool may_read(const struct exchange *exchange)
{
    const struct upgrade *upgrade = exchange->upgrade;
    const struct channel *executor = exchange->http->peers[ROLE_EXECUTOR];
    return upgrade->closing ||
           (unread(upgrade) <= UPGRADE_PAUSE_BYTES && upgrade->messages < UPGRADE_MESSAGES_MAX &&
            (!executor || channel_queued(executor) <= UPGRADE_PAUSE_BYTES));
}

static void watch(const struct exchange *exchange, int operation)
{
    struct upgrade *upgrade = exchange->upgrade;
    uint32_t events =
        (may_read(exchange) ? EPOLLIN : 0) | (unread(upgrade) > 0 ? (uint32_t)EPOLLOUT : 0);
    struct epoll_event event = {.events = events, .data.u64 = LOOP_UPGRADE | upgrade->number};
    if (operation == EPOLL_CTL_ADD || events != upgrade->events)
        (void)epoll_ctl(exchange->http->epoll, operation, upgrade->fd, &event);
    upgrade->events = events;
}

/* What waits to be sent, is being received or waits for a place counts as memory of the server. */
static bool charge(struct exchange *exchange)
{
    const struct upgrade *upgrade = exchange->upgrade;
    size_t packed = exchange->ticket ? exchange->ticket->packed.length : 0;
    exchange_release(exchange);
    return !upgrade->out.failed &&
           exchange_charge(exchange,
                           unread(upgrade) + upgrade->in.message.length + upgrade->held + packed);
}

/* Like send(2) and recv(2), which do not block here, also over TLS: 0 if there is nothing now,
 * negative if the client is gone. A TLS record that was interrupted is sent first. */
static ssize_t send_some(struct upgrade *upgrade, const char *bytes, size_t length)
{
    ssize_t done;
    if (!upgrade->tls) {
        do
            done = send(upgrade->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (done < 0 && errno == EINTR);
        return done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : done > 0 ? done : -1;
    }
    do
        done = gnutls_record_send(upgrade->tls, upgrade->interrupted ? NULL : bytes,
                                  upgrade->interrupted ? 0 : length);
    while (done == GNUTLS_E_INTERRUPTED);
    upgrade->interrupted = done == GNUTLS_E_AGAIN;
    return upgrade->interrupted ? 0 : done > 0 ? done : -1;
}

static ssize_t receive_some(const struct upgrade *upgrade, char *bytes, size_t length)
{
    ssize_t done;
    if (!upgrade->tls) {
        do
            done = recv(upgrade->fd, bytes, length, MSG_DONTWAIT);
        while (done < 0 && errno == EINTR);
        return done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : done > 0 ? done : -1;
    }
    do
        done = gnutls_record_recv(upgrade->tls, bytes, length);
    while (done == GNUTLS_E_INTERRUPTED);
    return done == GNUTLS_E_AGAIN ? 0 : done > 0 ? done : -1;
}

/* Sends what the client takes now. Returns false if it is gone. */
static bool flush(struct exchange *exchange)
{
    struct upgrade *upgrade = exchange->upgrade;
    while (unread(upgrade) > 0) {
        ssize_t done = send_some(upgrade, upgrade->out.data + upgrade->sent, unread(upgrade));
        if (done == 0) {
            str_drop_done(&upgrade->out, &upgrade->sent);
            return true;
        }
        if (done < 0)
            return false;
        upgrade->sent += (size_t)done;
        exchange->sent_bytes += (uint64_t)done;
        if (!upgrade->closing)
            upgrade->deadline_ms = 0;
    }
    str_done(&upgrade->out);
    upgrade->sent = 0;
    return true;
}

/* Sends, and decides whether the connection goes on. */
static void settle(struct exchange *exchange)
{
    struct upgrade *upgrade = exchange->upgrade;
    uint64_t now_ms = exchange->http->now_ms;
    bool had = unread(upgrade) > 0;
    if (!upgrade->open)
        return;
    bool over = upgrade->closing && upgrade->heard;
    if (!flush(exchange) || unread(upgrade) > UPGRADE_UNREAD_MAX || !charge(exchange) ||
        (over && unread(upgrade) == 0)) {
        end(exchange);
        return;
    }
    if (unread(upgrade) > 0 && upgrade->deadline_ms == 0)
        upgrade->deadline_ms = now_ms + exchange->http->config->server.idle_timeout_ms;
    watch(exchange, EPOLL_CTL_MOD);
    if (had && unread(upgrade) == 0 && !upgrade->closing && upgrade->protocol->taken)
        upgrade->protocol->taken(exchange);
}

void upgrade_text(struct exchange *exchange, const char *bytes, size_t length)
{
    struct upgrade *upgrade = exchange->upgrade;
    if (upgrade->closing)
        return;
    websocket_write(&upgrade->out, WEBSOCKET_IS_TEXT, bytes, length);
    if (!upgrade->busy)
        settle(exchange);
}

void upgrade_close(struct exchange *exchange, unsigned code, const char *reason)
{
    struct upgrade *upgrade = exchange->upgrade;
    if (upgrade->closing)
        return;
    websocket_write_close(&upgrade->out, code, reason);
    upgrade->closing = true;
    upgrade->deadline_ms = exchange->http->now_ms + CLOSING_MS;
    exchange_abandon(exchange);
    if (!upgrade->busy)
        settle(exchange);
}

void upgrade_limit(struct exchange *exchange, size_t most)
{
    exchange->upgrade->in.most = most < UPGRADE_TEXT_MAX ? most : UPGRADE_TEXT_MAX;
}

void upgrade_hold(struct exchange *exchange, size_t bytes)
{
    exchange->upgrade->held = bytes; /* settle() counts it */
}

/* ---- Receiving ---- */

static void take_event(struct exchange *exchange, enum websocket_event event)
{
    struct upgrade *upgrade = exchange->upgrade;
    const struct websocket *in = &upgrade->in;
    upgrade->messages += event != WEBSOCKET_MORE;
    switch (event) {
    case WEBSOCKET_MORE:
        return;
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY:
        if (!upgrade->closing)
            upgrade->protocol->text(exchange, in->message.data ? in->message.data : "",
                                    in->message.length);
        str_done(&upgrade->in.message);
        return;
    case WEBSOCKET_PING:
        if (!upgrade->closing)
            websocket_write(&upgrade->out, WEBSOCKET_PONG, in->control.data, in->control.length);
        return;
    case WEBSOCKET_CLOSED:
        upgrade->heard = true;
        upgrade_close(exchange, in->code == WEBSOCKET_NO_CODE ? WEBSOCKET_NORMAL : in->code, "");
        return;
    case WEBSOCKET_INVALID:
        upgrade_close(exchange, in->code, "");
        upgrade->heard = true; /* nothing more can be understood */
        return;
    }
}

static void take_bytes(struct exchange *exchange, const char *bytes, size_t length)
{
    struct upgrade *upgrade = exchange->upgrade;
    while (length > 0 && !upgrade->heard) {
        size_t used = 0;
        enum websocket_event event = websocket_take(&upgrade->in, bytes, length, &used);
        take_event(exchange, event);
        if (event == WEBSOCKET_MORE && used == 0)
            return;
        bytes += used;
        length -= used;
    }
}

static bool reads_on(const struct exchange *exchange, int reads)
{
    const struct upgrade *upgrade = exchange->upgrade;
    return (reads < READS_AT_ONCE && may_read(exchange)) ||
           (upgrade->tls && gnutls_record_check_pending(upgrade->tls) > 0);
}

/* Returns false if the client is gone. What TLS has decrypted already is always read: the kernel
 * does not report it. So is one piece of a client that has `ended` the connection. */
static bool receive(struct exchange *exchange, bool ended)
{
    struct upgrade *upgrade = exchange->upgrade;
    char bytes[READ_BYTES];
    for (int i = 0; (ended && i == 0) || reads_on(exchange, i); i++) {
        ssize_t length = receive_some(upgrade, bytes, sizeof bytes);
        if (length <= 0)
            return length == 0;
        exchange->body_bytes += (uint64_t)length;
        take_bytes(exchange, bytes, (size_t)length);
    }
    return true;
}

void upgrade_ready(struct http *http, uint64_t number, uint32_t events)
{
    struct exchange *exchange;
    LIST_FOREACH(exchange, &http->exchanges, link)
    if (exchange->upgrade && exchange->upgrade->number == number)
        break;
    if (!exchange || !exchange->upgrade->open)
        return;
    struct upgrade *upgrade = exchange->upgrade;
    upgrade->busy = true;
    bool ended = events & (EPOLLHUP | EPOLLERR);
    bool there = !(ended || events & EPOLLIN) || receive(exchange, ended);
    upgrade->busy = false;
    if (there)
        settle(exchange);
    else
        end(exchange);
}

void upgrade_tick(struct exchange *exchange)
{
    struct upgrade *upgrade = exchange->upgrade;
    if (!upgrade->open)
        return;
    upgrade->messages = 0;
    if (upgrade->deadline_ms && upgrade->deadline_ms <= exchange->http->now_ms) {
        end(exchange);
        return;
    }
    watch(exchange, EPOLL_CTL_MOD);
    if (!upgrade->closing && upgrade->protocol->tick)
        upgrade->protocol->tick(exchange);
}

/* libmicrohttpd does not touch a suspended connection. (Its own upgrade of TLS connections, in
 * version 0.9.75, copies four bytes at a time.) A client that sends frames before it has the answer
 * violates RFC 6455, and they are lost. */
static void open_socket(struct exchange *exchange)
{
    struct upgrade *upgrade = exchange->upgrade;
    const union MHD_ConnectionInfo *info =
        exchange->http->tls
            ? MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
            : NULL;
    upgrade->tls = info ? info->tls_session : NULL;
    upgrade->fd = exchange->socket->fd;
    exchange->state = EXCHANGE_UPGRADE;
    exchange->status = MHD_HTTP_SWITCHING_PROTOCOLS;
    exchange->socket->deadline_ms = 0;
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
    str_concat(&upgrade->out,
               "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Accept: ",
               upgrade->accept, "\r\nX-Request-ID: ", exchange->request_id, "\r\n\r\n");
    upgrade->open = true;
    watch(exchange, EPOLL_CTL_ADD);
    upgrade->protocol->opened(exchange);
    settle(exchange);
}
