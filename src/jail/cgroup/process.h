/* SPDX-License-Identifier: MIT */
/* Processes as /proc shows them: what they used, and their end, where no cgroup or namespace tells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of /proc/PID/stat. */
struct process_stat {
    char state;
    pid_t parent, group;
    uint64_t ticks; /* of CPU time, with that of children it has waited for */
    uint64_t start; /* in clock ticks since the machine was booted */
};
/* From the text of the file; false if it is none. */
bool process_stat_parse(const char *text, struct process_stat *ret_stat);
/* False if there is no such process. */
bool process_stat(pid_t pid, struct process_stat *ret_stat);

/* CPU time used so far by a process and everything below it. */
uint64_t tree_cpu_us(pid_t root);
/* The same of all processes of a process group. */
uint64_t group_cpu_us(pid_t group);
/* A process of the tree that is in uninterruptible sleep, or 0. */
pid_t tree_stuck_pid(pid_t root);
/* Kills everything below a process, but not the process itself. */
void tree_kill(pid_t root);
