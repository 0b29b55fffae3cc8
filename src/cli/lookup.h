/* SPDX-License-Identifier: MIT */
/* What is behind a path in a jail that is not made: the parts of `brig why` that ask the filesystem. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/path.h"
#include "cli/places.h"

struct why;

enum lookup_kind {
    LOOKUP_FOUND,   /* something of the host's */
    LOOKUP_MISSING, /* nothing */
    LOOKUP_HIDDEN,  /* by a mask of the home directory */
    LOOKUP_DELETED, /* by the jail itself, earlier */
    LOOKUP_UNKNOWN, /* the jail's own affair */
};

struct lookup {
    enum lookup_kind kind;
    const struct place *place;
    char host[PATH_LENGTH_MAX + 1]; /* FOUND, and where it would be if MISSING */
    bool changed;                   /* FOUND in the jail's changes */
    struct stat info;               /* FOUND */
    int mask;                       /* HIDDEN: index in the masks */
};

/* What is behind a path that has no links in it but perhaps the last name. */
void lookup_node(const struct why *why, const char *path, struct lookup *node);

/* Goes along a path name by name, following the links that the jail would follow; done is where that
 * leads. What is left of the path behind something hidden is put behind it. */
void lookup_walk(const struct why *why, const char *path, char done[PATH_LENGTH_MAX + 1],
                 struct lookup *node);

/* Whether owner and mode of what was found let the jail do something: R_OK, W_OK, X_OK. */
bool lookup_may(const struct why *why, const struct lookup *node, int how);

/* What the host shows only to groups of the caller's is not shown to the jail: it has no such groups,
 * or what is open only to them is hidden. */
bool lookup_by_group_only(const struct why *why, const struct lookup *node);

/* Whether something can be made at a path where nothing is: by the nearest directory above it. Where
 * the place itself is yet to be made, it will be the jail's. */
bool lookup_can_be_made(const struct why *why, const char *path, const struct place *place);
