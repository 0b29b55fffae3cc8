/* SPDX-License-Identifier: MIT */
/* Repositories below the top of a granted directory. Git outside obeys the config and hooks of each, so one that
 * a run has made is made anew with `git init`, and its commits are fetched. */
#pragma once

#include <time.h>

#include "guard/private.h"

#define NESTED_DIRS_MAX 200000 /* directories that are searched */

/* Appends the directories below `top` that have a `.git`, relative and each ended by a NUL. At most `limit`
 * directories are searched: 1 if there are more. */
int nested_find(int top, size_t limit, struct str *ret_dirs, struct brig_error *err);

/* A granted directory, and what was known of it when the run began. */
struct nested {
    const struct git *git;
    const char *jail;
    int top;
    const char *top_path;
    const struct str *known; /* directories with a `.git`, to which the run could not write */
    struct timespec since;
    int folder;                              /* a directory of the storage for what this needs */
    const struct private_git *const *outers; /* the repositories of the run */
    size_t outer_count;
    struct str *notes;
};

/* Treats each repository that is new. To be called when no process of the run is left, and before the branches of
 * the repositories above are transferred. The directories where `.git` is a file are appended to `ret_files`, and all with a `.git` to
 * `ret_dirs`. */
int nested_treat(const struct nested *nested, struct str *ret_files, struct str *ret_dirs,
                 struct brig_error *err);

/* Afterwards: removes the `.git` files of these directories that lead to no worktree of the user's. */
int nested_check(const struct nested *nested, const struct str *files, uid_t owner,
                 struct brig_error *err);

/* Worktrees that the run has added below the top are made anew for the user's repository, on the same branch, with
 * the files they have. To be called when the branches have been transferred. */
int nested_worktrees(const struct git *git, const struct private_git *outer, struct str *notes,
                     struct brig_error *err);
