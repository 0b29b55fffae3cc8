/* SPDX-License-Identifier: MIT */
/* Directories of brig, and the targets of links in them: never visible in a jail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/path.h"

struct mask_names;
struct settings;

/* Zero-initialise; release with own_places_done(). */
struct own_places {
    const char *home;
    char real_home[PATH_LENGTH_MAX + 1];
    char **paths; /* absolute; paths in the home directory begin with `home` */
    size_t count;
    bool failed; /* a path could not be added: it would be visible */
};
void own_places_done(struct own_places *own);

/* Finds them, with the ids of the user. `owner` is the user for whom brig acts. */
int own_places_find(const struct settings *settings, const char *home, uid_t owner,
                    struct own_places *own, struct brig_error *err);

/* Covers each with an empty directory that cannot be written to: below the home they are hidden already, but could
 * be created again. Fails if one is granted, because a mask does not hide a directory that is granted by name at
 * another path. */
int own_places_hide(const struct own_places *own, const struct mask_names *names,
                    struct brig_error *err);
