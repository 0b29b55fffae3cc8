/* SPDX-License-Identifier: MIT */
/* Clones: copies of large files that share their blocks with the originals, where the filesystem can do that. They are
 * in checkpoints/clones of the jail's record. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/manifest.h"

struct clones {
    int checkpoints; /* borrowed */
    int directory;   /* or -1 */
};
void clones_init(struct clones *clones, int checkpoints);
void clones_done(struct clones *clones);

/* Whether the filesystem of a file can share its blocks with the record: the file is cloned once. `path` is relative. */
bool clones_can(struct clones *clones, int dir, const char *path);
/* Clones a regular file: its content for the manifest, "@NAME", and its state. Returns 0 or an errno; ESTALE if the file
 * has changed meanwhile. */
int clones_take(struct clones *clones, int dir, const char *name,
                char ret_content[MANIFEST_CONTENT_MAX], struct stat *ret_info);
/* Makes all clones durable. */
int clones_sync(const struct clones *clones, struct brig_error *err);

/* Removing those that are not needed: the needed ones get a link in another directory, *ret_kept, which in the end takes the
 * place of the directory of clones. So no list is in memory, and a kill loses nothing. */
int clones_keep_begin(int checkpoints, int *ret_kept, struct brig_error *err);
int clones_keep(int clones, int kept, const char *content, struct brig_error *err);
int clones_keep_end(int checkpoints, struct brig_error *err);

/* Writes a clone, "@NAME", of a record to an open file. */
int clones_write(int record, const char *content, int to, struct brig_error *err);
