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

/* Starts it, in the caller's namespaces, and waits until it has mounted at `place`. `lower` is the
 * layers below, each a path without colons; upper and work are paths. It keeps `lock` open for as
 * long as it lives. */
int fuse_mount(const char *lower, const char *upper, const char *work, const char *place, int lock,
               struct brig_error *err);

/* After it was unmounted: until it has ended, as another must not use the same changes before. */
void fuse_wait(void);
