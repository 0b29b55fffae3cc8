/* SPDX-License-Identifier: MIT */
/* Relays data between two sockets.
 *
 * Events are edge-triggered, so a side is read until it has no more data, or until its turn is over
 * and other connections are served. Data that the receiver does not accept is kept, at most
 * RELAY_CHUNK of it, and nothing more is read until it was written, so the sender is throttled. */
#include "net/broker_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sockets.h"

#define TURN_BYTES ((size_t)1 << 20)

enum step {
    STEP_WAIT,  /* for an event */
    STEP_AGAIN, /* its turn is over, but not its work */
    STEP_ENDED,
    STEP_BROKEN,
};

/* ---- One direction ---- */

static void count_bytes(struct relay *relay, struct relay_flow *flow, size_t bytes)
{
    flow->total += bytes;
    relay->moved(relay, bytes);
}

/* Keeps data that was read and could not be written. */
static bool keep(struct relay_flow *flow, const void *bytes, size_t size)
{
    if (size == 0)
        return true;
    if (!flow->kept && !(flow->kept = malloc(RELAY_CHUNK)))
        return false;
    memcpy(flow->kept, bytes, size);
    flow->start = 0;
    flow->end = size;
    return true;
}

/* Returns how much was sent; -1 with errno if the connection is broken. */
static ssize_t send_some(struct relay_side *to, const void *bytes, size_t size)
{
    ssize_t sent = send(to->watch.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        return sent;
    if (errno != EAGAIN && errno != EINTR)
        return -1;
    to->writable = errno == EINTR;
    return 0;
}

static bool write_kept(struct relay *relay, struct relay_flow *flow)
{
    while (flow->start < flow->end && flow->to->writable) {
        ssize_t sent = send_some(flow->to, flow->kept + flow->start, flow->end - flow->start);
        if (sent < 0)
            return false;
        flow->start += (size_t)sent;
        count_bytes(relay, flow, (size_t)sent);
    }
    if (flow->start == flow->end) {
        free(flow->kept);
        flow->kept = NULL;
        flow->start = flow->end = 0;
    }
    return true;
}

/* Returns how much was read; 0 with flow->ended or if there is no data; -1 if the connection is
 * broken. */
static ssize_t came(struct relay_flow *flow, ssize_t got)
{
    if (got > 0)
        return got;
    if (got == 0)
        flow->ended = true;
    else if (errno == EAGAIN)
        flow->from->readable = false;
    else if (errno != EINTR)
        return -1;
    return 0;
}

static ssize_t read_some(struct relay *relay, struct relay_flow *flow)
{
    char scratch[RELAY_CHUNK];
    ssize_t got = came(flow, recv(flow->from->watch.fd, scratch, RELAY_CHUNK, MSG_DONTWAIT));
    if (got <= 0)
        return got;
    ssize_t sent = flow->to->writable ? send_some(flow->to, scratch, (size_t)got) : 0;
    if (sent < 0)
        return -1;
    count_bytes(relay, flow, (size_t)sent);
    return keep(flow, scratch + sent, (size_t)(got - sent)) ? got : -1;
}

static enum step run_flow(struct relay *relay, struct relay_flow *flow)
{
    if (flow->closed)
        return STEP_ENDED;
    for (size_t turn = 0; turn < TURN_BYTES;) {
        if (!write_kept(relay, flow))
            return STEP_BROKEN;
        if (flow->kept)
            return STEP_WAIT;
        if (flow->ended) {
            (void)shutdown(flow->to->watch.fd, SHUT_WR);
            flow->closed = true;
            return STEP_ENDED;
        }
        if (!flow->from->readable)
            return STEP_WAIT;
        ssize_t got = read_some(relay, flow);
        if (got < 0)
            return STEP_BROKEN;
        turn += (size_t)got;
    }
    return STEP_AGAIN;
}

/* ---- Both ---- */

static void run(struct relay *relay)
{
    enum step out = run_flow(relay, &relay->out);
    enum step in = run_flow(relay, &relay->in);
    if (out == STEP_BROKEN || in == STEP_BROKEN)
        relay->done(relay, true);
    else if (out == STEP_ENDED && in == STEP_ENDED)
        relay->done(relay, false);
    else if (out == STEP_AGAIN || in == STEP_AGAIN)
        loop_queue(relay->loop, &relay->again);
}

static void run_again(struct task *task)
{
    run(container_of(task, struct relay, again));
}

static void side_ready(struct watch *watch, uint32_t events)
{
    struct relay_side *side = container_of(watch, struct relay_side, watch);
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        side->readable = true;
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        side->writable = true;
    run(side->relay);
}

static void set_side(struct relay *relay, struct relay_side *side, int fd)
{
    *side = (struct relay_side){.watch = {.fd = fd, .ready = side_ready},
                                .relay = relay,
                                .readable = true,
                                .writable = true};
    socket_tune(fd, true);
}

bool relay_start(struct relay *relay, struct loop *loop, int jail, int world,
                 const struct relay_ahead *ahead)
{
    const uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    relay->loop = loop;
    relay->again.run = run_again;
    relay->running = true;
    set_side(relay, &relay->jail, jail);
    set_side(relay, &relay->world, world);
    relay->out = (struct relay_flow){.from = &relay->jail, .to = &relay->world};
    relay->in = (struct relay_flow){.from = &relay->world, .to = &relay->jail};
    if (!keep(&relay->out, ahead->to_world, ahead->to_world_size) ||
        !keep(&relay->in, ahead->to_jail, ahead->to_jail_size) ||
        !loop_watch(loop, &relay->jail.watch, events) ||
        !loop_watch(loop, &relay->world.watch, events))
        return false;
    loop_queue(loop, &relay->again);
    return true;
}

void relay_stop(struct relay *relay, bool reset)
{
    if (!relay->running)
        return;
    relay->running = false;
    loop_unqueue(relay->loop, &relay->again);
    free(relay->out.kept);
    free(relay->in.kept);
    if (reset) {
        socket_reset(relay->jail.watch.fd);
        socket_reset(relay->world.watch.fd);
    }
    loop_close(relay->loop, &relay->jail.watch);
    loop_close(relay->loop, &relay->world.watch);
}
