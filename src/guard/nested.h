/* SPDX-License-Identifier: MIT */
/* Repositories below the top of a granted directory. Git outside obeys the config and hooks of each, so one that
 * a run has made is made anew with `git init`, and its commits are fetched. */
#pragma once

#include <time.h>

#include "guard/private.h"

#define NESTED_DIRS_MAX 200000 /* directories that are searched */

/* Appends the directories below `top` that have a `.git`, relative and each ended by a NUL, and those that are bare
 * repositories themselves, with a slash at their end. The directory above `storage`, or -1, is left out. 1 if some could not
 * be read, 2 if there are too many. After a run, `since` is when it began: directories that have become unreadable are
 * then made readable if `changes`, and others do not count. */
int nested_find(int top, int storage, const struct timespec *since, bool changes,
                struct str *ret_dirs, struct brig_error *err);

/* Appends what nested_find() said of one directory, with the identity of its git directory: in the list of those to which a
 * run cannot write. */
void nested_identify(int top, const char *path, struct str *list);
/* Whether it is in that list, and still the same. */
bool nested_is_known(int top, const char *path, const struct str *list);

/* A granted directory, and what was known of it when the run began. */
struct nested {
    const struct git *git;
    int storage;       /* of the jail */
    const char *space; /* for refs of new repositories: see transfer.h */
    int top;
    const char *top_path;
    const struct str *known; /* of nested_identify() */
    struct timespec since;
    int folder;                              /* a directory of the storage for what this needs */
    const struct private_git *const *outers; /* the repositories of the run */
    size_t outer_count;
    struct str *notes;
};

/* Treats each repository that is new. To be called when no process of the run is left, and before the branches of the
 * repositories above are transferred. The directories where `.git` is a file are appended to `ret_files`. 1 if not
 * everything could be searched. */
int nested_treat(const struct nested *nested, struct str *ret_files, struct brig_error *err);

/* Afterwards: removes the `.git` files of these directories that lead to no worktree of the user's. */
int nested_check(const struct nested *nested, const struct str *files, uid_t owner,
                 struct brig_error *err);

/* Worktrees that the run has added below the top are made anew for the user's repository, on the same branch, with
 * the files they have. To be called when the branches have been transferred. */
int nested_worktrees(const struct git *git, const struct private_git *outer, struct str *notes,
                     struct brig_error *err);
