/* SPDX-License-Identifier: MIT */
/* The host's side of a copy out of a jail. The jail's cp writes to a stage, a directory of brig's in
 * the destination directory; only what leads nowhere else is then moved to where it is wanted.
 *
 * Programs in other jails, and for root other users, may be able to write to the destination directory
 * and so rename the stage or put something in its place. It is made and used through descriptors only,
 * and the caller grants it by its descriptor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#define COPY_OUT_NAME_MAX 32

struct copy_out {
    int above;                    /* the directory that is copied to, the caller's */
    int private;                  /* the stage's own directory in it, locked while it is used */
    int stage;                    /* the one in that, which the jail writes to */
    char name[COPY_OUT_NAME_MAX]; /* of the private directory */
};

/* Makes the stage in a directory (O_PATH is enough), and removes what a copy that was killed has left
 * there. End with copy_out_end(). */
int copy_out_begin(int above, struct copy_out *ret_copy, struct brig_error *err);

/* If `place`, moves what is in the stage to the directory above it. Directories that are there are
 * merged, files replaced. Not moved, but told of and counted in *ret_left: symbolic links that do not
 * lead to something else that this copy has put there, fifos, sockets and devices, what is deeper than
 * any path can be, and what would change a .git that is there. Set-id bits are cleared. Removes the
 * stage. */
int copy_out_end(struct copy_out *copy, bool place, size_t *ret_left, struct brig_error *err);
