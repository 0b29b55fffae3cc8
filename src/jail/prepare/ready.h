/* SPDX-License-Identifier: MIT */
/* Namespaces that are made before the run they are for: user, network, IPC and host name, with ids
 * mapped, loopback up and the door's sockets listening. Nobody is in them, and each set is for one run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "jail/net/door_sockets.h"

struct plan;
struct str;

#define READY_SHAPE_MAX 16384
#define READY_SOCKETS_MAX 16

enum ready_namespace {
    READY_USER,
    READY_IPC,
    READY_UTS,
    READY_NET, /* not where the network is the host's */
    READY_NAMESPACES
};

/* The fds are its own, -1 for none. */
struct ready_set {
    int namespaces[READY_NAMESPACES];
    size_t socket_count;
    struct door_socket_item sockets[READY_SOCKETS_MAX];
};
#define READY_SET_NONE                                                                             \
    (struct ready_set)                                                                             \
    {                                                                                              \
        .namespaces = { -1, -1, -1, -1 }                                                           \
    }
void ready_set_done(struct ready_set *set);

/* All that decides what the namespaces of a plan (plan_begin()) are like, and out of which they are made,
 * as bytes: only where all of them are equal can one set stand for another. False where these namespaces
 * cannot be made ahead. */
bool ready_describe(const struct plan *plan, struct str *out);

/* Makes a set of this shape; false if anything at all did not work, as then the run is to find out
 * itself, and tell. For a process without threads and with little memory: it forks. */
bool ready_make(const char *shape, size_t length, struct ready_set *ret_set);

/* Has a plan join a set instead of making namespaces; it had `described` steps when it was described, and may
 * have more by now. Takes the fds of the namespaces; the sockets stay the caller's. */
void ready_use(struct plan *plan, size_t described, struct ready_set *set);
