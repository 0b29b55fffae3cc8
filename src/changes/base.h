/* SPDX-License-Identifier: MIT */
/* What a layer is based on: the state of the user's files when the jail could first have read them. A
 * conflict is a file that the user has changed since.
 *
 * For a reviewed directory, a manifest of the whole root is written before a run starts, if no other run has the
 * layer mounted: type, inode, size, mtime and ctime of each file. For a home, which is too large for that, only
 * the time is written. Before the next manifest replaces it, the records of the paths that are in the upper
 * directory move into the base, where they stay until the change is applied or discarded. So a path is looked
 * up in the base first, then in the manifest.
 *
 * All files are sorted by path, component by component, as the walk visits them: a reader goes through them
 * once, with the walk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <brig/brig.h>

struct layer;

/* The identity of a file's state. */
struct ident {
    uint32_t mode; /* with the type; 0: there is no file */
    uint64_t inode, size;
    int64_t mtime_ns, ctime_ns;
};

struct ident ident_of(const struct stat *info);
/* Whether it is the same file with the same contents and metadata. Directories are the same if both are
 * directories: their times change whenever something in them does. */
bool ident_equal(const struct ident *a, const struct ident *b);
/* The same without ctime and inode: for a file that was moved or copied exactly. */
bool ident_same_content(const struct ident *a, const struct ident *b);

enum base_kind {
    BASE_FILE,  /* `lower` was the state of the path */
    BASE_SINCE, /* unknown, but a file with a later ctime than lower.ctime_ns has changed */
};

struct base_record {
    const char *path; /* valid until the next call */
    enum base_kind kind;
    struct ident lower; /* mode 0: there was no file */
    /* The state of the upper file when it was applied while a run was active: while the upper file has this state
     * it is not a change. mode 0: it was not applied. */
    struct ident applied;
};

/* Compares relative paths component by component, so that a directory is followed by what is in it. */
int base_compare(const char *a, const char *b);

/* ---- reading ---- */

struct base;
/* Opens the base of a layer. A layer without one has an empty one. */
int base_open(const struct layer *layer, struct base **ret_base, struct brig_error *err);
void base_close(struct base *base);
/* Finds the record of a path; paths must be asked for in order. Returns false if nothing is known about the
 * path, as for the changes of an earlier version of brig. */
bool base_find(struct base *base, const char *path, struct base_record *ret_record);

/* Whether the user's file has changed since: a conflict. Returns a short reason, or NULL. `now` is NULL if it does not
 * exist. */
const char *base_conflict(const struct base_record *record, const struct stat *now);

/* ---- writing, with the lock of the record ---- */

/* At the start of a run, if no other run has the layer mounted. */
int base_begin(const struct layer *layer, struct brig_error *err);

/* Replaces or adds records, sorted by path; a record with kind BASE_FILE, lower.mode 0 and applied.mode 0 whose
 * `forget` is set is removed. */
struct base_change {
    char *path;
    bool forget;
    struct base_record record; /* record.path is ignored */
};
int base_update(const struct layer *layer, const struct base_change *changes, size_t count,
                struct brig_error *err);
