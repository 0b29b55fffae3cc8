/* SPDX-License-Identifier: MIT */
/* A home laid over by fuse-overlayfs, where the kernel cannot do it in a user namespace: if something
 * is mounted below the home. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

/* The mark of a directory that hides the one below it. */
#define FUSE_OPAQUE ".wh..wh..opq"

/* What to do for it to be used here: it is not installed, or may not be; NULL: nothing. */
const char *fuse_remedy(void);

/* What it mounts: paths in a root directory of its own. */
struct fuse_tree {
    int root;
    const char *lower; /* the layers below, each a path without colons */
    const char *upper, *work, *place;
    const char *seen; /* the same place for the caller */
};

/* Starts it, in the caller's namespaces, and waits until it has mounted. It keeps `lock` open for as long
 * as it lives. */
int fuse_mount(const struct fuse_tree *tree, int lock, struct brig_error *err);

/* After it was unmounted: until it has ended, as another must not use the same changes before. */
void fuse_wait(void);
