/* SPDX-License-Identifier: MIT */
/* The entry of a run in the log, and its checkpoint (--checkpoint): of every directory and file of the user that the command
 * can write to directly. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "changes/end.h"
#include "git/git.h"

struct identity;
struct settings;
struct str;

struct run_checkpoint {
    int record; /* NAME.record, or -1 */
    struct run_entry entry;
    struct git git;
};
#define RUN_CHECKPOINT_INIT                                                                        \
    (struct run_checkpoint)                                                                        \
    {                                                                                              \
        .record = -1, .entry = RUN_ENTRY_INIT                                                      \
    }

struct run_checkpoint_what {
    const char *const *words; /* as the user has typed them */
    bool has_layers;          /* the run writes to copies */
    bool has_git;             /* what it does in git is transferred at its end */
};

/* Begins the entry of a run that can write to files of the user, or to copies of them. If settings->checkpoint, takes the
 * checkpoint. Called when all grants and masks are in the policy. Prints what is left out. */
int run_checkpoint_begin(struct run_checkpoint *checkpoint, const struct settings *settings,
                         const struct identity *identity, const struct run_checkpoint_what *what,
                         struct brig_error *err);

struct run_checkpoint_outcome {
    bool started;    /* else there is no entry */
    bool written;    /* it has written to copies */
    bool git_failed; /* a transfer is left for the next run */
};

/* Called when the last process of the run has ended and the guard is done: records what has changed, numbers the entry, and
 * appends a line about the changes to `notes`. */
void run_checkpoint_end(struct run_checkpoint *checkpoint, const char *jail,
                        const struct identity *identity,
                        const struct run_checkpoint_outcome *outcome, struct str *notes);
