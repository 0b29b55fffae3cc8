/* SPDX-License-Identifier: MIT */
/* Clones: copies of large files that share their blocks with the originals, where the filesystem can do that. They are
 * in checkpoints/clones of the jail's record. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "changes/checkpoint/manifest.h"

struct clones {
    int checkpoints; /* borrowed */
    int directory;   /* or -1 */
    bool impossible; /* it was tried */
};
void clones_init(struct clones *clones, int checkpoints);
void clones_done(struct clones *clones);

/* Whether the filesystem of a file can share its blocks with the record: the file is cloned once. `path` is relative. */
bool clones_can(struct clones *clones, int dir, const char *path);
/* Clones a regular file: its content for the manifest, "@NAME", and its state. Returns 0 or an errno. */
int clones_take(struct clones *clones, int dir, const char *name,
                char ret_content[MANIFEST_CONTENT_MAX], struct stat *ret_info);
/* Writes a clone, "@NAME", of a record to an open file. */
int clones_write(int record, const char *content, int to, struct brig_error *err);
