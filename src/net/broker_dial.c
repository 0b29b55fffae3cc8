/* SPDX-License-Identifier: MIT */
/* Connecting to the first of several addresses that answers (in the manner of RFC 8305). */
#include "net/broker_dial.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net/broker_route.h"
#include "net/broker_sockets.h"

#define NEXT_MS 250

static void try_next(struct dial *dial);

static void drop_attempt(struct dial_attempt *attempt)
{
    loop_close(attempt->dial->loop, &attempt->watch);
    attempt->dial->running--;
}

void dial_cancel(struct dial *dial)
{
    if (!dial->loop)
        return;
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        if (dial->attempts[i].watch.fd >= 0)
            drop_attempt(&dial->attempts[i]);
    loop_disarm(dial->loop, &dial->timer);
}

static void succeed(struct dial *dial, struct dial_attempt *attempt)
{
    int fd = attempt->watch.fd;
    struct net_address address = attempt->address;
    loop_forget(dial->loop, &attempt->watch);
    attempt->watch.fd = -1;
    dial->running--;
    dial_cancel(dial);
    dial->done(dial, fd, &address, 0);
}

static void attempt_ready(struct watch *watch, uint32_t events)
{
    struct dial_attempt *attempt =
        (struct dial_attempt *)((char *)watch - offsetof(struct dial_attempt, watch));
    struct dial *dial = attempt->dial;
    int sys_errno = 0;
    socklen_t length = sizeof sys_errno;
    (void)events;
    if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &sys_errno, &length) < 0)
        sys_errno = errno;
    if (sys_errno == 0) {
        union socket_address peer;
        length = sizeof peer;
        /* An event may be left over from the descriptor that had this number before. */
        if (getpeername(watch->fd, &peer.any, &length) == 0)
            succeed(dial, attempt);
        return;
    }
    dial->last_errno = sys_errno;
    drop_attempt(attempt);
    try_next(dial);
}

/* A socket that is connecting; -1 with errno. */
static int begin(const struct dial *dial, const struct net_address *address)
{
    union socket_address to;
    socklen_t length = socket_address_fill(&to, address, dial->port);
    int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (dial->routes >= 0 && route_find(dial->routes, address) == ROUTE_OWN)
        socket_unpace(fd);
    if (connect(fd, &to.any, length) == 0 || errno == EINPROGRESS)
        return fd;
    int sys_errno = errno;
    (void)close(fd);
    errno = sys_errno;
    return -1;
}

static struct dial_attempt *free_attempt(struct dial *dial)
{
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        if (dial->attempts[i].watch.fd < 0)
            return &dial->attempts[i];
    return NULL;
}

/* Starts with the next address that can be started with; done with a failure if nothing is left. */
static void try_next(struct dial *dial)
{
    struct dial_attempt *attempt;
    while (dial->next < dial->count && (attempt = free_attempt(dial))) {
        attempt->address = dial->addresses[dial->next++];
        attempt->watch.ready = attempt_ready;
        attempt->watch.fd = begin(dial, &attempt->address);
        if (attempt->watch.fd >= 0 && loop_watch(dial->loop, &attempt->watch, EPOLLOUT)) {
            dial->running++;
            loop_arm(dial->loop, &dial->timer, NEXT_MS);
            return;
        }
        dial->last_errno = errno;
        if (attempt->watch.fd >= 0)
            (void)close(attempt->watch.fd);
        attempt->watch.fd = -1;
    }
    if (dial->running > 0)
        return;
    loop_disarm(dial->loop, &dial->timer);
    dial->done(dial, -1, NULL, dial->last_errno);
}

static void timer_fires(struct timer *timer)
{
    struct dial *dial = (struct dial *)((char *)timer - offsetof(struct dial, timer));
    if (dial->next < dial->count)
        try_next(dial);
}

static size_t next_of(const struct net_address *addresses, size_t count, size_t from,
                      enum net_family family)
{
    while (from < count && addresses[from].family != family)
        from++;
    return from;
}

static void take_turns(struct dial *dial, const struct net_address *addresses, size_t count)
{
    enum net_family family = count > 0 ? addresses[0].family : NET_V4;
    size_t at[2] = {0, 0};
    dial->count = 0;
    while (dial->count < DIAL_ADDRESSES_MAX) {
        size_t *place = &at[family == NET_V6];
        enum net_family other = family == NET_V4 ? NET_V6 : NET_V4;
        *place = next_of(addresses, count, *place, family);
        if (*place < count)
            dial->addresses[dial->count++] = addresses[(*place)++];
        else if (next_of(addresses, count, at[other == NET_V6], other) == count)
            break;
        family = other;
    }
}

void dial_start(struct dial *dial, struct loop *loop, const struct net_address *addresses,
                size_t count, uint16_t port)
{
    dial->loop = loop;
    dial->port = port;
    dial->next = dial->running = 0;
    dial->last_errno = EHOSTUNREACH;
    dial->timer.fire = timer_fires;
    for (size_t i = 0; i < DIAL_AT_ONCE; i++) {
        dial->attempts[i].dial = dial;
        dial->attempts[i].watch.fd = -1;
    }
    take_turns(dial, addresses, count);
    try_next(dial);
}
