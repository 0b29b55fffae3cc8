/* SPDX-License-Identifier: MIT */
/* Child processes. */
#pragma once

#include <sys/types.h>

/* Waits for the end of a child: its exit status, or 128 and the signal that has ended it. -1 if there is
 * no such child, or if pid is not positive, as after a fork() that failed. */
int process_wait(pid_t pid);
