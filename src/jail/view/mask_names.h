/* SPDX-License-Identifier: MIT */
/* The names under which a host file would be visible in a jail: its path, its paths inside the
 * grants, and its paths in other mounts of the same filesystem. A masked file is hidden under all
 * of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/mountinfo.h"

struct mask_names_grant {
    const char *source; /* borrowed from the policy */
    char *real;         /* without symbolic links; NULL if the same */
};

struct mask_names {
    struct brig_policy *policy;
    const char *home; /* as spelt; borrowed */
    char *real_home;  /* without symbolic links */
    bool home_shows;  /* the jail sees the host's home directly, not one with masks applied */
    struct mask_names_grant *grants;
    size_t grant_count;
    struct mountinfo_table mounts;
    bool aliases; /* the home is visible in several places, or has mounts in it */
};

/* Records the policy's current grants. Release with mask_names_done(). */
int mask_names_init(struct mask_names *names, struct brig_policy *policy, const char *home,
                    struct brig_error *err);
void mask_names_done(struct mask_names *names);

/* Visits the other names of an absolute path without links; the visitor returns 0 to continue. */
typedef int (*mask_names_visit)(void *context, const char *path, struct brig_error *err);
int mask_names_each_alias(const struct mask_names *names, const char *path, mask_names_visit visit,
                          void *context, struct brig_error *err);

/* Adds masks for an absolute host path, at every path where it would be visible. */
int mask_names_hide(const struct mask_names *names, const char *path, const char *origin,
                    struct brig_error *err);

/* The same for a file that no rule may show: in every view, also in the home, and after all rules
 * so far. The path must have no symbolic links. */
int mask_names_hide_secret(const struct mask_names *names, const char *path, const char *origin,
                           struct brig_error *err);

/* Adds the other names of the paths that the masks of an origin hide. In a view with a root built
 * by brig, removes the masks of that origin that are not inside a grant. */
int mask_names_keep_masks(const struct mask_names *names, const char *origin,
                          struct brig_error *err);

/* Like mask_names_hide() for a whole home that is visible in other mounts, unless one of these
 * mounts is granted. */
int mask_names_hide_home(const struct mask_names *names, struct brig_error *err);
