/* SPDX-License-Identifier: MIT */
/* The host's side of a copy out of a jail. What a jail has written is copied into a directory of its
 * own first; only what leads nowhere else is then moved to where it is wanted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#define COPY_OUT_NAME_MAX 32

struct copy_out {
    int above;                    /* the directory that is copied to */
    int stage;                    /* the one that the jail writes to, in it */
    char name[COPY_OUT_NAME_MAX]; /* of the stage */
};

/* Makes the stage in a directory, which must be there. End with copy_out_end(). */
int copy_out_begin(const char *above, struct copy_out *ret_copy, struct brig_error *err);

/* If `place`, moves what is in the stage to the directory above it. Directories that are there are
 * merged, files replaced. Not moved, but told of and counted in *ret_left: symbolic links that do not
 * lead to something else in the stage, fifos, sockets and devices, what is deeper than any path can
 * be, and what would change a .git that is there. Set-id bits are cleared. Removes the stage. */
int copy_out_end(struct copy_out *copy, bool place, size_t *ret_left, struct brig_error *err);
