/* SPDX-License-Identifier: MIT */
/* Relays data between two sockets in both directions, until both directions have ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/broker_loop.h"

#define RELAY_CHUNK 65536 /* bytes moved at a time */

struct relay;

struct relay_side {
    struct watch watch;
    struct relay *relay;
    bool readable, writable; /* as far as is known: epoll is edge-triggered */
};

/* One direction. */
struct relay_flow {
    struct relay_side *from, *to;
    char *kept; /* data that could not be written yet: from `start` to `end` */
    size_t start, end;
    uint64_t total; /* bytes written */
    bool ended;     /* the sender has shut down; */
    bool closed;    /* so has our side to the receiver */
};

/* Zero-initialise; part of a connection. */
struct relay {
    struct loop *loop;
    struct relay_side jail, world;
    struct relay_flow out, in; /* from the jail, to the jail */
    struct task again;
    bool running;
    /* Called at the end: both directions ended or, with `reset`, a side broke the connection or
     * memory is short. The callee calls relay_stop(). */
    void (*done)(struct relay *relay, bool reset);
    /* Reports that `bytes` more were moved. Must not stop the relay. */
    void (*moved)(struct relay *relay, size_t bytes);
};

/* Bytes that were read before the relay started, at most RELAY_CHUNK for each direction. They are
 * copied. */
struct relay_ahead {
    const void *to_world, *to_jail;
    size_t to_world_size, to_jail_size;
};

/* Takes ownership of both sockets, which are non-blocking and not watched. False if memory is
 * short: the caller calls relay_stop(). */
bool relay_start(struct relay *relay, struct loop *loop, int jail, int world,
                 const struct relay_ahead *ahead);
/* Closes the sockets; with `reset` both peers see a reset. */
void relay_stop(struct relay *relay, bool reset);
