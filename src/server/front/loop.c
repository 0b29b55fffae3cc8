/* SPDX-License-Identifier: MIT */
/* The front's loop. */
#include "server/front/loop.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "server/front/execute.h"
#include "server/front/front.h"
#include "server/front/linger.h"

#define EVENTS_AT_ONCE 64

int loop_add(struct front *front, int fd, enum loop_source source, struct brig_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = source};
    if (epoll_ctl(front->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for a socket");
    return 0;
}

/* That nothing works any more is told in any case. */
void loop_watch_end(struct front *front, int fd, uint64_t tag, bool half_closed)
{
    struct epoll_event event = {.events = EPOLLONESHOT | (half_closed ? 0 : EPOLLRDHUP),
                                .data.u64 = LOOP_END + tag};
    if (epoll_ctl(front->epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
        (void)epoll_ctl(front->epoll, EPOLL_CTL_MOD, fd, &event);
}

void loop_forget(struct front *front, int fd)
{
    (void)epoll_ctl(front->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void loop_want_write(struct front *front, int fd, enum loop_source source, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.u64 = source};
    (void)epoll_ctl(front->epoll, EPOLL_CTL_MOD, fd, &event);
}

/* ---- One turn ---- */

static void take_end(struct front *front, uint64_t tag, uint32_t events)
{
    const struct ticket *ticket = ticket_find(front, tag);
    if (!ticket || !ticket->exchange || !ticket->exchange->suspended)
        return;
    if (events & (EPOLLHUP | EPOLLERR))
        exchange_gone(ticket->exchange);
    else
        exchange_half_closed(ticket->exchange);
}

static int take_event(struct front *front, const struct epoll_event *event, struct brig_error *err)
{
    switch (event->data.u64) {
    case LOOP_HTTP:
        return 0; /* once in each turn */
    case LOOP_CONTROL:
        return front_hear_control(front, err);
    case LOOP_WARDEN:
        front_hear_peer(front, ROLE_WARDEN);
        return 0;
    case LOOP_RECORDER:
        front_hear_peer(front, ROLE_RECORDER);
        return 0;
    case LOOP_LINGER:
        linger_read(front);
        return 0;
    default:
        take_end(front, event->data.u64 - LOOP_END, event->events);
        return 0;
    }
}

static void flush_channel(struct front *front, struct channel *channel, enum loop_source source,
                          bool *writing)
{
    if (!channel)
        return;
    if (*writing)
        (void)channel_flush(channel, NULL); /* who is gone is noticed by reading */
    if (channel_wants_write(channel) == *writing)
        return;
    *writing = !*writing;
    loop_want_write(front, channel_fd(channel), source, *writing);
}

static void flush(struct front *front)
{
    flush_channel(front, front->control, LOOP_CONTROL, &front->writing[ROLES_]);
    flush_channel(front, front->peers[ROLE_WARDEN], LOOP_WARDEN, &front->writing[ROLE_WARDEN]);
    flush_channel(front, front->peers[ROLE_RECORDER], LOOP_RECORDER,
                  &front->writing[ROLE_RECORDER]);
    access_log_flush(&front->log);
}

static void tick(struct front *front)
{
    if (front->now_ms < front->next_tick_ms)
        return;
    front->next_tick_ms = front->now_ms + FRONT_TICK_MS;
    execute_tick(front);
    execute_start_waiting(front);
    http_tick(front);
    linger_tick(front);
}

/* Ticks are for who waits for something: without connections there is nobody. */
static int patience(const struct front *front)
{
    MHD_UNSIGNED_LONG_LONG library_ms = 0;
    bool limited = MHD_get_timeout(front->daemon, &library_ms) == MHD_YES;
    bool ticking = front->connections || front->lingering || front->draining;
    uint64_t tick_ms =
        front->next_tick_ms > front->now_ms ? front->next_tick_ms - front->now_ms : 0;
    if (!limited && !ticking)
        return -1;
    if (!ticking)
        return library_ms < 60000 ? (int)library_ms : 60000;
    return (int)(limited && library_ms < tick_ms ? library_ms : tick_ms);
}

static int turn(struct front *front, struct brig_error *err)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(front->epoll, events, EVENTS_AT_ONCE, patience(front));
    if (count < 0 && errno != EINTR)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait");
    front->now_ms = clock_now_ms();
    for (int i = 0; i < count; i++) {
        int result = take_event(front, &events[i], err);
        if (result < 0)
            return result;
    }
    (void)MHD_run(front->daemon);
    tick(front);
    flush(front);
    return 0;
}

int loop_run(struct front *front, struct brig_error *err)
{
    for (;;) {
        int result = turn(front, err);
        if (result < 0)
            return result;
        if (front->draining && (!front->exchanges || front->now_ms >= front->drain_until_ms))
            return 0;
    }
}
