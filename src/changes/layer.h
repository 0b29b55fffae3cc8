/* SPDX-License-Identifier: MIT */
/* Layers: what a jail has written over directories of the user, without changing them.
 *
 * A layer has a root, a directory of the user, and an upper directory, in which overlayfs keeps new and
 * changed files and marks for deleted ones. A jail has a layer for the copy-on-write home of casual mode,
 * and one for each directory that was reviewed (--review). On disk, in the storage directory:
 *
 *     NAME.changes, NAME.work    the upper directory of the home
 *     NAME.review/               a storage directory for reviewed directories: N.changes, N.work, N.lock as
 *                                for a home, and N.root, the path of the root; N is 1, 2, …
 *     NAME.record/               never mounted in any jail:
 *       home.base, N.base        what the layer is based on: see base.h
 *       home.start, N.manifest   the same for runs since then
 *       operations/, store.git/  see operation.h, store.h
 *       lock                     held by whatever rewrites one of these
 *
 * A forked jail has further upper directories below its own, which nothing changes any more (see fork.h).
 *
 * The jail has written the upper directory: it may contain any names, types and modes. Nothing here or in
 * the other files of this folder follows a symbolic link, opens a device or FIFO, or keeps more in memory
 * than one directory's names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/path.h"

struct mask_rules;

#define LAYER_STACK_MAX 8 /* upper directories of a layer */
#define LAYERS_MAX 64     /* of a jail */
#define LAYER_HOME "home" /* the name of the layer of the home */
#define LAYER_REVIEW_PART ".review"
#define LAYER_RECORD_PART ".record"

/* What is hidden from the jail: never a change, whatever the upper directory contains. */
struct layer_masks {
    const char *home;               /* absolute, without links; NULL: there are no rules */
    const struct mask_rules *rules; /* relative to it */
    const char *const *paths;       /* absolute: files of credentials, brig's own directories */
    size_t path_count;
};

struct layer {
    char jail[65];
    char name[24];                  /* LAYER_HOME, or a number */
    char root[PATH_LENGTH_MAX + 1]; /* absolute, without links */
    int lower;                      /* the root; -1: it does not exist any more */
    int uppers[LAYER_STACK_MAX];    /* [0] is the jail's own; the others are shared with forks */
    size_t upper_count;
    int record;                 /* NAME.record */
    bool fuse;                  /* deletions are marked in the way of fuse-overlayfs */
    bool running;               /* a run has it mounted: the upper directory must not be rewritten */
    uid_t jail_uid, owner;      /* files of jail_uid belong to `owner` outside; equal unless root runs the jail */
    gid_t jail_gid, owner_gid;
    struct layer_masks masks;   /* borrowed from the caller */
};

struct layers {
    struct layer items[LAYERS_MAX];
    size_t count;
};

/* Opens all layers of a jail that exist, the home first, then by path. `storage` is the path of the storage
 * directory. A jail without layers has none: that is no error. Release with layers_done(). */
int layers_open(const char *storage, const char *jail, uid_t uid, const struct layer_masks *masks,
                struct layers *ret_layers, struct brig_error *err);
void layers_done(struct layers *layers);

/* The layer whose root contains an absolute path without links, the innermost one; *ret_path gets the path
 * relative to the root, "" for the root. NULL if there is none. */
const struct layer *layers_find(const struct layers *layers, const char *path, const char **ret_path);

/* Whether a path relative to the root is hidden by a mask, or is in a hidden directory. Compares text. */
bool layer_hides(const struct layer *layer, const char *path);
/* Whether something below the path is hidden. */
bool layer_hides_below(const struct layer *layer, const char *path);

/* Takes the lock of the jail's record, so that no other command rewrites it or an upper directory, and no run
 * starts. Fails with BRIG_E_STATE, naming the process, if `rewrites` and a run of the jail is active. Returns
 * an fd; close it to release the lock. */
int layers_lock(const struct layers *layers, bool rewrites, struct brig_error *err);

/* ---- for runs ---- */

/* Opens NAME.record, creating it. */
int layer_open_record(const char *storage, const char *jail, struct brig_error *err);

/* The number of the reviewed directory with this root, allocated if it is new: the name of its files in
 * NAME.review. */
int layer_review_number(const char *storage, const char *jail, const char *root, char ret_name[24],
                        struct brig_error *err);
