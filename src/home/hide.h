/* SPDX-License-Identifier: MIT */
/* What of a home directory is hidden in a jail: rules into the places that they come to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "home/links.h"

struct names;

/* Paths relative to the home directory. */
struct hide_rules {
    const char *const *hidden; /* '*', '?' and '[…]' stand for what there is now */
    size_t hidden_count;
    const char *const *shown; /* not hidden all the same, below something that is */
    size_t shown_count;
    const char *const *own; /* hidden for good, and never shown */
    size_t own_count;
    const struct names *only; /* rules for other names than these are passed over; NULL: none */
};

/* Something to hide. */
struct hide_place {
    const char *path; /* relative to the home directory, or absolute, if it is not in it */
    size_t rule;      /* of hidden */
    bool outside;     /* it is not in it */
    bool linked;      /* the rule leads here by symbolic links */
    bool missing;     /* not even its first name exists; if not, it may or may not */
};

/* 0 to go on; a code ends it. */
typedef int (*hide_visit)(void *context, const struct hide_place *place, struct brig_error *err);

/* Tells all that is to be hidden: each path, and what it really is where symbolic links lead to it or
 * are it. Names without wildcards are told whether they exist or not. */
int hide_each(const struct links_home *home, const struct hide_rules *rules, hide_visit visit,
              void *context, struct brig_error *err);

/* Whether it is a relative path that cannot lead out. */
bool hide_is_path(const char *path);
