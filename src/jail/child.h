/* SPDX-License-Identifier: MIT */
/* Executing a plan between clone and exec: system calls only, in memory that may be the caller's.
 *
 * No malloc, no stdio, no locks, no errno: the caller may have threads, and with CLONE_VM this code
 * runs on a stack of its own inside the caller's address space while the caller's thread waits. */
#pragma once

#include "jail/plan.h"

#define CHILD_STACK_BYTES 65536

/* Starts the jail's first process and returns its pid in the caller's namespace, or -errno, and a
 * pidfd of it; with an intermediate, that one's pid, and pid and pidfd come as WIRE_PID. On
 * return with VFORK semantics it has executed init or is gone; failures come as WIRE_FAILED on the
 * other end of wire_fd. `stack` is 3 * CHILD_STACK_BYTES, the caller's until then. The caller
 * blocks all signals around the call. */
long child_start(const struct plan *plan, int wire_fd, void *stack, int *ret_pidfd);

/* In child_mount.c: one build step; 0 or -errno. */
int child_mount_step(const struct plan *plan, const struct plan_step *step);
bool child_is_mount_step(const struct plan_step *step);
