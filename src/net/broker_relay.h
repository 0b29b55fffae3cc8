/* SPDX-License-Identifier: MIT */
/* Two sockets, and what one sends the other receives: both ways, until both have ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/broker_loop.h"

#define RELAY_CHUNK 65536 /* bytes that are moved at a time */
#define RELAY_PIPES_MAX 32

struct relay;

/* Pipes through which much is moved without being copied. They are few, and made when needed. */
struct relay_pipes {
    int idle[RELAY_PIPES_MAX][2];
    size_t idle_count, made;
};

/* What all relays share; not for keeping: `scratch` is overwritten by the next that runs. */
struct relay_shared {
    struct loop *loop;
    struct relay_pipes pipes;
    char scratch[RELAY_CHUNK];
};

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
    int pipe[2]; /* -1: none */
    size_t piped;
    uint64_t total; /* bytes that were written */
    bool ended;     /* the sender has; */
    bool closed;    /* so the receiver was told */
};

/* Zero-initialise; part of a connection. */
struct relay {
    struct relay_shared *shared;
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

void relay_shared_done(struct relay_shared *shared);

/* Owns both sockets from now on, which are non-blocking and not watched. Bytes that were read ahead
 * are copied. False if memory is short; the sockets are then still the caller's. */
bool relay_start(struct relay *relay, struct relay_shared *shared, int jail, int world,
                 const void *to_world, size_t to_world_size, const void *to_jail,
                 size_t to_jail_size);
/* Closes the sockets; with `reset` both peers see the connection broken. */
void relay_stop(struct relay *relay, bool reset);
