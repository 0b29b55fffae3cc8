/* SPDX-License-Identifier: MIT */
/* Objects of Git LFS: the content of large files, which git itself does not have. git-lfs looks for them in lfs/objects
 * of the common git directory, and beside each object directory that info/alternates names. Their names are their
 * hashes: lfs/objects/01/23/0123…. */
#pragma once

#include <brig/brig.h>

/* The LFS objects beside an object directory: an fd, or -1 if there are none. */
int lfs_open_beside(int objects);

/* Copies the LFS objects that a jail has in its private git directory into the repository's, if their hash is right and they
 * are not there yet. */
int lfs_transfer(int private_dir, const char *common_path, struct brig_error *err);
