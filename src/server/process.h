/* SPDX-License-Identifier: MIT */
/* What the kernel says about a process of brigd, for /metrics. */
#pragma once

#include <sys/types.h>

struct journal_process;

/* Sets CPU time, memory, the start, and the open files if this user can see them. Leaves everything
 * as it was if there is no such process. */
void process_measure(pid_t pid, struct journal_process *process);
