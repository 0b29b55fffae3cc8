/* SPDX-License-Identifier: MIT */
/* One run of a jail: what the guard knows about it, the directory it has in the storage, and what is done when it
 * is over, or was interrupted.
 *
 * The directory of a run has two locks. `lock` is held by the process that started the run for as long as it
 * lives; a directory without it belongs to a run that was killed. `transfer` is held by whoever transfers. */
#pragma once

#include <time.h>

#include "guard/guard.h"
#include "guard/held.h"
#include "guard/transfer.h"

#define ROOTS_MAX 256
#define TREES_MAX 256 /* working trees of one run: projects and their submodules */
#define RUN_PREFIX "run-"
#define RUN_KEPT_PREFIX "kept-" /* after two failed transfers */
#define RUN_MADE "made"         /* in the directory of a tree: `.git` is to be removed */
#define NESTED_DIRS_MAX 200000  /* directories that are searched for repositories */

/* One working tree. */
struct tree {
    int top;
    char *dest;   /* in the jail */
    int made;     /* `.git`, an empty directory, with a shared lock; or -1 */
    bool removes; /* brig made it */
    bool has_private;
    struct private_git private_git;
    int link; /* the file that is mounted on `.git`, or -1 */
};

/* A granted directory, and the repositories below it that the run cannot write to: see nested_identify(). */
struct root {
    struct held_root held;
    struct str known;
};

struct guard {
    struct git git;
    char *jail;
    int storage, cache;
    int run;       /* the run's directory, or -1 */
    char name[64]; /* of it */
    int lock;
    struct tree trees[TREES_MAX];
    size_t tree_count;
    int empty[TREES_MAX]; /* directories that cover submodules without a repository */
    size_t empty_count;
    struct root roots[ROOTS_MAX];
    size_t root_count;
    struct held_rules rules;
    struct str text;         /* of an earlier run: what its lock contains, */
    const char **rule_names; /* and the names of `rules` in it */
    int held;
    struct timespec began;
    pid_t fetching;  /* or 0 */
    bool running;    /* the run goes on: only trees are transferred */
    bool unsearched; /* there may be repositories in a granted directory that were not treated */
    bool earlier;    /* it is not the run of this process */
    bool unfinished; /* a transfer failed: its directory stays */
};

/* Makes the directory of the run and takes its lock, unless it has one. */
int run_open(struct guard *guard, struct brig_error *err);

/* The directory of a working tree in it; -1 with errno. */
int run_open_folder(int run, size_t number);

/* The namespace of the run's refs for one of its working trees, "refs/brig/JAIL/RUN": characters of the jail's name that a
 * ref cannot have become '_', and of the name of the run's directory the first digits are used. */
void run_name_space(const struct guard *guard, unsigned number, char ret_space[TRANSFER_SPACE_MAX]);

/* rules.c: adds rules to the policy for the directories that are granted, and makes what the run needs. */
int rules_add(struct guard *guard, struct brig_policy *policy, const struct guard_options *options,
              struct str *notes, struct brig_error *err);

/* ---- nested.c ---- */

/* Repositories below the top of a granted directory. Git outside obeys the config and hooks of each, so one that a run has
 * made is made anew with `git init`, and its commits are fetched. */

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

/* Treats each repository that is new in a granted directory. To be called when no process of the run is left, and before
 * the branches of the repositories above are transferred. The directories where `.git` is a file are appended to
 * `ret_files`. 1 if not everything could be searched. */
int nested_treat(const struct guard *guard, const struct root *root, struct str *ret_files,
                 struct str *notes, struct brig_error *err);

/* Afterwards: removes the `.git` files of these directories that lead to no worktree of the user's. */
int nested_check(const struct guard *guard, const struct root *root, const struct str *files,
                 struct str *notes, struct brig_error *err);

/* Worktrees that the run has added below the top are made anew for the user's repository, on the same branch, with
 * the files they have. To be called when the branches have been transferred. */
int nested_worktrees(const struct git *git, const struct private_git *outer, struct str *notes,
                     struct brig_error *err);
