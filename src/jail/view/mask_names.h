/* SPDX-License-Identifier: MIT */
/* Under which names a file of the host's would be seen in a jail: its own, those it has inside of what
 * is granted, and those that other mounts of the same filesystem give it. What is to be hidden is
 * hidden under all of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/mountinfo.h"

struct mask_names_grant {
    const char *source; /* borrowed from the policy */
    char *real;         /* NULL if that is the same */
};

struct mask_names {
    struct brig_policy *policy;
    const char *home; /* as it is spelt; borrowed */
    char *real_home;  /* and without links */
    bool home_shows; /* the jail has the host's own home, and none that has things hidden already */
    struct mask_names_grant *grants;
    size_t grant_count;
    struct mountinfo_table mounts;
    bool aliases; /* the home can be seen at more than one place, or something is mounted in it */
};

/* Looks at what the policy grants now. Release with mask_names_done. */
int mask_names_init(struct mask_names *names, struct brig_policy *policy, const char *home,
                    struct brig_error *err);
void mask_names_done(struct mask_names *names);

/* Adds masks for an absolute path of the host's, wherever it would show. */
int mask_names_hide(const struct mask_names *names, const char *path, const char *origin,
                    struct brig_error *err);

/* The same for a file that no rule may show: in every view, in the home too, and after all rules so far. The path
 * is without links. */
int mask_names_hide_secret(const struct mask_names *names, const char *path, const char *origin,
                           struct brig_error *err);

/* Adds the other names of what the masks of an origin hide. Where the jail's root is made for it, removes
 * the masks of that origin that no grant shows. */
int mask_names_keep_masks(const struct mask_names *names, const char *origin,
                          struct brig_error *err);

/* As mask_names_hide() for a whole home that other mounts show, unless one of these is what is granted. */
int mask_names_hide_home(const struct mask_names *names, struct brig_error *err);
