/* SPDX-License-Identifier: MIT */
/* The checkpoint of a run (--checkpoint): of every directory and file of the user that the command can write to
 * directly. */
#pragma once

#include <stdint.h>

#include <brig/brig.h>

#include "git/git.h"

struct identity;
struct settings;
struct str;

struct run_checkpoint {
    int record;  /* NAME.record; -1: there is no checkpoint */
    int run;     /* the directory of the run's operation */
    int lock;    /* held as long as the run is active */
    uint64_t id; /* of the operation */
    struct git git;
};
#define RUN_CHECKPOINT_INIT                                                                        \
    (struct run_checkpoint)                                                                        \
    {                                                                                              \
        .record = -1, .run = -1, .lock = -1                                                        \
    }

/* If settings->checkpoint, takes the checkpoint and logs the run as an operation. Called when all grants and masks are
 * in the policy. Prints what is left out. */
int run_checkpoint_begin(struct run_checkpoint *checkpoint, const struct settings *settings,
                         const struct identity *identity, const char *const *words,
                         struct brig_error *err);

/* Called when the last process of the run has ended and the guard is done: records what has changed, and appends a
 * line about it to `notes`. */
void run_checkpoint_end(struct run_checkpoint *checkpoint, const char *jail,
                        const struct identity *identity, struct str *notes);
