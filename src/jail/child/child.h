/* SPDX-License-Identifier: MIT */
/* Executes a plan between clone and exec, by system calls only, in memory that may be the caller's.
 *
 * No malloc, no stdio, no locks, no errno: the caller may have threads, and with CLONE_VM this code
 * runs on a separate stack inside the caller's address space while the caller's thread waits. */
#pragma once

#include "jail/plan/plan.h"

#define CHILD_STACK_BYTES 65536
#define CHILD_STACKS 3
#define CHILD_MEMORY_BYTES ((size_t)CHILD_STACKS * CHILD_STACK_BYTES + 4096)

/* Returns whether an intermediate process clones the first process. The caller reaps the
 * intermediate at once, and learns the pid of the first process from its message. */
bool child_has_intermediate(const struct plan *plan);

/* Starts the jail's first process and returns its pid in the caller's namespace, or -errno, and a
 * pidfd for it. With an intermediate, returns the intermediate's pid; the pid and pidfd of the
 * first process arrive as WIRE_PID. If that message does not arrive, child_first() returns the pid
 * (0 without clone3); this needs `memory` to be shared. On return the first process has executed
 * init or has exited. Failures arrive as WIRE_FAILED on wire[0], the caller's end; wire[1] is the
 * child's end. The caller closes wire[1] and frees `memory` (CHILD_MEMORY_BYTES) when all of this
 * is over, and blocks all signals around the call. */
long child_start(const struct plan *plan, const int wire[2], void *memory, int *ret_pidfd);
int child_first(void *memory);

/* In child_mount.c: executes one build step; returns 0 or -errno. */
int child_mount_step(const struct plan *plan, const struct plan_step *step);
bool child_is_mount_step(const struct plan_step *step);
