/* SPDX-License-Identifier: MIT */
/* Keeps a jail from leaving something behind that a program outside executes: in the directories a run may
 * write to it gets a private git directory instead of the real one (private.h), existing files that execute
 * something are read-only, and new ones are held back when the run ends (held.h).
 *
 * Theory of operation: guard_begin() is called when the grants of the policy are known. It builds the
 * private git directories and adds grants and BRIG_PROTECT rules. guard_fetch() may be called while the
 * run goes on, guard_finish() when its last process is gone. Each run has a directory of its own in the
 * storage and holds its lock; a directory without a lock belongs to a run that was killed, and the next
 * guard_begin() completes its transfer first. Programs and files outside are used with the ids of the
 * owner of the project only. */
#pragma once

#include "guard/git.h"

struct guard;

struct guard_options {
    int storage;          /* a directory for private git directories; -1: `.git` is read-only */
    int held;             /* a directory for files that are held back; -1: they are only reported */
    bool report_only;     /* files that execute something stay where they are, and are reported */
    const char *jail;     /* refs of the run are kept below refs/brig/JAIL/RUN */
    struct git_user user; /* the owner of the project, if the caller is root */
    const char *const *environment; /* in which git is looked for and run */
    const char *workdir; /* the granted directory in which an empty `.git` may be made, or NULL */
    /* Whether a directory above the working directory, the top of its repository, may be shown read-only; NULL:
     * none may. */
    bool (*may_show)(void *arg, const char *path);
    void *may_show_arg;
    const char *const *unprotect;
    size_t unprotect_count;
    bool off; /* --no-protect */
    bool dry; /* only add rules: nothing is made, and git is not run */
};

/* Adds rules to the policy. The guard keeps descriptors that the policy names: free it when the run is
 * over. Lines for the user are appended to `notes`. */
int guard_begin(struct brig_policy *policy, const struct guard_options *options,
                struct guard **ret_guard, struct str *notes, struct brig_error *err);

/* `brig sync`: completes the transfers of runs that were killed, and transfers what those that go on have done so
 * far. With `show` nothing is transferred: a line about each of them, and about each rebase
 * or merge that goes on, is appended to `notes`. */
int guard_sync(const struct guard_options *options, bool show, struct str *notes,
               struct brig_error *err);

/* Whether a jail's directory for private git directories has something that was not transferred: of a run that goes on, was
 * killed or failed, or a rebase or merge. */
bool guard_has_left(int storage);

/* Starts a fetch of new commits in the background, if there are any and none is under way. */
void guard_fetch(struct guard *guard);

/* Transfers what the run did in git. Lines for the user are appended to `notes`. Nothing is lost if it
 * fails: the next run of the jail tries again. */
int guard_finish(struct guard *guard, struct str *notes, struct brig_error *err);

/* Frees it, and removes what the run needed in the storage, unless a transfer is still to be done. */
void guard_free(struct guard *guard);
