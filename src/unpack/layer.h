/* SPDX-License-Identifier: MIT */
/* Unpacks the tar archive of a layer into a directory.
 *
 * Everything is created below the directory, name by name, without following a symbolic link.
 * Owners, extended attributes and the set-id bits are dropped, devices and FIFOs left out. What
 * hides files of lower layers needs rights that this program lacks: it is listed for its caller. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "unpack/tar.h"

#define LAYER_ENTRIES_MAX 1000000
#define LAYER_DEPTH_MAX 128

struct layer {
    int root;   /* the directory, borrowed */
    int hidden; /* the list: "w" or "o" (opaque), a path and a NUL each; borrowed */
    char above[TAR_NAME_MAX + 1]; /* the directory that `above_fd` is; the last one used */
    int above_fd;                 /* -1: none */
    size_t entries;               /* made so far */
    size_t special;               /* left out */
};

void layer_init(struct layer *layer, int root, int hidden);
void layer_done(struct layer *layer);

/* Takes all entries of an archive. */
int layer_unpack(struct layer *layer, struct tar *tar, struct brig_error *err);

/* Removes empty and "." components, and slashes at both ends. False for "..", and for what is too
 * deep or has a component that is too long. The result may be "". */
bool layer_clean_name(const char *name, char ret_name[TAR_NAME_MAX + 1]);
