/* SPDX-License-Identifier: MIT */
/* Checkpoints: the state of a directory of the user before a run that may write to it directly.
 *
 * In the record of the jail:
 *
 *     store.git              the contents: see store.h
 *     checkpoints/KEY/       of one root; KEY is a hash of its path
 *       manifest             the newest checkpoint: see base/manifest.h
 *     checkpoints/clones/    large ignored files, where the filesystem can share their blocks
 *     checkpoints/lock       held while a checkpoint is taken
 *     operations/ID/N.before the manifest of the run's Nth root, another link of the same file, while the run is active
 *     operations/ID/N.after  what the run has changed: see run_changes.h
 *
 * A file with the inode, size, mtime and ctime of the newest manifest is not read again. If nothing has changed, no
 * git is started and nothing is written: the run gets a link of the same manifest. Otherwise one git fast-import
 * stores what is new. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/str.h"
#include "git/git.h"

#define CHECKPOINT_LIMIT_BYTES ((uint64_t)16 << 20) /* the default of --checkpoint-size */
#define CHECKPOINT_HOLE_BYTES ((uint64_t)1 << 30)   /* in all files: git gets the zeros */
#define CHECKPOINT_ROOTS_MAX 64                     /* of one run */
#define CHECKPOINT_DIRECTORY "checkpoints"
#define CHECKPOINT_CLONES "clones"
#define CHECKPOINT_BEFORE ".before"
#define CHECKPOINT_AFTER ".after"

struct checkpoint_place {
    int record; /* NAME.record */
    const struct git *git;
    uint64_t limit_bytes; /* larger ignored files and directories are left out */
    uint64_t most_bytes; /* of files that were in no checkpoint, others are left out; 0: no limit */
    struct stat storage; /* the storage directory, which is never part of a checkpoint */
};

struct checkpoint_root {
    const char *path; /* absolute, without links */
    int dir;          /* the directory, or the one that contains a single file */
    const char *only; /* the name of a single file; NULL: a directory */
    bool with_git;    /* the command can write to the `.git` at the top */
    const struct str *
        masked; /* what is hidden from the command: paths relative to `dir`, each terminated by a NUL,
                                 in any order */
};

struct checkpoint_report {
    uint64_t files;      /* regular files and links in the checkpoint */
    uint64_t stored;     /* that were read */
    bool unchanged;      /* since the last checkpoint of this root */
    struct str left_out; /* what it does not contain, in words; empty: nothing */
};

/* Takes a checkpoint of the root for the Nth root of a run, which has the directory `run`. Without an error, everything but
 * report->left_out can be restored. If `run` is -1, only the contents are kept, for a
 * directory that the run does not write to itself. The caller releases report->left_out. */
int checkpoint_take(const struct checkpoint_place *place, const struct checkpoint_root *root,
                    int run, unsigned number, struct checkpoint_report *report,
                    struct brig_error *err);

#define CHECKPOINT_KEPT_DAYS 30 /* a run can be undone */
#define CHECKPOINT_COLLECT_HOURS 24
#define CHECKPOINT_COLLECT_BYTES ((uint64_t)256 << 20) /* a larger store is left to `brig gc` */

/* After a run: joins small packs of the store if there are many; and if the last time was long ago and the store is not
 * large, does what checkpoint_collect() does. Does nothing if another process uses the checkpoints. */
int checkpoint_tidy(int record, const struct git *git, struct brig_error *err);

/* Removes what no run can be restored from any more: what runs changed more than CHECKPOINT_KEPT_DAYS ago, and objects and
 * clones that neither the newest checkpoint of a root that exists nor a run in the log needs. */
int checkpoint_collect(int record, const struct git *git, struct brig_error *err);

/* Locks the checkpoints, the directory `all`: an fd, or a code. */
int checkpoint_lock(int all, bool wait, struct brig_error *err);

/* The name of a file of the Nth root in the run's directory. */
#define CHECKPOINT_NAME_MAX 24
void checkpoint_name(unsigned number, const char *part, char ret_name[CHECKPOINT_NAME_MAX]);
