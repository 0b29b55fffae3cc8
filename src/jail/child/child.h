/* SPDX-License-Identifier: MIT */
/* Executing a plan between clone and exec: system calls only, in memory that may be the caller's.
 *
 * No malloc, no stdio, no locks, no errno: the caller may have threads, and with CLONE_VM this code
 * runs on a stack of its own inside the caller's address space while the caller's thread waits. */
#pragma once

#include "jail/plan/plan.h"

#define CHILD_STACK_BYTES 65536
#define CHILD_STACKS 3
#define CHILD_MEMORY_BYTES ((size_t)CHILD_STACKS * CHILD_STACK_BYTES + 4096)

/* Whether another process makes the first one: it is ours to reap at once, and says the pid of that. */
bool child_has_intermediate(const struct plan *plan);

/* Starts the jail's first process and returns its pid in the caller's namespace, or -errno, and a
 * pidfd of it; with an intermediate, that one's pid, and pid and pidfd come as WIRE_PID; if they
 * should not, child_first() is the pid (and 0 before clone3), for which `memory` must be shared. On
 * return with VFORK semantics it has executed init or is gone; not so with plan->late_groups, which the
 * first process waits for: then when the intermediate is gone. Failures come as WIRE_FAILED on wire[0],
 * the caller's end; wire[1] is the child's, and to be closed when all that is over. `memory` is
 * CHILD_MEMORY_BYTES, the caller's until then. The caller blocks all signals around the call. */
long child_start(const struct plan *plan, const int wire[2], void *memory, int *ret_pidfd);
int child_first(void *memory);

/* The same in two halves, for a plan of which only the first half is there (plan_begin()): the
 * first process makes namespaces and network meanwhile, the command's waits. wire[0] is the
 * caller's end, wire[1] the child's. The first half leaves nothing behind if it fails. Between the
 * two the plan may grow, and must stay where it is. What was opened in between, and is to be mounted by
 * its steps PLAN_PREPARED, is given along in their order. The second half returns when both have left
 * this memory: true if the first is known to have become init, which then does not say it. */
long child_begin(const struct plan *plan, const int wire[2], void *memory, int *ret_pidfd);
/* Where the plan's namespaces were made ahead (plan->given) the first half returns 0 before there is a first
 * process; this waits for it, as child_go_on() must not be called without. Its pid and pidfd, or -errno. */
long child_settle(void *memory, int *ret_pidfd);
bool child_go_on(void *memory, int wire_fd, const int *fds, size_t count);

/* In child_mount.c: one build step; 0 or -errno. */
int child_mount_step(const struct plan *plan, const struct plan_step *step);
bool child_is_mount_step(const struct plan_step *step);
