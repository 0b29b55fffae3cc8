/* SPDX-License-Identifier: MIT */
/* Layers: what a jail has written over directories of the user, without changing them.
 *
 * A layer has a root, a directory of the user, and an upper directory, in which overlayfs keeps new and
 * changed files and marks for deleted ones. A jail has a layer for the copy-on-write home of casual mode,
 * and one for each directory that was reviewed (--review). On disk, in the storage directory:
 *
 *     NAME.changes, NAME.work    the upper directory of the home
 *     NAME.review/               a storage directory for reviewed directories: N.changes, N.work, N.lock as
 *                                for a home, and N.root, a record of the path and place of the root; N is
 *                                1, 2, …
 *     NAME.record/               never mounted in any jail:
 *       home.base, N.base        what the layer is based on: see base.h
 *       home.start, N.start      the same for active runs
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
#include "base/place.h"
#include "changes/layer/jail_option.h"

struct hidden;
struct mask_rules;

#define LAYER_STACK_MAX 8   /* upper directories of a layer */
#define LAYER_DEPTH_MAX 256 /* levels of directories that are walked; deeper ones are reported */
#define LAYERS_MAX 64       /* of a jail */
#define LAYER_NAME_MAX 24
#define LAYER_JAIL_MAX 65
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
    char jail[LAYER_JAIL_MAX];
    char name[LAYER_NAME_MAX];      /* LAYER_HOME, or a number */
    char root[PATH_LENGTH_MAX + 1]; /* absolute, without links */
    int lower;                      /* the root; -1: it does not exist any more */
    struct place place;             /* the root for which the last run was; unknown for a home */
    bool replaced;                  /* there is another directory now, or was since: see below */
    int uppers[LAYER_STACK_MAX];    /* [0] is the jail's own; the others are shared with forks */
    size_t upper_count;
    int record;   /* NAME.record */
    bool fuse;    /* deletions are marked in the way of fuse-overlayfs */
    bool running; /* a run has it mounted: the upper directory must not be rewritten */
    uid_t jail_uid,
        owner; /* files of jail_uid belong to `owner` outside; equal unless root runs the jail */
    gid_t jail_gid, owner_gid;
    struct layer_masks masks; /* borrowed from the caller */
    struct hidden *hidden;    /* masks of its runs; NULL: not read */
};

/* Whether a layer of this name is that of the home. */
bool layer_is_home(const char *name);

/* The reason for which each change of a replaced layer is a conflict. */
#define LAYER_REPLACED "it was made for another directory at this path"

struct layers {
    struct layer items[LAYERS_MAX];
    size_t count;
};

/* Opens all layers of a jail that exist, the home first, then by path. `storage` is the path of the storage
 * directory, `home` that of the user's home, or NULL. A jail without layers has none: that is no error. Release with
 * layers_done(). */
int layers_open(const char *storage, const char *jail, const char *home,
                const struct layer_masks *masks, struct layers *ret_layers, struct brig_error *err);
void layers_done(struct layers *layers);

/* The layer with a root that contains an absolute path without links, the innermost one; *ret_path gets the path
 * relative to the root, "" for the root. NULL if there is none. */
const struct layer *layers_find(const struct layers *layers, const char *path,
                                const char **ret_path);

/* Whether a path relative to the root is hidden by a mask, or is in a hidden directory. Compares text. */
bool layer_hides(const struct layer *layer, const char *path);

/* Removes a reviewed directory from the storage, with everything that is recorded about it: the next directory that is
 * reviewed may get its number. With the lock of the record, and unmounted. */
int layer_remove(const struct layer *layer, struct brig_error *err);

/* Takes the lock of a record: no other command rewrites it or an upper directory, and no run starts. Waits for
 * another command. Returns an fd; close it to release the lock. */
int record_lock(int record, struct brig_error *err);
/* The jail of a record, by the name of the record's directory; and the option that names it in a command. */
void record_jail(int record, char ret_jail[LAYER_JAIL_MAX]);
struct jails_option record_option(int record);

/* Ends the holder of a layer, which keeps it mounted for a while after the last run. BRIG_E_STATE: there is a run. */
int layer_unmount(const struct layer *layer, struct brig_error *err);

/* Takes the lock, unmounts the layers, so that the upper directories can be rewritten, completes their bases, makes each
 * layer one upper directory, and removes from it what changes nothing. Fails with BRIG_E_STATE if a run is active. Returns an fd. */
int layers_lock(struct layers *layers, struct brig_error *err);

/* ---- for runs ---- */

/* Opens NAME.record, and creates it. */
int record_open(const char *storage, const char *jail, struct brig_error *err);

/* Finds the number of the reviewed directory with this root, or allocates it: the name of its files in
 * NAME.review, which is created. A directory that was moved to this path keeps its number. Call it with the lock of
 * the record. */
int layer_number(const char *storage, const char *jail, const char *root,
                 char ret_name[LAYER_NAME_MAX], struct brig_error *err);

/* A run of the layer begins, with the lock of the record: from now on the layer is that of the directory that is there now.
 * If it has changes that were made for another one it stays `replaced` for as long as anything is left in it. Fails with
 * BRIG_E_STATE if a run has the other one. */
int layer_adopt(struct layer *layer, struct brig_error *err);

/* Opens one layer of a run: LAYER_HOME or a number. For base_begin() and base_end() only: has no masks, and its upper
 * directory may not exist yet. Release with layer_done(). */
int layer_open(const char *storage, const char *jail, const char *name, const char *root,
               struct layer *ret_layer, struct brig_error *err);
void layer_done(struct layer *layer);
