/* SPDX-License-Identifier: MIT */
/* What the verbs that deal with jails share: for whom, where, and which one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/path.h"
#include "cli/identity.h"

struct jails_place {
    struct identity identity;
    uid_t uid;
    uid_t stranger; /* the id of its own that root gives a jail; (uid_t)-1 if we are not root */
    char storage[PATH_LENGTH_MAX + 1];
};

/* Finds out whose jails are meant and where they are kept. */
int jails_place_find(struct jails_place *ret_place, struct brig_error *err);
/* Root that acts for a user becomes that user for good, before it touches what the user, or a jail,
 * could have changed. */
int jails_become_user(struct jails_place *place, struct brig_error *err);

/* Fails because there is no jail of this name, which was given to a verb; with the nearest one, and
 * BRIG_E_INVALID. */
int jails_fail_unknown(const struct jails_place *place, const char *verb, const char *name,
                       struct brig_error *err);

/* Takes `-j NAME`, `-jNAME`, `--jail NAME` or `--jail=NAME` at argv[*at] and moves *at behind it; false if something
 * else is there. */
bool jails_take_option(int argc, char **argv, int *at, const char **ret_jail);

/* Calls back for each jail with a NAME.PART in the storage, in the order of their names, or for one jail, which must exist;
 * `verb` is for the message otherwise. A negative result ends it. */
typedef int (*jails_part_visit)(void *context, int storage, const char *jail,
                                struct brig_error *err);
int jails_each_part(const struct jails_place *place, const char *verb, const char *jail,
                    const char *part, jails_part_visit visit, void *context,
                    struct brig_error *err);

/* Lets go of a jail's mounts and of its /tmp, or with NULL of all jails'. What is still in use stays,
 * and is said to be. */
int jails_unmount(const char *storage, const char *name, const struct identity *identity,
                  struct brig_error *err);

/* The mode remembered in NAME.jail: "casual" and so on, or "-" if there is none. */
void jails_mode(const char *storage, const char *name, char *buffer, size_t size);
