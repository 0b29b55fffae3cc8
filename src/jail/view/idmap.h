/* SPDX-License-Identifier: MIT */
/* Host trees that root prepares before the jail takes its own ids: cloned, id-mapped so that their
 * owner is the jail's user, detached. */
#pragma once

#include <brig/brig.h>
#include <sys/stat.h>

/* Clones the tree at path with everything mounted below it, maps its owner to host_uid:host_gid,
 * sets the mount attributes (MOUNT_ATTR_…), and returns the detached mount's fd, the caller's. */
int prepared_tree(const char *path, const struct stat *info, uid_t host_uid, gid_t host_gid,
                  uint64_t attributes, struct brig_error *err);
