/* SPDX-License-Identifier: MIT */
/* Two sockets, and what one sends the other receives: both ways, until both have ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/broker_loop.h"

#define RELAY_CHUNK 65536 /* bytes that are moved at a time */

struct relay;

struct relay_side {
    struct watch watch;
    struct relay *relay;
    bool readable, writable; /* as far as is known: events come once */
};

/* One direction. */
struct relay_flow {
    struct relay_side *from, *to;
    char *kept; /* what could not be written yet: from `start` to `end` */
    size_t start, end;
    uint64_t total; /* bytes that were written */
    bool ended;     /* the sender has; */
    bool closed;    /* so the receiver was told */
};

/* Zero-initialise; part of a connection. */
struct relay {
    struct loop *loop;
    struct relay_side jail, world;
    struct relay_flow out, in; /* from the jail, to the jail */
    struct task again;
    bool running;
    /* It is over: both ended, or (`reset`) one side broke off or memory is short. The receiver calls
     * relay_stop(). */
    void (*done)(struct relay *relay, bool reset);
    /* So many bytes more were moved. Must not stop it. */
    void (*moved)(struct relay *relay, size_t bytes);
};

/* Bytes that were read before the relay started; at most RELAY_CHUNK each. They are copied. */
struct relay_ahead {
    const void *to_world, *to_jail;
    size_t to_world_size, to_jail_size;
};

/* Owns both sockets from now on, which are non-blocking and not watched. False if memory is short: the
 * caller calls relay_stop(). */
bool relay_start(struct relay *relay, struct loop *loop, int jail, int world,
                 const struct relay_ahead *ahead);
/* Closes the sockets; with `reset` both peers see the connection broken. */
void relay_stop(struct relay *relay, bool reset);
