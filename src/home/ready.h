/* SPDX-License-Identifier: MIT */
/* Namespaces that a jail's holder has ready for the next run.
 *
 * Theory of operation: a run's user namespace must be a child of the one that the run is in, and the
 * holder is in another. So they are made by a preparer: brig once more, a process of the user's that runs
 * nothing else and ends with the holder's socket. A run that hears from the holder that there is none starts
 * it when it is over, and gives the holder the other end. Some milliseconds after a run is over, or
 * once it has started, the holder asks for a set like the one that run wanted. The next run that wants
 * exactly the same gets it, and nobody ever again. Where there is none, the run makes its own. */
#pragma once

#include "home/wire.h"
#include "jail/prepare/ready.h"

/* What the preparer answers the holder, and the holder a run: the fds come in the order of these. */
struct ready_answer {
    uint32_t version;
    uint32_t ready;          /* a set comes with it */
    uint32_t wants_preparer; /* nobody makes any */
    uint32_t namespaces;     /* 1 << enum ready_namespace */
    uint32_t socket_count;
    uint32_t sockets[READY_SOCKETS_MAX]; /* kind << 8 | index */
};

/* Sends a set, or NULL that there is none; false if that was not possible. Never waits. */
bool ready_send(int socket, const struct ready_set *set, bool wants_preparer);
/* Receives one, with flags as for recvmsg(); false at the end, or if it is of another version. */
bool ready_receive(int socket, int flags, struct ready_answer *ret_answer,
                   struct ready_set *ret_set);

/* ---- a run ---- */

/* Asks the holder for a set of this shape. */
void home_ask_ready(int called, const char *shape, size_t length);
/* 1 and a set, 0 if there is none, or -1: the connection is of no more use. *ret_wants_preparer:
 * home_start_preparer() would be welcome. */
int home_take_ready(int called, struct ready_set *ret_set, bool *ret_wants_preparer);
/* Starts a preparer for the holder at the other end of a run's lease. If it cannot be, runs take longer. */
void home_start_preparer(int lease);

/* The program of the preparer, with fd 3 to the holder. Returns the exit status. */
#define HOME_PREPARER_NAME "brig-preparer"
int home_preparer_main(void);
