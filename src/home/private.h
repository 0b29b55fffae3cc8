/* SPDX-License-Identifier: MIT */
/* The filesystem in memory that holds a jail's private directories: /tmp, /dev/shm and the runtime
 * directory. It is apart from the rest a holder keeps in memory: what fills it must not keep masks
 * from being made. */
#pragma once

#include <stdint.h>

#include <brig/brig.h>

/* 0 is no limit, that is what the kernel lets such a filesystem have. */
struct private_limits {
    uint64_t bytes, inodes;
};

/* Mounts it at a directory, and makes the directories in it. */
int private_begin(const char *place, struct brig_error *err);

/* Limits it anew, or lifts the limits. Returns 0 or -errno: -EINVAL if more is in it than that. */
int private_limit(const char *place, const struct private_limits *limits);

/* The smaller of two, each by itself. */
struct private_limits private_least(struct private_limits left, struct private_limits right);
