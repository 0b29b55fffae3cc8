/* SPDX-License-Identifier: MIT */
/* Reviewed directories of a run (--review): their grants become copy-on-write mounts; the upper
 * directories are in the jail's storage. Nothing is written to the directory itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "changes/layer/layer.h"
#include "cli/run/masks.h"
#include "cli/settings/settings.h"
#include "git/git.h"
#include "home/home.h"

#define REVIEW_ROOTS_MAX 16

struct identity;
struct str;

/* A layer that the run writes to: a reviewed directory, or the copy-on-write home. */
struct review_root {
    char *root; /* absolute, without links; owned */
    char name[LAYER_NAME_MAX];
    struct place place;        /* of a reviewed directory */
    int run;                   /* the lock of base_begin(), or -1 */
    bool earlier;              /* another run, or an earlier one, has left a base */
    bool fresh;                /* the layer is new */
    bool written;              /* by this run, which has ended */
    struct home_mounts mounts; /* of a reviewed directory */
};

/* Zero-initialise with REVIEW_INIT; release with review_done(). */
struct review {
    struct review_root roots[REVIEW_ROOTS_MAX + 1];
    size_t count;
    int64_t began_ns; /* in the clock of file times */
    bool ended;       /* review_end() was called */
    bool wrote;       /* the run has written to a reviewed directory */
    pid_t applier;    /* the process that applies changes during the run, or 0 */
    int applier_end;  /* closed to end it; or -1 */
    const char *run;  /* the entry of the run in the log, or NULL; borrowed */
    int stand_in;     /* in place of the mounts, for a plan that is printed; or -1 */
};
#define REVIEW_INIT                                                                                \
    (struct review)                                                                                \
    {                                                                                              \
        .applier_end = -1, .stand_in = -1                                                          \
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

/* Records what is hidden from the run in a layer, for the verbs that handle its changes later. */
int review_record_masks(const struct settings *settings, const struct identity *identity,
                        const char *layer, const struct home_spec *spec, struct brig_error *err);

/* The same for a plan that is printed: describes the mounts, and puts an empty directory in their
 * place. */
int review_foresee(struct review *review, const struct settings *settings, struct str *out,
                   struct brig_error *err);

/* Called when the run is over: completes the bases of the layers. Returns whether the run has written to one. */
bool review_end(struct review *review, const struct settings *settings,
                const struct identity *identity);
/* Called when git's new commits are fetched: applies changes with --review=auto, and appends a line about what was written
 * aside to `notes`, if there is anything. */
void review_tell(const struct review *review, const struct settings *settings,
                 const struct identity *identity, struct str *notes);

/* At a terminal, asks whether to look at the changes that are left in reviewed directories, and runs
 * `brig review`. Called when the run has released its mounts, as the review rewrites the layers. */
void review_offer(const struct review *review, const struct settings *settings,
                  const struct identity *identity);

/* The changes that the run has written aside, with what is hidden in them. Release with
 * review_layers_done(). It borrows from itself, so it must not be moved. */
struct review_layers {
    struct layers layers;
    struct masks_hidden hidden;
};
/* Whether a directory of the run is reviewed. */
bool review_has_reviewed(const struct review *review);
/* Opens the layers of the run that are marked in `wanted`, one flag for each of review->roots; NULL: the reviewed
 * directories. */
int review_layers_open(const struct review *review, const bool *wanted,
                       const struct settings *settings, const struct identity *identity,
                       struct review_layers *ret_layers, struct brig_error *err);
void review_layers_done(struct review_layers *layers);

/* ---- --review=auto (review_auto.c) ---- */

/* Starts a process that applies changes without a risk or a conflict whenever nothing was written
 * for a second, so that the run never waits for it. It ends with this process, or by
 * review_auto_stop(). */
void review_auto_start(struct review *review, const struct settings *settings,
                       const struct identity *identity);
void review_auto_stop(struct review *review);
/* Applies what is left after the run, files and git in one operation. */
void review_auto_finish(const struct review *review, const struct settings *settings,
                        const struct identity *identity, struct str *notes);

/* Releases the mounts, so that other commands may change the layers. */
void review_done(struct review *review);
