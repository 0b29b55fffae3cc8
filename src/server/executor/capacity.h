/* SPDX-License-Identifier: MIT */
/* How many executions this machine has room for: open files and memory. The http process queues
 * what goes beyond it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The descriptors that a jail takes. One with a network takes 19; if many have one, runs that find no
 * descriptor wait in the executor. */
#define CAPACITY_FILES_PER_JAIL 14
/* What an execution is expected to take before that can be measured. */
#define CAPACITY_BYTES_PER_JAIL ((uint64_t)32 << 20)

/* Returns how many jails the limit on open files allows, at least two. */
size_t capacity_jails(uint64_t open_files);
/* Returns how many executions there may be at once: those that run, and as many more as fit into
 * the free memory, of which `reserve` bytes stay free. At least one, at most `most`. */
size_t capacity_places(size_t running, size_t most, uint64_t free_bytes, uint64_t reserve);
/* Returns the memory that is free for new processes: of the machine, or of a cgroup (v2) that the
 * caller is in; UINT64_MAX if that is unknown. */
uint64_t capacity_free_memory(void);
/* Returns how much of the memory of the machine, or of a cgroup that the caller is in, is in use, in
 * percent: the larger share. 0 if that is unknown. */
unsigned capacity_memory_percent(void);
