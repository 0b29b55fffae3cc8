/* SPDX-License-Identifier: MIT */
/* Where a path below a home directory really is, if symbolic links are on the way. */
#pragma once

#include <stdbool.h>

#define LINKS_PATH_MAX 4096

/* A home directory: opened, and as it is spelt and really called. It may be known by its fd alone
 * to whoever looks (`path` then still tells which absolute links lead into it). */
struct links_home {
    int fd;
    const char *path;
    const char *real; /* the same, without links; may be NULL */
    bool ignore;      /* links are somebody else's affair */
};

enum links_found {
    LINKS_NONE,    /* no link is on the way */
    LINKS_INSIDE,  /* it leads to another path in the home directory, relative to that */
    LINKS_OUTSIDE, /* or elsewhere: an absolute path without links */
    LINKS_NOWHERE, /* to nothing that could be found, or to what holds the home directory */
};

/* Whether there is no link on the way, nor at its end: one question for most paths. */
bool links_are_none(const struct links_home *home, const char *path);
/* Opens a directory that no link leads to; else -1. */
int links_open_plain(const struct links_home *home, const char *path);
/* Follows the links on the way to `path`, relative to the home directory, and with `last` also one
 * at its very end. What is missing at the end is kept as it is spelt, so that it can be hidden before
 * it is there. */
enum links_found links_follow(const struct links_home *home, const char *path, bool last,
                              char ret_path[LINKS_PATH_MAX]);
