/* SPDX-License-Identifier: MIT */
/* Applying and discarding changes: plans the steps of an operation from the changes of a layer. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

struct change;
struct layer;
struct operation;

/* What happens to a change. */
enum apply_choice {
    APPLY_TAKE,  /* it is applied, or discarded */
    APPLY_KEEP,  /* the user's file stays, and the jail's is dropped */
    APPLY_SKIP,  /* both stay as they are */
    APPLY_WRITE, /* `write` gives the contents, and the rest of the change stays */
    APPLY_MERGE, /* `write` gives the contents, and the change is done */
};

struct apply_options {
    /* Only these paths and what is below them, as for changes_walk(); NULL: all. */
    const char *const *paths;
    size_t path_count;
    bool risky; /* set-id bits and capabilities are kept */
    bool live;  /* the upper directory is not changed: the changes are recorded as applied */
    /* Decides about each change. *ret_reason says why it is skipped, NULL: it is not mentioned. */
    int (*choose)(void *context, const struct change *change, enum apply_choice *ret_choice,
                  const char **ret_reason, struct brig_error *err);
    /* Examines the copy of a file (change->copy_name) that is about to be placed, because the jail may have changed
     * the file since `choose` was asked. Returns the reason why it is skipped, or NULL. May be NULL. */
    const char *(*check)(void *context, const struct change *change);
    /* Writes the contents of a file for APPLY_WRITE and APPLY_MERGE. */
    int (*write)(void *context, const struct change *change, int fd, struct brig_error *err);
    /* Told what is planned, or with a reason that it is skipped. */
    void (*tell)(void *context, const struct change *change, enum apply_choice choice,
                 const char *reason);
    void *context;
};

/* Plan the steps for the changes of a layer. With operation NULL nothing is copied: only `choose` and `tell` are
 * called. */
int apply_plan(struct operation *operation, const struct layer *layer,
               const struct apply_options *options, struct brig_error *err);
int discard_plan(struct operation *operation, const struct layer *layer,
                 const struct apply_options *options, struct brig_error *err);
