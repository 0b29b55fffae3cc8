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
 * return the first process has executed init or is gone. Failures come as WIRE_FAILED on wire[0], the
 * caller's end; wire[1] is the child's, and to be closed when all that is over. `memory` is
 * CHILD_MEMORY_BYTES, the caller's until then. The caller blocks all signals around the call. */
long child_start(const struct plan *plan, const int wire[2], void *memory, int *ret_pidfd);
int child_first(void *memory);

/* In child_mount.c: one build step; 0 or -errno. */
int child_mount_step(const struct plan *plan, const struct plan_step *step);
bool child_is_mount_step(const struct plan_step *step);
