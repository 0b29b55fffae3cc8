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
#include "guard/nested.h"
#include "guard/private.h"

#define ROOTS_MAX 256
#define TREES_MAX 256 /* working trees of one run: projects and their submodules */
#define RUN_PREFIX "run-"
#define RUN_KEPT_PREFIX "kept-" /* after two failed transfers */
#define MADE "made"             /* in the directory of a tree: `.git` is to be removed */

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
    struct held_root roots[ROOTS_MAX];
    struct str
        known[ROOTS_MAX]; /* in each, the repositories that the run cannot write to: see nested.h */
    size_t root_count;
    struct held_rules rules;
    struct str rules_text;   /* of an earlier run: the names in `rules`, */
    const char **rule_names; /* and pointers to them */
    int held;
    struct timespec began;
    pid_t fetching;  /* or 0 */
    bool running;    /* the run goes on: only trees are transferred */
    bool unsearched; /* there may be repositories in a granted directory that were not treated */
    bool earlier;    /* it is not the run of this process */
    bool unfinished; /* a transfer failed: its directory stays */
};

/* Transfers what a run did; guard->unfinished says whether that failed. */
int run_finish(struct guard *guard, struct str *notes, struct brig_error *err);

/* Completes the run in a directory of guard->storage. If it goes on, transfers what it has done so far. */
int run_sync(struct guard *guard, const char *name, struct str *notes, struct brig_error *err);

/* Completes all runs that do not go on. */
void run_complete_all(struct guard *guard, struct str *notes);

/* ---- the storage ---- */

/* Makes the directory of the run and takes its lock, unless it has one. */
int run_open(struct guard *guard, struct brig_error *err);

/* The directory of a working tree in it. */
int run_open_folder(int run, unsigned number, bool make, int *ret_fd, struct brig_error *err);

/* What was in the granted directories, for the process that completes this run. */
int run_write_roots(struct guard *guard, struct brig_error *err);

/* Removes the empty `.git` that brig made, unless another run holds its lock. */
void run_remove_made(int top, int made);
