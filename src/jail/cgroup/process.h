/* SPDX-License-Identifier: MIT */
/* Processes as seen in /proc: their resource usage and how to kill them without a cgroup or
 * namespace. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Fields of /proc/PID/stat. */
struct process_stat {
    char state;
    pid_t parent, group;
    uint64_t ticks; /* CPU time, including waited-for children */
    uint64_t start; /* in clock ticks since boot */
};
/* Parses the text of the file; false if it is malformed. */
bool process_stat_parse(const char *text, struct process_stat *ret_stat);
/* Returns false if there is no such process. */
bool process_stat(pid_t pid, struct process_stat *ret_stat);

/* Returns the CPU time used so far by a process and all its descendants. */
uint64_t tree_cpu_us(pid_t root);
/* The same for all processes of a process group. */
uint64_t group_cpu_us(pid_t group);
/* Returns a process of the tree that is in uninterruptible sleep, or 0. */
pid_t tree_stuck_pid(pid_t root);
/* Kills all descendants of a process, but not the process itself. */
void tree_kill(pid_t root);
