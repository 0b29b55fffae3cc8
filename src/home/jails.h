/* SPDX-License-Identifier: MIT */
/* The jails in a storage directory: which there are, and their end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "home/home.h"

struct jail_info {
    char name[HOME_NAME_MAX + 1];
    uint64_t changes; /* bytes on disk of NAME.changes, 0 if there is none */
    uint64_t home;    /* of NAME.home */
    struct home_state state;
};

/* Calls back for each jail, in the order of their names; a negative result ends it. */
typedef int (*jails_visit)(void *context, const struct jail_info *jail, struct brig_error *err);
int jails_each(const char *storage, uid_t uid, bool sizes, jails_visit visit, void *context,
               struct brig_error *err);

/* One jail: 1, or 0 if there is none of that name. */
int jails_find(const char *storage, const char *name, uid_t uid, struct jail_info *ret_jail,
               struct brig_error *err);

/* Lets go of its mounts. Fails with BRIG_E_STATE while somebody is in it. */
int jails_unuse(const char *storage, const char *name, uid_t uid, struct brig_error *err);

/* Removes all that a jail keeps. What its parts link to is emptied, the links themselves go. Fails
 * with BRIG_E_STATE while somebody is in it. */
int jails_remove(const char *storage, const char *name, uid_t uid, struct brig_error *err);

/* Refuses what cannot be the name of a jail: it is one component of a path. */
int jails_check_name(const char *name, struct brig_error *err);
