/* SPDX-License-Identifier: MIT */
/* The entry of a run in the log, from its beginning to its end.
 *
 * An entry gets its number when it ends, so that the newest entry is what happened last. Until then its directory is
 * `run-X` beside the numbers; the directory for the run's private git directories, if there is one, has the same name. Both are
 * made before the first process of the run, which holds a lock in each; the info of the entry says what is true if the run is
 * killed. A directory whose lock is free belongs to a killed run, and runs_settle() ends it in its place. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "changes/checkpoint/run_changes.h"
#include "changes/operation/operation.h"

struct guard;
struct guard_options;

struct run_entry {
    int record; /* borrowed */
    int dir;    /* run-X; -1: there is no entry */
    int lock;
    struct operation_info
        info; /* kind, text, effects: set them before run_save(); its id is 0 until it is numbered */
};
#define RUN_ENTRY_INIT                                                                             \
    (struct run_entry)                                                                             \
    {                                                                                              \
        .record = -1, .dir = -1, .lock = -1                                                        \
    }

/* Makes the entry of a new run. `name` is that of its directory for git; NULL: it has none. info.run is its name then. Needs no
 * lock. */
int run_begin(int record, const char *name, const char *text, struct run_entry *ret_entry,
              struct brig_error *err);
/* Writes what info says. */
int run_save(struct run_entry *entry, struct brig_error *err);
/* Removes the entry of a run that did not start. */
void run_forget(struct run_entry *entry);

struct run_ended {
    uint64_t id;                    /* the number of the entry; 0: it is not in the log */
    struct run_changes_count count; /* what has changed since the checkpoint */
};

/* The end of a run, also of one that was killed: nested repositories, git and held files, which are the guard's part (NULL: it
 * has none); differences from the checkpoint; then the entry gets its number. One without any effect is removed unless `keep`.
 * Each part can be repeated after a kill; the caller frees the guard afterwards. Messages are appended to `notes`. Then there is
 * no entry any more, also after an error. Needs the ids of the user. */
int run_end(struct run_entry *entry, struct guard *guard, bool keep, struct run_ended *ret_ended,
            struct str *notes, struct brig_error *err);

/* Ends the runs of a jail that were killed, and completes files that they have begun to hold back. `guard` is for its private git directories, NULL: it has none; with `kept` also
 * those of which that has failed before, and active runs hand over what they have. With `directories`, a list, only runs with
 * private git directories that could write to one of them, or to something in one. */
struct runs_left {
    const struct guard_options *guard;
    const struct str *directories;
    bool kept;
};
int runs_settle(int record, const struct runs_left *left, struct str *notes,
                struct brig_error *err);
