/* SPDX-License-Identifier: MIT */
/* Walks the upper directory of a layer, beside the user's directory: the only code that knows how
 * overlayfs and fuse-overlayfs mark deleted files and replaced directories.
 *
 * A jail has written the upper directory. No link is followed, nothing but directories is opened,
 * and depth and length of paths are bounded. A directory without permissions for its owner gets
 * them while it is read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

struct layer;

struct upper_entry {
    const char *path; /* relative to the root; valid during the call */
    const char *name; /* its last component */
    /* The directories that contain it; -1: none. If the layer has several upper directories, the
     * topmost one that has the name. */
    int upper_dir, lower_dir;
    struct stat upper, lower; /* st_mode 0: there is no file */
    bool whiteout;            /* the jail has deleted it: `upper` is the mark */
    bool unseen;              /* it is in a directory that the jail has deleted or replaced */
    bool replaced;            /* the same, also if the jail has a file of this name there */
    int64_t deleted_ns;       /* if it was deleted: not later than this; 0: unknown */
    const char *unreadable;   /* why a directory is not walked, or NULL */
};

/* Results of a visit besides 0 and codes: end the walk; do not enter a directory; enter one that the jail has
 * deleted, or that has become something else, in which everything is `unseen`. */
enum { UPPER_STOP = 1, UPPER_SKIP = 2, UPPER_ENTER = 3 };

/* Called in the order of path_compare(): a directory before what is in it. */
typedef int (*upper_visit)(void *context, const struct upper_entry *entry, struct brig_error *err);

/* With `lower`, looks at the user's files too; those in a directory that the jail has replaced are entries. Returns 0,
 * UPPER_STOP or a negative code. */
int upper_walk(const struct layer *layer, bool lower, upper_visit visit, void *context,
               struct brig_error *err);

/* fuse-overlayfs marks the deletion of NAME with a file .wh.NAME if it cannot create devices. */
#define UPPER_FUSE_PREFIX ".wh."

/* The marks with which an upper directory hides the user's; in journals. */
enum upper_opaque {
    UPPER_OPAQUE_USER = 1 << 0,    /* user.overlay.opaque */
    UPPER_OPAQUE_TRUSTED = 1 << 1, /* trusted.overlay.opaque */
    UPPER_OPAQUE_FUSE = 1 << 2,    /* user.fuseoverlayfs.opaque */
    UPPER_OPAQUE_FILE = 1 << 3,    /* a file, also of fuse-overlayfs */
};
/* The marks of a directory, an fd (O_PATH is enough); 0: it is not opaque. The marks of fuse-overlayfs count only in its
 * layers: to overlayfs they are ordinary attributes and names, which a jail may use. */
unsigned upper_opaque_marks(const struct layer *layer, int directory);
/* Sets or removes marks. Returns 0 or -errno. */
int upper_set_opaque(int directory, unsigned marks, bool set);

/* Whether the upper directories hide the user's directory of this path, which is a directory in them. */
bool upper_hides_lower(const struct layer *layer, const char *path);
