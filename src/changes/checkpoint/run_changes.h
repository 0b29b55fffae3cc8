/* SPDX-License-Identifier: MIT */
/* What a run has changed in the directories of which it has a checkpoint: found by comparing the tree with the
 * manifest when the run has ended, and recorded with the state that the run has left. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/manifest.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/checkpoint/store.h"

/* The number of roots of which a run has a checkpoint. `run` is the run's directory. */
unsigned run_changes_roots(int run);
/* Whether the run has a checkpoint, but what it changed is not recorded yet. */
bool run_changes_pending(int run);

struct run_changes_count {
    uint64_t added, modified, deleted; /* files, links and directories */
    uint64_t lost; /* what the checkpoint left out, and is not as it was: it cannot be restored */
};
/* Compares all roots with their manifests and records the differences, which take the place of the manifests. Roots that
 * are recorded already are counted only. A root that does not exist any more has no changes, and is named in `notes`, as is what
 * cannot be restored. If nothing has changed, the run has no checkpoint any more. */
int run_changes_record(int run, struct run_changes_count *ret_count, struct str *notes,
                       struct brig_error *err);

/* Removes the manifests of a run that needs no checkpoint. */
void run_changes_forget(int run);

/* ---- reading the record ---- */

struct run_change {
    /* Both have the same path, relative to the root. ident.mode is 0 if there was no file. */
    struct manifest_entry before, after;
    bool is_time;     /* a directory of which only the time differs, by what has changed in it */
    int64_t position; /* in the list */
};

/* Opens the root of a list, unless another directory is there now, or a link; see place_open(). */
int run_changes_open_root(const struct manifest *list, struct brig_error *err);
/* Opens the record of the Nth root, counted from 0: a manifest with two entries for each change. Its header "root" is
 * the absolute path of the root directory; for a single file, of the directory that contains it. */
int run_changes_open(int run, unsigned number, struct manifest **ret_changes,
                     struct brig_error *err);
/* The next change in the order of path_compare(): 1, 0 at the end, or a code. Paths are valid until the next call. */
int run_changes_next(struct manifest *changes, struct run_change *ret_change,
                     struct brig_error *err);

/* The same for what the checkpoint left out, which run_changes_next() skips. */
int run_changes_next_lost(struct manifest *changes, struct run_change *ret_change,
                          struct brig_error *err);
/* "big.dat was deleted, and the checkpoint left it out", without the path. */
const char *run_change_loss(const struct run_change *change);

/* ---- contents ---- */

/* Where the contents of checkpoints come from: the store, with a reader that is started when it is first needed. */
struct run_contents {
    int record; /* NAME.record, borrowed */
    const struct git *git;
    struct store store;
    struct store_reader *reader;
};
void run_contents_init(struct run_contents *contents, int record, const struct git *git);
void run_contents_done(struct run_contents *contents);
/* Writes the contents of a regular file, at the offset 0, to an open file. */
int run_contents_write(struct run_contents *contents, const char *content, int to,
                       struct brig_error *err);
/* Appends the target of a link. */
int run_contents_target(struct run_contents *contents, const char *content, struct str *target,
                        struct brig_error *err);
