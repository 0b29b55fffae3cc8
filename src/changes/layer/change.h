/* SPDX-License-Identifier: MIT */
/* Changes: the differences between a layer and the user's files, found by walking the upper
 * directory beside the root. The cost depends on the size of the upper directory, not of the
 * root. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "changes/layer/base.h"

struct layer;
struct startup_text;
struct str;

enum change_kind {
    CHANGE_DELETED,  /* a file, or a directory with everything in it */
    CHANGE_TYPE,     /* a file has become a directory, a link …, or the reverse */
    CHANGE_MODIFIED, /* the contents of a file, or the target of a link */
    CHANGE_METADATA, /* only mode, owner or extended attributes */
    CHANGE_ADDED,
};

/* What else has changed, also of a modified file. */
#define CHANGE_MODE 1U
#define CHANGE_OWNER 2U
#define CHANGE_XATTRS 4U /* extended attributes other than ACLs */
#define CHANGE_ACL 8U

struct change {
    const struct layer *layer;
    enum change_kind kind;
    unsigned meta;    /* CHANGE_MODE and so on */
    const char *path; /* relative to the root; valid during the call */
    const char *name; /* its last component */
    /* The directories that contain it. lower_dir is -1 if the user's directory does not exist;
     * upper_dir is -1 if the jail has deleted or replaced the whole directory. */
    int lower_dir, upper_dir;
    /* A copy of the jail's file that is to be examined in its place: a program in the jail may change that at any
     * time. NULL: there is none. */
    const char *copy_name;
    int copy_dir;
    /* The file outside and in the jail; st_mode is 0 if there is none. The owner of `after` is the
     * one it will have outside. */
    struct stat before, after;
    /* The user's file is a start-up file: what runs see of it, and what it is compared with. NULL: it is another
     * file. */
    const struct startup_text *startup;
    bool whiteout;      /* upper_dir has a mark for the deletion, with this state: */
    int64_t deleted_ns; /* a deletion: not later than this; 0: unknown */
    struct ident upper; /* of the file in the upper directory, for base_update() */
    uint64_t files,
        bytes; /* in a deleted directory: files that are not directories, and their sizes */
    const char *conflict;   /* why it cannot be applied without a decision, or NULL */
    const char *unreadable; /* why it cannot be examined or applied at all, or NULL */
    bool has_base;
    struct base_record base; /* if has_base; its path is not valid */
};

/* Called in the order of path_compare(); a directory before what is in it. Returns 0 to go on,
 * CHANGE_STOP or a negative code to end the walk. */
enum { CHANGE_STOP = 1 };
typedef int (*change_visit)(void *context, const struct change *change, struct brig_error *err);
/* A visit that ends the walk at the first change: changes_walk() returns CHANGE_STOP if there is one. */
int change_stop(void *context, const struct change *change, struct brig_error *err);

struct change_options {
    /* Only these paths and what is below them, relative to the root and sorted by path_compare();
     * no path is below another. NULL: all. */
    const char *const *paths;
    size_t path_count;
    /* A deleted directory is followed by everything in it, each a deletion with upper_dir -1.
     * Otherwise it is one change. */
    bool expand;
    /* So is a directory that became something else. */
    bool expand_replaced;
    /* Do not read contents: a file with the same size and mtime has not changed. */
    bool quick;
    /* Visit files of the jail that are no changes instead: copies that are equal to the user's files, which are those that
     * the jail has copied. */
    bool same;
};

/* Walks the changes of a layer. Hidden paths and the `.git` at the top of a reviewed
 * directory are not changes, nor are files that were copied but are equal to the user's. A deleted
 * directory in which something is hidden is not one change: only what is not hidden in it is
 * deleted. Returns 0, CHANGE_STOP or a negative code. */
int changes_walk(const struct layer *layer, const struct change_options *options,
                 change_visit visit, void *context, struct brig_error *err);

/* Removes from the upper directory what changes nothing: files that are equal to the user's files, if these are the ones
 * that the jail has copied, and deletions of files that the user has deleted, too. Later changes of the user would be hidden
 * by them. With the lock of the record, of a layer without a run, which it unmounts. */
int changes_tidy(const struct layer *layer, struct brig_error *err);

/* Open the regular file of a change for reading, in the jail or outside, without following a link,
 * the first also if the jail has removed the owner's permission. A start-up file of the user is opened as the jail
 * sees it. -1 with errno. */
int change_open_after(const struct change *change);
int change_open_before(const struct change *change);

/* Writes the contents of a start-up file of the jail with the user's hidden lines put back. Returns 1, 0 if that is
 * impossible, because the jail has changed their places, or a code. */
int change_restore_startup(const struct change *change, const struct str *jail,
                           struct str *ret_text, struct brig_error *err);
/* Opens a regular file of the user that is not a change, as the jail sees it: in a directory of the user, with this
 * path in the layer. -1 with errno. */
int change_open_user(const struct layer *layer, int dir, const char *name, const char *path);

/* Where the jail's file is, or its copy: a directory, or -1, and the name in it. */
struct change_place {
    int dir;
    const char *name;
};
struct change_place change_place_after(const struct change *change);
