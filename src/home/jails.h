/* SPDX-License-Identifier: MIT */
/* Lists and removes the jails in a storage directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "home/home.h"

struct jail_info {
    char name[HOME_NAME_MAX + 1];
    uint64_t changes; /* bytes on disk of NAME.changes and NAME.review, 0 if there is none */
    uint64_t home;    /* of NAME.home */
    struct home_state state;
};

/* Calls `visit` for each jail, sorted by name; a negative result ends the loop. */
typedef int (*jails_visit)(void *context, const struct jail_info *jail, struct brig_error *err);
int jails_each(const char *storage, uid_t uid, bool sizes, jails_visit visit, void *context,
               struct brig_error *err);

/* One jail: 1, or 0 if there is none of that name. */
int jails_find(const char *storage, const char *name, uid_t uid, struct jail_info *ret_jail,
               struct brig_error *err);

/* home_ask() and home_stop() for all holders of a jail: that of its home, and those of its reviewed
 * directories. */
int jails_ask(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
              struct brig_error *err);
int jails_stop(const char *storage, const char *name, uid_t uid, struct home_state *ret_state,
               struct brig_error *err);

/* Unmounts the jail's mounts, by ending its holder. Fails with BRIG_E_STATE while there are runs in it. */
int jails_unuse(const char *storage, const char *name, uid_t uid, struct brig_error *err);

/* Deletes a jail with all its files. Targets of symbolic links are emptied, the links deleted. Fails with
 * BRIG_E_STATE while there are runs in it. */
int jails_remove(const char *storage, const char *name, uid_t uid, struct brig_error *err);

/* Refuses an invalid name of a jail: it must be one component of a path. */
int jails_check_name(const char *name, struct brig_error *err);
