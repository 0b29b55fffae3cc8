/* SPDX-License-Identifier: MIT */
/* The entry of a run in the log, and its checkpoint (--checkpoint): of every directory and file of the user that the command
 * can write to directly. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "changes/end.h"
#include "git/git.h"

struct guard;
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
    const char *const *words;  /* as the user has typed them */
    bool has_layers;           /* the run writes to copies */
    const struct guard *guard; /* what it does in git is transferred at its end; or NULL */
};

/* Begins the entry of a run that can write to files of the user, or to copies of them. If settings->checkpoint, takes the
 * checkpoint. Called when all grants and masks are in the policy. Prints what is left out. */
int run_checkpoint_begin(struct run_checkpoint *checkpoint, const struct settings *settings,
                         const struct identity *identity, const struct run_checkpoint_what *what,
                         struct brig_error *err);

struct run_checkpoint_outcome {
    bool started; /* else there is no entry */
    bool written; /* it has written to copies */
};

/* Called when the last process of the run has ended: run_end(), with a line about the changes in `notes`. */
void run_checkpoint_end(struct run_checkpoint *checkpoint, struct guard *guard, const char *jail,
                        const struct identity *identity,
                        const struct run_checkpoint_outcome *outcome, struct str *notes);
