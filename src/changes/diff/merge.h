/* SPDX-License-Identifier: MIT */
/* Three-way merges of files that both the user and the jail have changed, and the copies of the
 * user's files as they were before, which such a merge needs. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

struct change;
struct git;
struct layer;

#define MERGE_FILE_MAX ((size_t)1 << 20)     /* larger files are not merged */
#define MERGE_BASES_MAX 4096                 /* copies of one layer */
#define MERGE_BASES_BYTES ((size_t)64 << 20) /* their total size */

enum merge_outcome {
    MERGE_CLEAN,
    MERGE_CONFLICTS,  /* the content has conflict markers */
    MERGE_IMPOSSIBLE, /* a file is binary or too large */
};

/* Merges the changes from `base` to `theirs` (the jail's) into `mine` (the user's) with `git merge-file`. All three
 * are fds of regular files. *ret_fd gets the merged content, a file in memory at its beginning, unless it is
 * impossible. */
int merge_files(const struct git *git, int record, int base, int mine, int theirs,
                enum merge_outcome *ret_outcome, int *ret_fd, struct brig_error *err);

/* After a run, with the lock of the record: copies the user's version of each modified text file that the
 * user has not changed since to LAYER.bases in the record, within the limits above, and removes the copies of
 * changes that are gone. */
int merge_save_bases(const struct layer *layer, struct brig_error *err);

/* Opens the copy of the user's file as it was before the jail changed it; -1 if there is none. */
int merge_open_base(const struct change *change);
