/* SPDX-License-Identifier: MIT */
/* A limit on directories on disk: a project quota, where their filesystem is mounted with such. Root
 * alone can set one, and it stays until root lifts it; whoever may look can see that it holds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

/* Makes the directories one project, with all that is in them and will be, and limits it. 0 is no
 * limit. Nobody may write to them meanwhile, unless quota_is_ours() already. Returns 0 or -errno;
 * -ENOTSUP where the filesystem has no such quotas or they are another's. */
int quota_limit(const int *directories, size_t count, uint64_t bytes, uint64_t inodes);

/* Whether quota_limit() was here before. */
bool quota_is_ours(int directory);

/* Whether this directory is held to the limits, whoever did it. */
bool quota_holds(int directory, uint64_t bytes, uint64_t inodes);

/* ---- private ---- */

/* The filesystem in memory that holds a jail's private directories: /tmp, /dev/shm and the
 * runtime directory. It is apart from the rest a holder keeps in memory: what fills it must not
 * keep masks from being made. */

/* 0 is no limit, that is what the kernel lets such a filesystem have. */
struct private_limits {
    uint64_t bytes, inodes;
};

/* Limits it anew, or lifts the limits. Returns 0 or -errno: -EINVAL if more is in it than that. */
int private_limit(const char *place, const struct private_limits *limits);

/* The smaller of two, each by itself. */
struct private_limits private_least(struct private_limits left, struct private_limits right);
