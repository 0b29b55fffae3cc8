/* SPDX-License-Identifier: MIT */
/* The layer of masks of an overlay, before it is made: names that stand for nothing (whiteouts), empty
 * directories that hide what is below them, and the directories these are in. It is known in memory, so
 * that what is asked for several times, or again when the overlay is mounted, takes no system call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <brig/brig.h>

#include "base/str.h"

#define LAYER_BUCKETS 512

enum layer_kind {
    LAYER_DIRECTORY, /* with the mode and times of the home's */
    LAYER_WHITEOUT,
    LAYER_OPAQUE, /* an empty directory */
};

struct layer_entry {
    enum layer_kind kind;
    uint32_t parent; /* these are indices; 0 is the layer's own directory */
    uint32_t first_child, next_child, chained; /* 0: none */
    size_t name;                               /* where it is in `names` */
    mode_t mode;
    struct timespec times[2]; /* of access and change */
};

/* All zero is an empty one. */
struct layer {
    struct layer_entry *entries;
    size_t count, capacity;
    uint32_t buckets[LAYER_BUCKETS];
    struct str names;
};

/* Hides a path relative to the home, whose directory must be a real one there: 1 if it is hidden, 0 if
 * there is no such directory, or an errno below 0. */
int layer_hide(struct layer *layer, int home, const char *path, enum layer_kind kind);

/* Whether a path is hidden, itself or with a directory above it. */
bool layer_hides(const struct layer *layer, const char *path);

/* Makes all of it in an empty directory. `whiteout` is a name in `base` for a device of number 0, which
 * all whiteouts are further names of. */
int layer_make(const struct layer *layer, int directory, int base, const char *whiteout,
               struct brig_error *err);

void layer_done(struct layer *layer);
