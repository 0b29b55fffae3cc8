/* SPDX-License-Identifier: MIT */
/* One request and its answer: how it begins, waits and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "server/http/execute.h"
#include "server/http/http.h"
#include "server/http/loop.h"
#include "server/http/stream.h"

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
    exchange->method = method;
    exchange->path = strdup(path);
    exchange->began_us = clock_now_us();
    exchange->next = http->exchanges;
    if (http->exchanges)
        http->exchanges->previous = exchange;
    http->exchanges = exchange;
    if (!exchange->path || !exchange->socket) {
        exchange_free(exchange);
        return NULL;
    }
    return exchange;
}

void exchange_free(struct exchange *exchange)
{
    struct http *http = exchange->http;
    if (exchange->ticket)
        exchange->ticket->exchange = NULL;
    if (exchange->previous)
        exchange->previous->next = exchange->next;
    else
        http->exchanges = exchange->next;
    if (exchange->next)
        exchange->next->previous = exchange->previous;
    http->memory -= exchange->charged;
    stream_free(exchange->stream);
    str_done(&exchange->body);
    str_done(&exchange->answer);
    free(exchange->path);
    free(exchange);
}

bool exchange_charge(struct exchange *exchange, size_t bytes)
{
    struct http *http = exchange->http;
    if (bytes > HTTP_MEMORY_MAX - http->memory)
        return false;
    http->memory += bytes;
    exchange->charged += bytes;
    return true;
}

/* While it is suspended the library does not look at the socket: we do, for its end. */
void exchange_suspend(struct exchange *exchange)
{
    if (exchange->suspended)
        return;
    exchange->suspended = true;
    exchange->socket->deadline_ms = 0;
    if (exchange->ticket)
        loop_watch_end(exchange->http, exchange->socket->fd, exchange->ticket->tag,
                       exchange->half_closed);
    MHD_suspend_connection(exchange->connection);
}

void exchange_resume(struct exchange *exchange)
{
    if (!exchange->suspended)
        return;
    exchange->suspended = false;
    loop_forget(exchange->http, exchange->socket->fd);
    MHD_resume_connection(exchange->connection);
}

/* It may wait for its answer, as after shutdown(2), or be gone. What is sent to it tells: who is gone
 * answers with a reset. HTTP/1.0 has nothing that could be sent, and its runs go on to their end. TLS ends
 * both ways at once. */
void exchange_half_closed(struct exchange *exchange)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct http *http = exchange->http;
    int fd = exchange->socket->fd;
    if (http->tls) {
        exchange_gone(exchange);
        return;
    }
    exchange->half_closed = true;
    if (exchange->stream) {
        stream_comment(exchange->stream);
        exchange_resume(exchange);
        return;
    }
    loop_watch_end(http, fd, exchange->ticket->tag, true);
    if (!exchange->http_1_0)
        (void)send(fd, interim, sizeof interim - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void exchange_gone(struct exchange *exchange)
{
    struct ticket *ticket = take_ptr(&exchange->ticket);
    exchange->gone = true;
    if (ticket) {
        ticket->exchange = NULL;
        if (ticket->kind == TICKET_RUN)
            execute_abandon(exchange->http, ticket);
    }
    exchange_resume(exchange);
}
