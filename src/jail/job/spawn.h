/* SPDX-License-Identifier: MIT */
/* Starts the jail of a plan: the clone, what the parent does for the child, the first messages. */
#pragma once

#include <sys/types.h>

#include "jail/net/door.h"
#include "jail/plan/plan.h"
#include "jail/wire.h"

/* A started jail. The caller owns the fds. */
struct spawned {
    pid_t pid;                /* the jail's first process */
    pid_t first;              /* the same pid, known before the intermediate reports it; or 0 */
    int pidfd;                /* pidfd of the first process */
    int wire;                 /* socket to the first process, SEQPACKET, non-blocking */
    int terminal;             /* master of the jail's pty, or -1 */
    int kept;                 /* the kept private directory, or -1 */
    int late;                 /* the late file, to be filled, or -1 */
    int nested_limits;        /* the listening socket for tools, or -1 */
    int listener;             /* seccomp listener for refused calls, or -1 */
    struct door_sockets door; /* the sockets of the network door */
    bool started;             /* WIRE_STARTED was received */
    int stop_signal;          /* the signal that stopped the command already, or 0 */
    struct wire_message end;  /* WIRE_ENDED if it was received already; else type 0 */
};

#define SPAWNED_NONE                                                                               \
    (struct spawned)                                                                               \
    {                                                                                              \
        .pidfd = -1, .wire = -1, .terminal = -1, .kept = -1, .late = -1, .nested_limits = -1,      \
        .listener = -1                                                                             \
    }

/* Starts the jail of a plan that has its command. On failure every process and fd is released, and
 * the error code is the one of plan_explain_failure(). */
int spawn_jail(struct plan *plan, struct spawned *ret_spawned, struct brig_error *err);

/* Kills the jail that spawn_jail() started and waits for it; does nothing if there is none. */
void spawn_end(struct spawned *process);
/* Closes this process's descriptors of a jail that its parent started, and lets it run. */
void spawn_forget(struct spawned *process);

/* Receives one message. Returns 1, 0 if none is available, negative at the end of the socket.
 * *ret_fd is the fd that came with the message, which the caller must close, or -1. */
int spawn_receive(int wire, struct wire_message *ret_message, int *ret_fd);

/* Executes the steps of a plan in the namespaces it joins, without a command. Returns 0 when they
 * are done. */
int spawn_steps(struct plan *plan, struct brig_error *err);

/* Writes the gid map with newgidmap, which leaves setgroups allowed, for a child that waits for it
 * (plan->parent_maps). */
int spawn_newgidmap(const struct plan *plan, pid_t pid, struct brig_error *err);
