/* SPDX-License-Identifier: MIT */
/* Walks a tree in the order of path_compare(): walk_next() one entry at a time, tree_walk() with a function for each.
 * Follows no symbolic link, opens only directories, and keeps the names of one directory for each level in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <brig/brig.h>

struct walk;

#define WALK_DEPTH_MAX 1000 /* levels of directories; tree_walk(): LAYER_DEPTH_MAX */

struct walk_entry {
    int dir;          /* the directory that contains it */
    const char *name; /* its last component */
    const char *path; /* relative to the root; valid until the next call, as is `name` */
    struct stat info; /* lstat() */
};

/* Begins a walk of the directory `root`, which the caller keeps open. With `only`, nothing but this name in it is
 * visited. Release with walk_close(). */
int walk_open(int root, const char *only, struct walk **ret_walk, struct brig_error *err);
void walk_close(struct walk *walk);

/* The next entry: 1, 0 at the end, or a code. Names that are removed meanwhile are left out. */
int walk_next(struct walk *walk, struct walk_entry *ret_entry, struct brig_error *err);

/* Visits what is in the directory that walk_next() has just returned; otherwise it is skipped. Returns 0, an errno if
 * it cannot be read or is too deep (ELOOP), or a code. */
int walk_enter(struct walk *walk, struct brig_error *err);

/* Whether the directory that is being visited contains this name. */
bool walk_has(const struct walk *walk, const char *name);
/* The directory that is being visited, and its level: 0 for the root. */
int walk_directory(const struct walk *walk);
size_t walk_level(const struct walk *walk);

enum { TREE_STOP = 1, TREE_SKIP = 2 }; /* results of a visit: end the walk; do not enter it */
typedef int (*tree_visit)(void *context, const struct walk_entry *entry, struct brig_error *err);

/* Visits everything in `directory`, an fd, that is on the same filesystem. `above` is put before the paths, "" for none.
 * Directories that cannot be read are visited but not entered; entries that cannot be examined and paths that are too
 * long are left out. Returns 0, TREE_STOP or a negative code. */
int tree_walk(int directory, const char *above, tree_visit visit, void *context,
              struct brig_error *err);
