/* SPDX-License-Identifier: MIT */
/* Keeps a jail from leaving files behind that a program outside executes. In the directories that a
 * run may write to, it gets a private git directory instead of the real one (private.h), existing
 * files that execute something are read-only, and new ones are held back when the run ends
 * (held.h).
 *
 * Theory of operation: guard_begin() is called when the grants of the policy are known. It builds
 * the private git directories and adds grants and BRIG_PROTECT rules. guard_fetch() may be called
 * during the run, guard_finish() when the last process of the run has ended. Each run has a
 * directory in the storage and holds its lock; a directory without a lock belongs to a run that was
 * killed, for which guard_each_left() makes the guard again. Programs and files outside are
 * used only with the ids of the owner of the project. */
#pragma once

#include "git/git.h"
#include "held/held.h"

#define GUARD_PART ".git" /* NAME.git: a jail's directory for private git directories */

struct guard;
struct git_chooser;

struct guard_options {
    int storage; /* a directory for private git directories; -1: `.git` is read-only */
    struct held_keeper keeper; /* holds files back */
    bool report_only;          /* files that execute something are reported and stay in place */
    const char *jail;          /* the refs of the run are kept below refs/brig/JAIL/RUN */
    const char *option;        /* how the user names the jail in a command: " -j NAME"; NULL: "" */
    struct git_user user;      /* the owner of the project, if the caller is root */
    const char *const *environment;    /* to find and run git */
    const struct git_chooser *chooser; /* what decides about items of git; NULL: all are taken */
    const char *workdir;               /* the granted directory for an empty `.git`, or NULL */
    /* Whether a directory above the working directory, the top of its repository, may be shown
     * read-only; NULL: never. */
    bool (*may_show)(void *arg, const char *path);
    void *may_show_arg;
    const char *const *unprotect;
    size_t unprotect_count;
    bool off;    /* --no-protect */
    bool review; /* a grant is reviewed: it gets a private git directory also with `off` */
    bool dry;    /* only add rules: create nothing, and do not run git */
};

/* Adds rules to the policy. The guard keeps descriptors that the policy refers to: free it after
 * the run. Messages for the user are appended to `notes`, one per line. */
int guard_begin(struct brig_policy *policy, const struct guard_options *options,
                struct guard **ret_guard, struct str *notes, struct brig_error *err);

/* Runs whose private git directories are left: `which` says which. For each `visit` is called, which calls guard_finish(); `name`
 * is that of the run's entry in the log, see changes/end.h. What could not be handed over is kept, and only GUARD_KEPT finds it
 * again. Messages are appended to `notes`. */
enum {
    GUARD_DEAD = 1,   /* of runs that were killed */
    GUARD_KEPT = 2,   /* of which a hand-over has failed before */
    GUARD_ACTIVE = 4, /* of active runs: only their present state is handed over */
};
typedef int (*guard_visit)(void *context, struct guard *left, const char *name, bool active,
                           struct str *notes, struct brig_error *err);
struct guard_left {
    unsigned which;
    const struct str
        *directories; /* a list: only runs that could write to one of them, or in it; NULL: all */
    guard_visit visit;
    void *context;
};
int guard_each_left(const struct guard_options *options, const struct guard_left *left,
                    struct str *notes, struct brig_error *err);

/* Whether there may be one. */
bool guard_has_runs(int storage);

/* For `brig sync --show`: appends a line about each of them, and about each unfinished rebase or merge. */
void guard_show_left(const struct guard_options *options, struct str *notes);

/* After the files of a run were undone: appends a line if a rebase or merge of the working tree that contains the path goes on
 * in the jail, with the command that ends it. `option` names the jail, as in guard_options. */
void guard_tell_pending(int storage, const char *path, const char *option, struct str *notes);

/* Whether a jail's directory for private git directories has something that was not transferred:
 * from an active, killed or failed run, or an unfinished rebase or merge. */
bool guard_has_left(int storage);

/* What is taken of the private git directories of reviewed directories (see reviewed.h), as a part of an operation.
 * Branches, tags, HEAD and the index outside move as at the end of any other run. Needs the ids of the owner. */
struct hand_over;
/* Keeps other commands and new runs from these directories, until it is freed. `lists`: only the chooser is asked. */
int hand_over_begin(const struct guard_options *options, bool lists, struct hand_over **ret,
                    struct brig_error *err);
void hand_over_free(struct hand_over *hand_over);
/* Adds those of a reviewed directory; `root` is absolute, without links. One that a run uses, or that fails in another way, is
 * left out, and hand_over_end() tells. */
int hand_over_add(struct hand_over *hand_over, const char *root, struct brig_error *err);
/* Fetches new commits, asks the chooser, and writes the git record (take.h) in the directory `into`: 1, or 0 if nothing is
 * taken. */
int hand_over_plan(struct hand_over *hand_over, int into, struct brig_error *err);
/* When the record was taken, or there is none: puts new repositories in place, and tells. One that was not `taken` after all
 * changes nothing. Returns whether something was left: it stays in the jail. */
bool hand_over_end(struct hand_over *hand_over, bool taken, struct str *notes);
/* Fetches outside what the remotes have that these repositories had when the run began: what is then in their remote-tracking
 * refs is the user's. Programs of the user's configuration run, with the network. */
int hand_over_fetch(struct hand_over *hand_over, struct str *notes, struct brig_error *err);
/* Drops those of a reviewed directory: how many there were. What was fetched stays below refs/brig. Operation `id`, unless it is
 * 0, keeps them until another one drops something. */
int hand_over_drop(struct hand_over *hand_over, const char *root, uint64_t id,
                   struct brig_error *err);
/* After the undo of that operation: puts them back, and returns how many. Those of which the jail has new work stay away, which
 * is noted. */
int guard_restore(int storage, uint64_t id, struct str *notes, struct brig_error *err);
/* Asks the chooser of the options, which takes nothing, about each item that hand_over_plan() would take. New commits are
 * fetched below refs/brig. */
int guard_list(const struct guard_options *options, const char *root, struct brig_error *err);
/* Whether there is something for hand_over_add(); needs only options->storage. */
bool guard_has_reviewed(const struct guard_options *options, const char *root);

/* Starts to fetch new commits in the background, if there are any and no fetch is running. */
void guard_fetch(struct guard *guard);

/* The name of the run's directory in the storage, "run-X"; NULL: it has none. */
const char *guard_name(const struct guard *guard);

/* The end of the run: nested repositories, git, and files that are held back. Messages for the user are appended to `notes`.
 * The git record (take.h) is written to the directory `into`; -1: to one of its own. Nothing is lost on failure, with or
 * without a code: the next run of the jail tries again. It can be repeated after a kill. */
int guard_finish(struct guard *guard, int into, bool *ret_failed, struct str *notes,
                 struct brig_error *err);

/* Frees the guard, and removes the run's directory in the storage, unless a transfer is pending. */
void guard_free(struct guard *guard);
