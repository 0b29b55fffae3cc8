/* SPDX-License-Identifier: MIT */
/* The entry of a run in the log, from its beginning to its end.
 *
 * An entry gets its number when it ends, so that the newest entry is what happened last. Until then its directory is
 * `run-X` beside the numbers. It is made before the first process of the run, and the run holds a lock in it; its info says
 * what is true if the run is killed. A directory whose lock is free belongs to a killed run and is settled: what the run
 * has changed in a directory with a checkpoint is recorded, and the entry is numbered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "changes/checkpoint/run_changes.h"
#include "changes/operation/operation.h"

struct run_entry {
    int record; /* borrowed */
    int dir;    /* run-X; -1: there is no entry */
    int lock;
    struct operation_info info; /* kind, text, effects: set them before run_save() */
};
#define RUN_ENTRY_INIT                                                                             \
    (struct run_entry)                                                                             \
    {                                                                                              \
        .record = -1, .dir = -1, .lock = -1                                                        \
    }

/* Settles killed runs, and makes the entry of a new one. info.run is its name then. Needs no lock. */
int run_begin(int record, const char *text, struct run_entry *ret_entry, struct brig_error *err);
/* Writes what info says. */
int run_save(struct run_entry *entry, struct brig_error *err);

/* Numbers the entry: *ret_id. One without any effect is removed unless `keep`, and *ret_id is 0. Then there is no entry any
 * more, also after an error. */
int run_end(struct run_entry *entry, bool keep, uint64_t *ret_id, struct brig_error *err);
/* Removes the entry of a run that did not start. */
void run_forget(struct run_entry *entry);

/* Settles the killed runs of a record, and files that they have begun to hold back. */
int runs_settle(int record, struct brig_error *err);
