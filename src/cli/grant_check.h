/* SPDX-License-Identifier: MIT */
/* Whether what is granted is what its name says. */
#pragma once

#include <brig/brig.h>

struct masks;
struct settings;
struct settings_secret;
struct path_aliases;

/* Refuses to grant something masked, or the home itself, that only a symbolic link leads to, which a
 * program in a jail may have put there; and a masked working directory that nobody has named. */
int grant_check(const struct settings *settings, const struct masks *masks,
                const struct path_aliases *path_aliases, struct brig_error *err);

/* Refuses to grant what is in a directory of brig's own, given without links. */
int grant_check_own(const struct path_aliases *path_aliases, const char *directory,
                    struct brig_error *err);

/* Refuses to grant exactly a file that a credential comes from, by whatever name. */
int grant_check_secret(const struct path_aliases *path_aliases,
                       const struct settings_secret *secret, struct brig_error *err);
