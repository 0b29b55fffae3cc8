/* SPDX-License-Identifier: MIT */
/* One run of a jail: the guard's state, the directory of the run in the storage, and the work at
 * the end of the run or after an interruption.
 *
 * The directory of a run has two locks. The process that started the run holds `lock` as long as it
 * lives; a directory whose lock is free belongs to a run that was killed. The process that
 * transfers holds `transfer`. */
#pragma once

#include <time.h>

#include "git/guard.h"
#include "git/transfer.h"
#include "held/held.h"

#define ROOTS_MAX 256
#define TREES_MAX 256 /* working trees of one run: projects and their submodules */
#define RUN_PREFIX "run-"
#define RUN_KEPT_PREFIX "kept-" /* after two failed transfers */
#define RUN_RECORD "record"     /* in the directory of a run: the record of its hand-over */
#define RUN_MADE "made"         /* in the directory of a tree: `.git` is to be removed */
#define NESTED_DIRS_MAX 200000  /* directories that are searched after a run */

/* One working tree. */
struct tree {
    int top;
    char *dest;   /* its path in the jail */
    int made;     /* `.git`, an empty directory with a shared lock; or -1 */
    bool removes; /* brig created `.git` and removes it */
    bool has_private;
    struct private_git private_git;
    int link; /* the file mounted on `.git`, or -1 */
    /* Of a reviewed directory, see reviewed.h: */
    bool reviewed;
    int lock;      /* says that the run uses the private git directory; or -1 */
    uint64_t seen; /* the state that was fetched before the run */
    char space[TRANSFER_SPACE_MAX];
};
#define TREE_INIT                                                                                  \
    (struct tree)                                                                                  \
    {                                                                                              \
        .top = -1, .made = -1, .link = -1, .lock = -1                                              \
    }

/* A granted directory, and the repositories below it that the run cannot write to: see
 * nested_identify(). */
struct root {
    struct held_root held;
    struct str known;
};

struct guard {
    struct git git;
    char *jail;
    char *option; /* how a printed command names it */
    int storage, cache;
    int run;       /* the directory of the run, or -1 */
    char name[64]; /* the name of `run` */
    int lock;
    struct tree trees[TREES_MAX];
    size_t tree_count;
    int empty[TREES_MAX]; /* directories mounted on submodules without a repository */
    size_t empty_count;
    struct {
        int top, made;   /* a directory, and the empty `.git` in it, locked */
    } shared[TREES_MAX]; /* of other runs */
    size_t shared_count;
    struct root roots[ROOTS_MAX];
    size_t root_count;
    struct held_rules rules;
    const struct git_chooser *chooser;
    struct str text;           /* an earlier run: the contents of its lock file, */
    const char **rule_names;   /* with the names of `rules` */
    struct held_keeper keeper; /* with a descriptor of its own */
    int author;                /* a file mounted in the jail that tells git who commits, or -1 */
    int into;                  /* the directory for what has moved, or -1 */
    struct timespec began;
    pid_t fetching;  /* the process that fetches, or 0 */
    bool running;    /* the run is active: only trees are transferred */
    bool unsearched; /* a granted directory may have repositories that were not handled */
    bool earlier;    /* a run of another process */
    bool unfinished; /* a transfer failed: keep the directory */
};

/* A guard without rules, for options; release with guard_free(). The policy may be NULL. */
int guard_new(const struct guard_options *options, const struct brig_policy *policy,
              struct guard **ret_guard, struct brig_error *err);

/* Creates the directory of the run and takes its lock, unless that was done before. */
int run_open(struct guard *guard, struct brig_error *err);

/* Opens the directory in which a hand-over is recorded. */
int run_open_record(int run, int *ret_record, struct brig_error *err);

/* The namespace for the run's refs of one working tree, "refs/brig/JAIL/RUN": invalid characters in
 * the jail's name become '_', and RUN is the first digits of the name of the run's directory. */
void run_name_space(const struct guard *guard, unsigned number, char ret_space[TRANSFER_SPACE_MAX]);

/* Appends messages, each a line "git: …". `where` names the repository in each, unless it is NULL. */
void run_say(const char *where, const struct str *lines, struct str *notes);
/* The same for what was done in one. */
struct plan_report;
void run_tell(const char *where, const struct plan_report *report, struct str *notes);

/* rules.c: adds rules for the granted directories to the policy, and creates what the run needs. */
int rules_add(struct guard *guard, struct brig_policy *policy, const struct guard_options *options,
              struct str *notes, struct brig_error *err);

/* ---- nested.c ---- */

/* Repositories below the top of a granted directory. Git outside obeys the config and hooks of
 * each, so a repository that a run has created is recreated with `git init`, and its commits are
 * fetched. */

/* What else the search of a granted directory finds after a run. Release the texts. */
struct nested_report {
    struct str changed; /* paths, each with a reason: files that something outside executes unasked,
                         * created or changed since the run began; only the first ones */
    size_t count;       /* all of them */
    struct str opened;  /* "MODE PATH" of directories that had to be made readable */
    bool has_new;       /* there are new repositories */
};

/* Appends the directories below `top` that have a `.git`, relative and each terminated by a NUL,
 * and bare repositories, with a trailing slash; what is inside of another comes first. The directory
 * above `storage`, or -1, is skipped. Returns 1 if some directories are unreadable, 2 if there are too
 * many. After a run, `since` is its start: directories that became unreadable since are made readable
 * if `changes`, and others do not count. `report` may be NULL. */
int nested_find(int top, int storage, const struct timespec *since, bool changes,
                struct str *ret_dirs, struct nested_report *report, struct brig_error *err);

/* Appends an item of nested_find() with the identity of its git directory to the list of
 * repositories that a run cannot write to. */
void nested_identify(int top, const char *path, struct str *list);
/* Whether the item is in that list and its git directory is still the same. */
bool nested_is_known(int top, const char *path, const struct str *list);

/* Recreates each new repository in a granted directory. Call it when no process of the run is left,
 * and before the branches of the repositories above are transferred. The directories in which
 * `.git` is a file are appended to `ret_files`. Returns 1 if not everything could be searched. */
int nested_treat(const struct guard *guard, const struct root *root, struct str *ret_files,
                 struct nested_report *report, struct str *notes, struct brig_error *err);

/* At the end: gives directories the modes again that the run has given them. */
void nested_restore(const struct root *root, struct nested_report *report);
/* Appends one line about what is in the reports, one for each root. */
void nested_tell(const struct guard *guard, const struct nested_report *reports, struct str *notes);

/* Called afterwards: removes the `.git` files in these directories that do not lead to a worktree
 * of the user. */
int nested_check(const struct guard *guard, const struct root *root, const struct str *files,
                 struct str *notes, struct brig_error *err);

/* Recreates the worktrees that the run has added below the top, for the user's repository, on the
 * same branch and with their files. Call it when the branches have been transferred. */
int nested_worktrees(const struct git *git, const struct private_git *outer, struct str *notes,
                     struct brig_error *err);
