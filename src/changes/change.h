/* SPDX-License-Identifier: MIT */
/* Changes: the differences between a layer and the user's files, found by walking the upper directory beside
 * the root. The cost depends on the size of the upper directory, not of the root. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "changes/base.h"

struct layer;

enum change_kind {
    CHANGE_DELETED,  /* a file, or a directory with everything in it */
    CHANGE_TYPE,     /* a file has become a directory, a link …, or the reverse */
    CHANGE_MODIFIED, /* the contents of a file, or the target of a link */
    CHANGE_METADATA, /* only mode, owner or extended attributes */
    CHANGE_ADDED,
};

enum change_meta { /* what else has changed; also of a modified file */
    CHANGE_MODE = 1,
    CHANGE_OWNER = 2,
    CHANGE_XATTRS = 4,
};

#define CHANGE_DEPTH_MAX 1000 /* levels of directories; deeper ones are reported as one unreadable entry */

struct change {
    const struct layer *layer;
    enum change_kind kind;
    unsigned meta;             /* enum change_meta */
    const char *path;          /* relative to the root; valid during the call */
    const char *name;          /* its last component */
    int lower_dir, upper_dir;  /* the directories that contain it; lower_dir is -1 if that does not exist, and
                                  upper_dir if the whole directory was deleted or its upper directory is opaque */
    struct stat before, after; /* outside and in the jail; st_mode is 0 if there is no file. The owner in
                                  `after` is what it will be outside */
    uint64_t files, bytes;     /* of a deleted directory: regular files and links in it, and their sizes */
    const char *conflict;      /* why it cannot be applied without a decision, or NULL */
    const char *unreadable;    /* why its contents could not be read, or NULL */
    struct ident applied_upper; /* the state of the upper file, for base_update() */
    struct base_record base;   /* kind and lower are valid if `has_base` */
    bool has_base;
};

/* Called in the order of base_compare(); a directory before what is in it. A negative result ends the walk and
 * is returned. */
typedef int (*change_visit)(void *context, const struct change *change, struct brig_error *err);

struct change_options {
    const char *const *paths; /* only these and what is below them, relative to the root, sorted; NULL: all */
    size_t path_count;
    bool expand;  /* a deleted or added directory is followed by what is in it; otherwise deleted directories are
                     one change each. Added directories are always followed by what is in them. */
    bool quick;   /* for a count: do not read contents; a copied file with the same size and mtime has not changed */
};

/* Walks the changes of a layer. Hidden paths, sockets and the `.git` at the top of a reviewed directory are not
 * changes. An entry that was copied but is equal to the user's file is not a change either. */
int changes_walk(const struct layer *layer, const struct change_options *options, change_visit visit,
                 void *context, struct brig_error *err);

/* Counts, for a line at the end of a run. */
struct change_count {
    uint64_t deleted, type, modified, metadata, added; /* entries; directories count as one */
    uint64_t conflicts;
};
int changes_count(const struct layer *layer, struct change_count *ret_count, struct brig_error *err);

/* Opens the file of a change for reading, in the jail or outside: a regular file only, without following links.
 * -1 with errno. */
int change_open_after(const struct change *change);
int change_open_before(const struct change *change);
