/* SPDX-License-Identifier: MIT */
/* What a layer is based on: the state of the user's files when the jail could first have read them.
 * A conflict is a file that the user has changed since.
 *
 * At the start of the first of concurrent runs, NAME.record/LAYER.start is written: for a reviewed
 * directory a manifest of the whole root (type, inode, size, mtime and ctime of each file); for a
 * home, which is too large for that, only the time. Every run holds a shared lock on it. When the
 * last one ends, the records of the paths that are new in the upper directory are moved to
 * LAYER.base, where they stay until the change is applied or discarded, and LAYER.start is removed.
 * After a kill the next run does that first. So a path is looked up in LAYER.base, then in
 * LAYER.start.
 *
 * Both are manifests, read beside the walk. Their header "since" is the meaning of a missing record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/manifest.h"

struct layer;

enum base_kind {
    BASE_FILE,  /* `lower` was the state of the path */
    BASE_SINCE, /* unknown, but a file with a later ctime than lower.ctime_ns has changed */
};

struct base_record {
    const char *path; /* valid until the next call */
    enum base_kind kind;
    struct ident lower; /* mode 0: there was no file */
    /* The state of the upper file when it was applied during a run: while it has this state it is
     * not a change. mode 0: it was not applied; then ctime_ns is the end of the run that has deleted it, or 0. */
    struct ident applied;
};

/* ---- reading ---- */

struct base;
/* Opens the base of a layer. A layer without one has an empty one. */
int base_open(const struct layer *layer, struct base **ret_base, struct brig_error *err);
void base_close(struct base *base);
/* Finds the record of a path; paths must be asked for in order. Returns 1, 0 if nothing is known about the path, or a
 * code if a list is damaged. */
int base_find(struct base *base, const char *path, struct base_record *ret_record,
              struct brig_error *err);

/* Notes the current record, and goes back to it: then later paths can be asked for again. */
void base_note(struct base *base);
int base_return(struct base *base, struct brig_error *err);

/* Whether the user's file has changed since then: a short reason, or NULL. `now` is NULL if it does
 * not exist. */
const char *base_conflict(const struct base_record *record, const struct stat *now);
/* The same for a directory that the jail has deleted, replaced or given other metadata. */
const char *base_directory_conflict(const struct base_record *record, const struct stat *now);

/* ---- runs, with the lock of the record (layers_lock()) ---- */

/* At the start of a run, before the layer is mounted. Returns an fd with a shared lock that the run
 * keeps open, or a code. */
int base_begin(const struct layer *layer, struct brig_error *err);

/* At the end of the run. Closes the fd. If the run was the last one, moves records to LAYER.base,
 * unless the upper directory has more than `max` entries: then LAYER.start stays until a later
 * call. */
int base_end(const struct layer *layer, int run, size_t max, struct brig_error *err);

/* The same for a run that has written nothing, if base_has_start() was false before base_begin(). */
int base_cancel(const struct layer *layer, int run);

/* Whether a run is active, or has left records to be moved. */
bool base_has_start(const struct layer *layer);

/* Moves the records that a killed run, or base_end(), has left. */
int base_settle(const struct layer *layer, struct brig_error *err);

/* Whether a run has the layer mounted. */
bool base_has_run(int record, const char *layer_name);

/* ---- changing records, with the lock of the record ---- */

/* What becomes of the record of a path. Of several changes of one path the last in this order counts. */
enum base_how {
    BASE_PUT_BACK, /* the record that an operation has removed, or else `record`, if it has a path */
    BASE_SET,      /* `record` */
    BASE_PUT_BACK_AS, /* the removed record with the state of `record` */
    BASE_FORGET,      /* none, and none of the paths below it */
};

struct base_change {
    char *path;
    enum base_how how;
    struct base_record record;
};
/* Sorts changes by path. */
void base_sort(struct base_change *changes, size_t count);

/* A manifest of an operation with the records that it has removed or replaced. */
struct base_kept {
    int dir; /* -1: there is none */
    const char *name;
    bool
        put_back; /* an undo: where a record of a deleted or replaced directory is put back, so are those below it */
};
/* Changes records; the changes are sorted. `kept` may be NULL. */
int base_update(const struct layer *layer, const struct base_change *changes, size_t count,
                const struct base_kept *kept, struct brig_error *err);
