/* SPDX-License-Identifier: MIT */
/* The changes of a layer for people: sorted by kind, with risks, conflicts, renames and ignored files.
 *
 * Items are kept in unlinked temporary files in the jail's record, so memory does not grow with the
 * number of changes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "changes/layer/change.h"

struct git;
struct layers;
struct str;

#define STATUS_KINDS (CHANGE_ADDED + 1)

/* A change. Texts are valid during the call. */
struct status_item {
    enum change_kind kind;
    unsigned meta;                    /* CHANGE_MODE and so on */
    uint32_t mode_before, mode_after; /* with the type; 0: there is no file */
    uint64_t size_before, size_after;
    uint64_t files, bytes; /* in a deleted or replaced directory */
    uint64_t inode;        /* of the file in the upper directory */
    int64_t ctime_ns;      /* the same; 0: it is deleted */
    bool asked;            /* for status.c: git is asked whether it is ignored */
    bool ignored;          /* by git, outside; only added files */
    uint32_t group;        /* the length of the ignored directory in `path`; 0: it is not in one */
    const char *path;      /* relative to the root */
    const char *target_before, *target_after; /* of links, else NULL */
    const char *renamed_from;                 /* a deleted file with the same contents, or NULL */
    const char *conflict, *risk, *unreadable; /* reasons, or NULL */
};

struct status_counts {
    uint64_t kinds[STATUS_KINDS];
    uint64_t conflicts, risky, ignored, unreadable;
    uint64_t bytes; /* of added and modified files */
};

struct status_options {
    const char *const *paths; /* as in struct change_options */
    size_t path_count;
    const struct git *git; /* for ignored files; NULL: none are ignored */
};

struct status;

/* Collects the changes of a layer. Release with status_free(). */
int status_collect(const struct layer *layer, const struct status_options *options,
                   struct status **ret_status, struct brig_error *err);
void status_free(struct status *status);
const struct status_counts *status_counts(const struct status *status);

/* Visits all items: deletions, type changes, modified files, metadata, added files; each sorted by
 * path. */
typedef int (*status_visit)(void *context, const struct status_item *item, struct brig_error *err);
int status_each(struct status *status, status_visit visit, void *context, struct brig_error *err);

/* Ignored files in one directory: all in and below it if git ignores the directory, else those
 * directly in it. */
struct status_group {
    const char *path; /* of the directory, or of the only file; "": the root */
    bool whole;       /* the directory is ignored */
    bool single;      /* `path` is a file */
    uint64_t files, bytes, risky;
    const char *risk; /* the reason of the first risky file, or NULL */
};
typedef int (*status_group_visit)(void *context, const struct status_group *group,
                                  struct brig_error *err);
int status_each_group(struct status *status, status_group_visit visit, void *context,
                      struct brig_error *err);

/* ---- the end of a run ---- */

#define STATUS_LINE_MAX 100000 /* entries that are counted; of more, "more than" is said */

/* Appends a line without a newline, such as "12 files changed in the jail's copy of your home, 3 new;
 * see brig status", about files that were changed at `since_ns` (CLOCK_REALTIME) or later; 0: all.
 * Appends nothing if there are none. Does not read the contents of files. `state` has paths in the
 * home that are not counted, with all that is below them (see str_list_add); NULL: none. */
int status_line(const struct layers *layers, int64_t since_ns, const struct str *state,
                struct str *out, struct brig_error *err);
