/* SPDX-License-Identifier: MIT */
/* Host trees that root prepares before the jail takes its ids: cloned, detached, and id-mapped so
 * that their owner is the jail's user. */
#pragma once

#include <brig/brig.h>
#include <sys/stat.h>

/* Clones the tree at path with all mounts below it, maps its owner to host_uid:host_gid and sets
 * the mount attributes (MOUNT_ATTR_…). Returns the fd of the detached mount, which the caller
 * closes. */
int prepared_tree(const char *path, const struct stat *info, uid_t host_uid, gid_t host_gid,
                  uint64_t attributes, struct brig_error *err);
