/* SPDX-License-Identifier: MIT */
/* Child processes, and the size of this one. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Waits for the end of a child: its exit status, or 128 and the signal that has ended it. -1 if there is
 * no such child, or if pid is not positive, as after a fork() that failed. */
int process_wait(pid_t pid);

/* The bytes of address space that this process has mapped; 0 if /proc cannot be read. Async-signal-safe. */
uint64_t process_mapped(void);
