/* SPDX-License-Identifier: MIT */
/* Decides what of a jail's work in git is taken, and writes it down as a git record (take.h), which git_take() then
 * moves. A run at its end, `brig sync`, a killed run and the apply of a reviewed directory all come here. */
#pragma once

#include "git/item.h"
#include "git/transfer.h"

enum {
    /* Processes of the run are left. Settings, deletions, and a branch or index with a new submodule
     * wait for the end of the run. */
    PLAN_RUNNING = 1,
    /* The working tree may contain repositories that were not handled: nothing with a new submodule
     * moves, because git would look into the submodule. */
    PLAN_UNSEARCHED = 2,
    /* It only lists: the chooser is asked about all that can move, whatever it answers, and nothing is taken. A private
     * directory that has not changed since the last look is not looked at. */
    PLAN_SEEN = 4,
};

/* What the user is told about one working tree. */
struct plan_report {
    struct str summary; /* "3 commits on feature/x, 1 file staged"; empty if nothing moves */
    struct str notes;   /* messages for the user, one per line */
    struct str keep;    /* the objects that stay pinned */
    bool pending;       /* a rebase or merge is unfinished: keep the private directory */
    bool left;          /* something was not taken: it stays pinned */
    bool refused;       /* the chooser has left something */
    bool told;          /* with a reason */
    bool lost;          /* something could not be fetched */
};
void plan_report_done(struct plan_report *report);

/* Appends "2 commits on NAME": the number of commits of a ref that none of the old tips contains. */
void plan_summarise(const struct transfer *t, const char *name, const char *old, const char *new,
                    struct str *summary);

/* One working tree of a hand-over. */
struct plan_part {
    const struct private_git *p;
    const char *folder; /* the name of its private git directory in the storage, or NULL */
    char space[TRANSFER_SPACE_MAX]; /* where objects are pinned: refs/brig/JAIL/ID */
    unsigned flags;
    bool stays; /* the private git directory does: so does its first pin */
    bool made;  /* a new repository: it is complete in the folder before it is placed as a whole */
    struct plan_report report;
    int status;
    struct brig_error err; /* of this one; the others go on */
};

struct plan_options {
    const struct git *git;
    const struct git_chooser *chooser; /* NULL: everything is taken */
    int storage;                       /* with the private git directories, or -1 */
    int into; /* a directory of this hand-over, where its record is written */
};

/* Fetches what is new in each working tree, asks about each item, and writes the record: 1, or 0 if nothing is taken. */
int plan_write(const struct plan_options *options, struct plan_part *parts, size_t count,
               struct brig_error *err);
/* A new repository takes what is in the jail while it is in the storage: see private_recreate(). Its own record is in its
 * folder. */
int plan_complete(const struct plan_options *options, struct plan_part *part,
                  struct brig_error *err);
/* When the record was taken: what has arrived needs no pin any more. The status of each part says what failed. */
void plan_end(const struct plan_options *options, struct plan_part *parts, size_t count);

/* Both, and takes the record in between. If something changes outside meanwhile, it is all asked again. A hand-over that was
 * interrupted in this directory is completed first. */
int plan_hand_over(const struct plan_options *options, struct plan_part *parts, size_t count,
                   struct brig_error *err);
