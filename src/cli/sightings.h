/* SPDX-License-Identifier: MIT */
/* Under which names a file of the host's would be seen in a jail: its own, those it has inside of what
 * is granted, and those that other mounts of the same filesystem give it. What is to be hidden is
 * hidden under all of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/mountinfo.h"

struct sightings_grant {
    const char *source; /* borrowed from the policy */
    char *real;         /* NULL if that is the same */
};

struct sightings {
    struct brig_policy *policy;
    const char *home; /* as it is spelt; borrowed */
    char *real_home;  /* and without links */
    bool home_shows; /* the jail has the host's own home, and none that has things hidden already */
    struct sightings_grant *grants;
    size_t grant_count;
    struct mountinfo_table mounts;
    bool twins; /* the home can be seen at more than one place, or something is mounted in it */
};

/* Looks at what the policy grants now. Release with sightings_done. */
int sightings_init(struct sightings *sightings, struct brig_policy *policy, const char *home,
                   struct brig_error *err);
void sightings_done(struct sightings *sightings);

/* Adds masks for an absolute path of the host's, wherever it would show. */
int sightings_hide(const struct sightings *sightings, const char *path, const char *origin,
                   struct brig_error *err);

/* The same for a file that no rule may show: in every view, in the home too, and after all rules so far. The path
 * is without links. */
int sightings_hide_secret(const struct sightings *sightings, const char *path, const char *origin,
                          struct brig_error *err);

/* Adds the other names of what the masks of an origin hide. Where the jail's root is made for it, removes
 * the masks of that origin that no grant shows. */
int sightings_keep_masks(const struct sightings *sightings, const char *origin,
                         struct brig_error *err);

/* As sightings_hide() for a whole home that other mounts show, unless one of these is what is granted. */
int sightings_hide_home(const struct sightings *sightings, struct brig_error *err);

/* The other names of an absolute path without links: 0 to go on. */
typedef int (*sightings_visit)(void *context, const char *path, struct brig_error *err);
int sightings_each_twin(const struct sightings *sightings, const char *path, sightings_visit visit,
                        void *context, struct brig_error *err);
