/* SPDX-License-Identifier: MIT */
/* Walks a directory of the user with everything in it, in the order of base_compare(). Follows no link, opens
 * only directories, and stays on one filesystem. Directories that cannot be read are visited but not entered. */
#pragma once

#include <sys/stat.h>

#include <brig/brig.h>

struct tree_entry {
    const char *path; /* `above`, a slash and the path in the directory; valid during the call */
    const char *name; /* its last component */
    int dir;          /* the directory that contains it */
    struct stat info;
};

enum { TREE_STOP = 1, TREE_SKIP = 2 }; /* results of a visit: end the walk; do not enter it */
typedef int (*tree_visit)(void *context, const struct tree_entry *entry, struct brig_error *err);

/* Walks the contents of `directory`, an fd; `above` is put before the paths, "" for none. Returns 0, TREE_STOP or a
 * negative code. */
int tree_walk(int directory, const char *above, tree_visit visit, void *context,
              struct brig_error *err);
