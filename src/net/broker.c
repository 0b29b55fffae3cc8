/* SPDX-License-Identifier: MIT */
/* The broker as a whole: its sockets, its limits, and what it tells the job. */
#include "net/broker.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "net/broker_inject.h"
#include "net/broker_route.h"
#include "net/broker_sockets.h"

#define ACCEPT_AT_ONCE 64
#define REST_MS 100
/* At the end of a job: how long connections may stay open, and how long the job may take to read the
 * last events. The job waits for LAST_WORDS_MS in jail/net/door.c, which is longer. */
#define FINISH_MS 300
#define DRAIN_MS 1500
/* Descriptors that are not connections': sockets, pipes, c-ares', libcurl's, queries. */
#define FDS_OF_OTHERS (DOOR_SOCKETS_MAX + 2 * RELAY_PIPES_MAX + 256)
#define FDS_OF_CONNECTION 3

/* The shadow of a sanitizer is memory too, and more than any bound. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW true
#else
#define HAS_SHADOW false
#endif

_Static_assert(DOOR_RULE_MAX >= NET_RULE_TEXT_MAX, "an event has room for every rule");
_Static_assert(DOOR_ADDRESS_MAX >= NET_ADDRESS_TEXT_MAX, "and for every address");
_Static_assert(DOOR_NAME_MAX > NET_NAME_MAX, "and for every name");

/* ---- Beginning and end ---- */

static void close_listeners(struct broker *broker)
{
    for (size_t i = 0; i < broker->listener_count; i++) {
        loop_disarm(&broker->loop, &broker->listeners[i].rest);
        loop_close(&broker->loop, &broker->listeners[i].watch);
    }
    broker->listener_count = 0;
}

/* What the jail sends must not fill the host's memory. Whoever gets none is refused. */
static int bound_memory(const struct broker *broker, struct brig_error *err)
{
    uint64_t bytes = door_memory_bytes(broker->config.limits[CONFIG_LIMIT_CONNECTIONS]);
    struct rlimit data;
    if (HAS_SHADOW)
        return 0;
    if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_max < bytes)
        bytes = data.rlim_max;
    data = (struct rlimit){.rlim_cur = bytes, .rlim_max = bytes};
    if (setrlimit(RLIMIT_DATA, &data) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot bound its memory");
    return 0;
}

/* A connection must never be accepted that there are no descriptors for. */
static void fit_limits(struct broker *broker)
{
    uint64_t *limit = &broker->config.limits[CONFIG_LIMIT_CONNECTIONS];
    uint64_t files = fds_raise_limit(RLIM_INFINITY, NULL);
    uint64_t others = FDS_OF_OTHERS < files / 2 ? FDS_OF_OTHERS : files / 2;
    uint64_t possible = (files - others) / FDS_OF_CONNECTION;
    if (*limit > possible)
        *limit = possible;
}

static void end_all(struct task *task)
{
    struct broker *broker = (struct broker *)((char *)task - offsetof(struct broker, over_bytes));
    connections_end(broker, DOOR_BECAUSE_BYTES);
    inject_clients_end(broker, DOOR_BECAUSE_BYTES);
}

static void finish_expires(struct timer *timer)
{
    struct broker *broker = (struct broker *)((char *)timer - offsetof(struct broker, finish));
    broker->loop.stop = true;
}

void broker_init(struct broker *broker)
{
    broker->finish.fire = finish_expires;
    broker->control.fd = broker->connector.fd = broker->loop.epoll = broker->routes = -1;
    broker->publish_last = &broker->publish_first;
    broker->over_bytes.run = end_all;
}

int broker_start(struct broker *broker, const char *config, size_t length, struct brig_error *err)
{
    int status = broker_config_read(&broker->config, config, length, err);
    if (status < 0)
        return status;
    if (broker->config.secret_count > broker->secrets.count)
        return brig_fail(err, BRIG_E_INVALID, 0, "%u credentials are named and %zu were given",
                         broker->config.secret_count, broker->secrets.count);
    fit_limits(broker);
    status = bound_memory(broker, err);
    if (status < 0)
        return status;
    broker->names.limit = (size_t)broker->config.limits[CONFIG_LIMIT_NAMES];
    status = loop_init(&broker->loop, err);
    broker->relays.loop = &broker->loop;
    if (status == 0)
        status = route_open(&broker->routes, err);
    if (status == 0)
        status = resolver_init(&broker->resolver, &broker->loop, &broker->config, err);
    return status < 0 ? status : inject_init(broker, err);
}

void broker_done(struct broker *broker)
{
    if (broker->loop.epoll < 0)
        return;
    connections_end(broker, DOOR_BECAUSE_CLOSED);
    inject_clients_end(broker, DOOR_BECAUSE_CLOSED);
    dns_streams_end(broker);
    inject_done(broker);
    resolver_done(&broker->resolver);
    relay_shared_done(&broker->relays);
    close_listeners(broker);
    names_done(&broker->names);
    if (broker->routes >= 0)
        (void)close(broker->routes);
    events_drain(&broker->events, DRAIN_MS);
    events_done(&broker->events);
    broker_config_done(&broker->config);
    loop_done(&broker->loop);
}

/* ---- Sockets ---- */

static void watch_listeners(struct broker *broker, uint32_t events)
{
    for (size_t i = 0; i < broker->listener_count; i++)
        loop_rewatch(&broker->loop, &broker->listeners[i].watch, events);
}

/* For messages, until there are no more, and for what else. */
static void watch_control(struct broker *broker, uint32_t events)
{
    loop_rewatch(&broker->loop, &broker->control, broker->finishing ? events : events | EPOLLIN);
}

static void pause_all(struct broker *broker)
{
    if (broker->paused)
        return;
    broker->paused = true;
    watch_listeners(broker, 0);
    watch_control(broker, EPOLLOUT);
}

static void resume_all(struct broker *broker)
{
    broker->paused = false;
    watch_listeners(broker, EPOLLIN);
    inject_resume(broker);
}

void broker_control_writable(struct broker *broker)
{
    if (!events_flush(&broker->events)) {
        broker->loop.stop = true;
        return;
    }
    if (broker->events.waiting > 0)
        return;
    watch_control(broker, 0);
    if (broker->paused)
        resume_all(broker);
}

static void hand_over(struct listener *listener, int fd)
{
    switch (listener->kind) {
    case DOOR_SOCKET_DNS_TCP:
        dns_tcp_accepted(listener, fd);
        return;
    case DOOR_SOCKET_REDIRECT:
    case DOOR_SOCKET_HTTP_PROXY:
    case DOOR_SOCKET_SOCKS:
        connection_accepted(listener, fd);
        return;
    case DOOR_SOCKET_INJECT:
        inject_accepted(listener, fd);
        return;
    case DOOR_SOCKET_PUBLISH:
        publish_accepted(listener, fd);
        return;
    case DOOR_SOCKET_DNS_UDP:
    case DOOR_SOCKET_CONNECTOR:
    case DOOR_SOCKET_COUNT:
        break;
    }
    (void)close(fd);
}

static void listener_rested(struct timer *timer)
{
    struct listener *listener =
        (struct listener *)((char *)timer - offsetof(struct listener, rest));
    if (!listener->broker->paused)
        loop_rewatch(&listener->broker->loop, &listener->watch, EPOLLIN);
}

/* Nothing came, or nothing can be had: then it would be told of again and again. */
static void accept_failed(struct listener *listener)
{
    struct loop *loop = &listener->broker->loop;
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return;
    loop_rewatch(loop, &listener->watch, 0);
    loop_arm(loop, &listener->rest, REST_MS);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
    struct listener *listener =
        (struct listener *)((char *)watch - offsetof(struct listener, watch));
    (void)events;
    if (listener->kind == DOOR_SOCKET_DNS_UDP) {
        dns_udp_ready(listener);
        return;
    }
    for (size_t i = 0; i < ACCEPT_AT_ONCE && !listener->broker->paused; i++) {
        /* cppcheck-suppress nullPointer */
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            accept_failed(listener);
            return;
        }
        hand_over(listener, fd);
    }
}

static bool index_fits(const struct broker *broker, enum door_socket kind, unsigned index)
{
    if (kind == DOOR_SOCKET_INJECT)
        return index < broker->config.inject_count;
    if (kind == DOOR_SOCKET_PUBLISH)
        return index < broker->config.publish_count;
    return index == 0;
}

bool broker_add_socket(struct broker *broker, enum door_socket kind, unsigned index, int fd)
{
    if (kind >= DOOR_SOCKET_COUNT || !index_fits(broker, kind, index))
        return false;
    if (kind == DOOR_SOCKET_CONNECTOR)
        return publish_connector(broker, fd);
    if (broker->listener_count == DOOR_SOCKETS_MAX)
        return false;
    struct listener *listener = &broker->listeners[broker->listener_count];
    *listener = (struct listener){.watch = {.fd = fd, .ready = listener_ready},
                                  .rest = {.fire = listener_rested},
                                  .broker = broker,
                                  .kind = kind,
                                  .index = index};
    if (!socket_unblock(fd) ||
        !loop_watch(&broker->loop, &listener->watch, broker->paused ? 0 : EPOLLIN))
        return false;
    broker->listener_count++;
    return true;
}

void broker_finish(struct broker *broker)
{
    broker->finishing = true;
    close_listeners(broker);
    loop_rewatch(&broker->loop, &broker->control, broker->events.waiting > 0 ? EPOLLOUT : 0);
    if (broker->connection_count == 0)
        broker->loop.stop = true;
    else
        loop_arm(&broker->loop, &broker->finish, FINISH_MS);
}

void broker_count_off(struct broker *broker)
{
    broker->connection_count--;
    if (broker->finishing && broker->connection_count == 0)
        broker->loop.stop = true;
}

/* ---- What is told, and what is counted ---- */

void broker_tell(struct broker *broker, struct door_event *event)
{
    event->head = (struct door_message){.version = DOOR_WIRE_VERSION, .type = DOOR_EVENT};
    event->time_ns = clock_wall_ns();
    if (!events_send(&broker->events, event)) {
        broker->loop.stop = true;
        return;
    }
    if (broker->events.waiting > EVENTS_FEW)
        pause_all(broker);
    else if (broker->events.waiting > 0)
        watch_control(broker, EPOLLOUT);
}

void broker_tell_full(struct broker *broker, enum door_socket via)
{
    struct door_event event = {.verdict = DOOR_ERROR,
                               .because = DOOR_BECAUSE_CONNECTIONS,
                               .via = via,
                               .connection = ++broker->last_connection,
                               .detail = "too many connections at one time"};
    broker_tell(broker, &event);
}

void broker_count_bytes(struct broker *broker, size_t bytes)
{
    uint64_t limit = broker->config.limits[CONFIG_LIMIT_BYTES];
    broker->bytes += bytes;
    if (limit > 0 && broker->bytes > limit)
        loop_queue(&broker->loop, &broker->over_bytes);
}

bool broker_has_room(const struct broker *broker)
{
    return broker->connection_count < broker->config.limits[CONFIG_LIMIT_CONNECTIONS];
}
