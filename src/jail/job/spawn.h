/* SPDX-License-Identifier: MIT */
/* From a plan to a running jail: the clone, the help a child needs from its parent, the first
 * messages. */
#pragma once

#include <sys/types.h>

#include "jail/net/door.h"
#include "jail/plan/plan.h"
#include "jail/wire.h"

/* A started jail. The fds are the caller's. */
struct spawned {
    pid_t pid;                /* the jail's first process */
    pid_t first;              /* the same, before an intermediate has said so; or 0 */
    int pidfd;                /* of it */
    int wire;                 /* to it, SEQPACKET, non-blocking */
    int terminal;             /* master of its pty, or -1 */
    int kept;                 /* a private directory of its, or -1 */
    int late;                 /* a file of its that is to be filled, or -1 */
    int nested_limits;        /* the socket for tools, listening, or -1 */
    int listener;             /* for what the filter refuses, or -1 */
    struct door_sockets door; /* of the network door */
    bool started;             /* init was heard of */
    int stop_signal;          /* the command stopped already */
    struct wire_message end;  /* WIRE_ENDED, if it came already; else type 0 */
};

#define SPAWNED_NONE                                                                               \
    (struct spawned)                                                                               \
    {                                                                                              \
        .pidfd = -1, .wire = -1, .terminal = -1, .kept = -1, .late = -1, .nested_limits = -1,      \
        .listener = -1                                                                             \
    }

/* Starts the jail of a plan that has its command. On failure nothing is left behind, and the code is as
 * plan_explain_failure() says. */
int spawn_jail(struct plan *plan, struct spawned *ret_spawned, struct brig_error *err);

/* Ends what spawn_jail() started, and waits for it; nothing if there is none. */
void spawn_end(struct spawned *process);

/* Receives one message; 1, 0 when there is none now, negative at the end. *ret_fd is the fd that came
 * with it, the caller's to close, or -1. */
int spawn_receive(int wire, struct wire_message *ret_message, int *ret_fd);

/* Runs the steps of a plan in the namespaces it joins, and nothing else; 0 once they are done. */
int spawn_steps(struct plan *plan, struct brig_error *err);

/* The group map that still allows setgroups, for a child that waits for it (plan->parent_maps). */
int spawn_newgidmap(const struct plan *plan, pid_t pid, struct brig_error *err);
