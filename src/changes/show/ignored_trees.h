/* SPDX-License-Identifier: MIT */
/* Directories that the user's git ignores, such as node_modules, with what a jail has added in each: lists have one line
 * for each of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

struct change;
struct git;
struct layer;

struct ignored_tree {
    char *path; /* relative to the root */
    uint64_t files, bytes;
    uint64_t seen, skipped; /* for the caller */
};

/* Zero-initialise it. */
struct ignored_trees {
    struct ignored_tree *items; /* sorted by path_compare(); none is in another */
    size_t count;
};

/* Finds them at and below the paths, which are as in struct change_options; NULL: everywhere. One that is, or contains,
 * a path that was named is left out: its files are to be listed. Release with ignored_trees_done(). */
int ignored_trees_find(const struct layer *layer, const char *const *paths, size_t path_count,
                       const struct git *git, struct ignored_trees *trees, struct brig_error *err);
void ignored_trees_done(struct ignored_trees *trees);

/* The tree that an added file or directory is in, or is; NULL for any other change. */
struct ignored_tree *ignored_trees_at(const struct ignored_trees *trees,
                                      const struct change *change);
