/* SPDX-License-Identifier: MIT */
/* The mask resolver: from rules about a home directory to the paths that they hide. Rules have wildcards
 * and exceptions, and symbolic links lead to further paths. The plan of a run, the holder of a jail's home,
 * and what explains them all ask here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/path.h"

/* A home directory: its descriptor, and its path as it is spelt and without links. A process that has it
 * as a detached mount cannot ask the kernel for the path; the two then only say which absolute links lead
 * into it. */
struct mask_home {
    int fd;
    const char *path;
    const char *real; /* may be NULL */
};

/* Paths relative to the home directory, borrowed. */
struct mask_rules {
    const char **hidden; /* '*', '?' and '[…]' stand for what exists */
    size_t hidden_count;
    const char **shown; /* exceptions, below something hidden */
    size_t shown_count;
};

/* A path to hide. */
struct mask_path {
    const char *path; /* relative to the home directory, or absolute if it is not in it */
    size_t rule;      /* index in hidden */
    bool outside;     /* it is not in the home */
    bool linked;      /* symbolic links lead here from the rule's own path */
};

struct mask_watch;

struct mask_visitor {
    /* 0 to go on; a code ends it. */
    int (*path)(void *context, const struct mask_path *path, struct brig_error *err);
    void *context;
    /* If this one is open, every directory that the result depends on is added to it. May be NULL. */
    struct mask_watch *watch;
};

/* Tells every path that the rules hide now, and those without wildcards whether they exist or not: each
 * as it is spelt, and where symbolic links lead from it. */
int mask_each(const struct mask_home *home, const struct mask_rules *rules,
              const struct mask_visitor *visitor, struct brig_error *err);

/* The rule that hides a path relative to the home directory, or a directory above it, as text: an index
 * in hidden, or -1. */
int mask_find(const struct mask_rules *rules, const char *path);

/* Whether it is a relative path that cannot lead out of its directory. */
bool mask_is_path(const char *path);

enum mask_link {
    MASK_LINK_NONE,    /* no link is on the way */
    MASK_LINK_INSIDE,  /* it leads to another path in the home directory, relative to that */
    MASK_LINK_OUTSIDE, /* or elsewhere: an absolute path without links */
    MASK_LINK_NOWHERE, /* to nothing that can be found, or to a directory above the home */
};

/* Follows the links on the way to a path relative to the home directory, and with `last` also one at its
 * very end. A missing rest of it stays as it is spelt, so that it is hidden before it exists. */
enum mask_link mask_follow_links(const struct mask_home *home, const char *path, bool last,
                                 char ret_path[PATH_LENGTH_MAX + 1]);
