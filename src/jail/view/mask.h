/* SPDX-License-Identifier: MIT */
/* The mask resolver: turns rules about a home directory into the paths to hide. Rules have
 * wildcards and exceptions, and symbolic links lead to further paths. The plan of a run, the holder
 * of a jail's home, and `brig explain` all use it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/path.h"

/* A home directory: its descriptor, its path as spelt, and its path without symbolic links. A
 * process that has the home as a detached mount cannot get the path from the kernel; the two paths
 * then only say which absolute links lead into the home. */
struct mask_home {
    int fd;
    const char *path;
    const char *real; /* may be NULL */
};

/* Paths relative to the home directory, borrowed. */
struct mask_rules {
    const char **hidden; /* '*', '?' and '[…]' match existing names */
    size_t hidden_count;
    const char **shown; /* exceptions, below a hidden path */
    size_t shown_count;
};

/* A path to hide. */
struct mask_path {
    const char *path; /* relative to the home directory, or absolute if outside */
    size_t rule;      /* index in hidden */
    bool outside;     /* the path is not in the home directory */
    bool linked;      /* reached through symbolic links from the rule's path */
};

struct mask_watch;

struct mask_visitor {
    /* Returns 0 to continue; a negative code ends the walk. */
    int (*path)(void *context, const struct mask_path *path, struct brig_error *err);
    void *context;
    /* If open, every directory that the result depends on is added to it. May be NULL. */
    struct mask_watch *watch;
};

/* Calls visitor->path for every path that the rules hide now. A rule without wildcards is reported
 * even if its path does not exist. Each path is reported as spelt and, if different, with its
 * symbolic links resolved. */
int mask_each(const struct mask_home *home, const struct mask_rules *rules,
              const struct mask_visitor *visitor, struct brig_error *err);

/* Returns the index in `hidden` of the rule that hides a path relative to the home directory, or a
 * directory above it, or -1. Compares text only. */
int mask_find(const struct mask_rules *rules, const char *path);

/* Returns whether the path is relative and cannot lead out of its directory. */
bool mask_is_path(const char *path);

enum mask_link {
    MASK_LINK_NONE,    /* no symbolic link in the path */
    MASK_LINK_INSIDE,  /* to another path in the home directory, returned relative to it */
    MASK_LINK_OUTSIDE, /* to a path outside, returned absolute and without links */
    MASK_LINK_NOWHERE, /* to no file, or to a directory above the home */
};

/* Follows the symbolic links in a path relative to the home directory, with `last` also in its last
 * name. The part of the path that does not exist is kept as spelt, so that it is hidden before it
 * is created. */
enum mask_link mask_follow_links(const struct mask_home *home, const char *path, bool last,
                                 char ret_path[PATH_LENGTH_MAX + 1]);
