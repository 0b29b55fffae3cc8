/* SPDX-License-Identifier: MIT */
/* Mount points of runs in what a jail's runs share: held in place, so that no run can remove or rename one
 * on which another has mounted something.
 *
 * The kernel lets a mount point be removed in a namespace where nothing is mounted on it, and unmounts
 * what is mounted there in all others. So the holder mounts each mount point, and every directory above
 * it, on itself. Its mounts are shared and the clones of runs are slaves of them: the kernel passes these
 * mounts on to every run, where they change nothing but that their names are busy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "home/mounts.h"

#define PINS_MAX 4096

struct pins_item {
    enum mounts_part part;
    char *path; /* relative to the part */
};

struct pins {
    struct pins_item *items; /* each after those above it */
    size_t count, room;
};

/* Holds a path in place; it is made if it is missing, as a directory or a file. No link is followed. */
int pins_add(struct pins *pins, enum mounts_part part, const char *path, bool directory,
             struct brig_error *err);

/* Whether a path is still needed. */
typedef bool (*pins_needed)(const void *context, const struct pins_item *item);
/* Lets go of what is not needed, unless a run uses it or something else is mounted in it: then it is tried
 * again the next time. With `force`, when no run is left, it is unmounted in any case, and true is returned:
 * masks may have been unmounted with it. */
bool pins_drop(struct pins *pins, pins_needed needed, const void *context, bool force);
/* A part was unmounted, with all that was mounted in it. */
void pins_forget(struct pins *pins, enum mounts_part part);
