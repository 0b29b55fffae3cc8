/* SPDX-License-Identifier: MIT */
/* Reviewed directories of a run (--review): their grants become copy-on-write mounts, whose upper
 * directories are in the jail's storage. Nothing is written to the directory itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include <brig/brig.h>

#include "changes/layer.h"
#include "home/home.h"

#define REVIEW_ROOTS_MAX 16

struct identity;
struct mask_names;
struct mask_rules;
struct settings;
struct str;

/* A layer that the run writes to: a reviewed directory, or the copy-on-write home. */
struct review_root {
    char *root; /* absolute, without links; owned */
    char name[LAYER_NAME_MAX];
    int run;                   /* the lock of base_begin(), or -1 */
    bool fresh;                /* the layer is new */
    struct home_mounts mounts; /* of a reviewed directory */
};

/* Zero-initialise with REVIEW_INIT; release with review_done(). */
struct review {
    struct review_root roots[REVIEW_ROOTS_MAX + 1];
    size_t count;
    struct timespec began; /* in the clock of file times */
    int stand_in;          /* in place of the mounts, for a plan that is printed; or -1 */
};
#define REVIEW_INIT                                                                                \
    (struct review)                                                                                \
    {                                                                                              \
        .stand_in = -1                                                                             \
    }

/* What is hidden from the run. */
struct review_hidden {
    const struct mask_rules *rules; /* relative to the home directory */
    const struct mask_names *names; /* NULL: there are no rules */
    char *const *own;               /* brig's own directories: absolute */
    size_t own_count;
};

/* Called when all rules are known: marks the grant of the working directory if it is to be
 * reviewed. Fails if the command could write to a reviewed directory by another path. Uses the ids
 * of the user. */
int review_mark(struct settings *settings, struct brig_error *err);

/* Joins the holder of each reviewed directory, and replaces the grant by its mount. Called with the
 * ids of brig itself. */
int review_join(struct review *review, const struct settings *settings,
                const struct identity *identity, const struct review_hidden *hidden,
                struct brig_error *err);

/* Called before the copy-on-write home is mounted: records what its changes are based on. Close
 * *ret_lock, which keeps other commands from changing it meanwhile, when it is mounted. */
int review_begin_home(struct review *review, const struct settings *settings,
                      const struct identity *identity, const char *home, int *ret_lock,
                      struct brig_error *err);

/* The same for a plan that is printed: describes the mounts, and puts an empty directory in their
 * place. */
int review_foresee(struct review *review, const struct settings *settings, struct str *out,
                   struct brig_error *err);

/* Called when the run is over: completes the bases of the layers. A line about what the run has
 * written to them is appended to `notes`, if there is anything. Returns whether a reviewed directory
 * has changes. */
bool review_end(struct review *review, const struct settings *settings,
                const struct identity *identity, struct str *notes);

/* Releases the mounts, so that other commands may change the layers. */
void review_done(struct review *review);
