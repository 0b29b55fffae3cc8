/* SPDX-License-Identifier: MIT */
/* The http process's loop. */
#include "server/http/loop.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/http/execute.h"
#include "server/http/http.h"
#include "server/http/linger.h"

#define EVENTS_AT_ONCE 64

int loop_add(struct http *http, int fd, enum loop_source source, struct brig_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = source};
    if (epoll_ctl(http->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for a socket");
    return 0;
}

/* That nothing works any more is told in any case. */
void loop_watch_end(struct http *http, int fd, uint64_t tag, bool half_closed)
{
    struct epoll_event event = {.events = EPOLLONESHOT | (half_closed ? 0 : EPOLLRDHUP),
                                .data.u64 = LOOP_END + tag};
    if (epoll_ctl(http->epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
        (void)epoll_ctl(http->epoll, EPOLL_CTL_MOD, fd, &event);
}

void loop_forget(struct http *http, int fd)
{
    (void)epoll_ctl(http->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void loop_want_write(struct http *http, int fd, enum loop_source source, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.u64 = source};
    (void)epoll_ctl(http->epoll, EPOLL_CTL_MOD, fd, &event);
}

/* ---- One turn ---- */

static void take_end(struct http *http, uint64_t tag, uint32_t events)
{
    const struct ticket *ticket = ticket_find(http, tag);
    if (!ticket || !ticket->exchange || !ticket->exchange->suspended)
        return;
    if (events & (EPOLLHUP | EPOLLERR))
        exchange_gone(ticket->exchange);
    else
        exchange_half_closed(ticket->exchange);
}

static int take_event(struct http *http, const struct epoll_event *event, struct brig_error *err)
{
    switch (event->data.u64) {
    case LOOP_HTTP:
        return 0; /* once in each turn */
    case LOOP_CONTROL:
        return http_hear_control(http, err);
    case LOOP_EXECUTOR:
        http_hear_peer(http, ROLE_EXECUTOR);
        return 0;
    case LOOP_HISTORY:
        http_hear_peer(http, ROLE_HISTORY);
        return 0;
    case LOOP_LINGER:
        linger_read(http);
        return 0;
    default:
        take_end(http, event->data.u64 - LOOP_END, event->events);
        return 0;
    }
}

static void flush_channel(struct http *http, struct channel *channel, enum loop_source source,
                          bool *writing)
{
    if (!channel)
        return;
    if (*writing)
        (void)channel_flush(channel, NULL); /* who is gone is noticed by reading */
    if (channel_wants_write(channel) == *writing)
        return;
    *writing = !*writing;
    loop_want_write(http, channel_fd(channel), source, *writing);
}

static void flush(struct http *http)
{
    flush_channel(http, http->control, LOOP_CONTROL, &http->writing[ROLES_]);
    flush_channel(http, http->peers[ROLE_EXECUTOR], LOOP_EXECUTOR, &http->writing[ROLE_EXECUTOR]);
    flush_channel(http, http->peers[ROLE_HISTORY], LOOP_HISTORY, &http->writing[ROLE_HISTORY]);
    access_log_flush(&http->log);
}

static void tick(struct http *http)
{
    if (http->now_ms < http->next_tick_ms)
        return;
    http->next_tick_ms = http->now_ms + HTTP_TICK_MS;
    execute_tick(http);
    execute_start_waiting(http);
    daemon_tick(http);
    linger_tick(http);
}

/* Ticks are for who waits for something: without connections there is nobody. */
static int patience(const struct http *http)
{
    MHD_UNSIGNED_LONG_LONG library_ms = 0;
    bool limited = MHD_get_timeout(http->daemon, &library_ms) == MHD_YES;
    bool ticking = http->connections || http->lingering || http->draining;
    uint64_t tick_ms = http->next_tick_ms > http->now_ms ? http->next_tick_ms - http->now_ms : 0;
    if (!limited && !ticking)
        return -1;
    if (!ticking)
        return library_ms < 60000 ? (int)library_ms : 60000;
    return (int)(limited && library_ms < tick_ms ? library_ms : tick_ms);
}

static int turn(struct http *http, struct brig_error *err)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(http->epoll, events, EVENTS_AT_ONCE, patience(http));
    if (count < 0 && errno != EINTR)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait");
    http->now_ms = clock_now_ms();
    for (int i = 0; i < count; i++) {
        int result = take_event(http, &events[i], err);
        if (result < 0)
            return result;
    }
    (void)MHD_run(http->daemon);
    tick(http);
    flush(http);
    return 0;
}

int loop_run(struct http *http, struct brig_error *err)
{
    for (;;) {
        int result = turn(http, err);
        if (result < 0)
            return result;
        if (http->draining && (!http->exchanges || http->now_ms >= http->drain_until_ms))
            return 0;
    }
}
