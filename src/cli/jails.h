/* SPDX-License-Identifier: MIT */
/* What the verbs that deal with jails share: for whom, where, and which one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "jail/attach/attach.h"

struct app;

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

/* Whether there is a jail of this name, for a verb: 1, or fails as above. */
int jails_check(const struct jails_place *place, const char *verb, const char *name,
                struct brig_error *err);

/* Takes `-j NAME`, `-jNAME`, `--jail NAME` or `--jail=NAME` at argv[*at] and moves *at behind
 * it; false if something else is there. */
bool jails_take_option(int argc, char **argv, int *at, const char **ret_jail);

/* For a verb that takes -j NAME and paths: the index of the first path, or argc. Fails for another
 * option, unless "--" stands before it. */
int jails_parse_words(const struct app *app, int argc, char **argv, const char **ret_jail,
                      struct brig_error *err);

/* Calls back for each jail with a NAME.PART in the storage, in the order of their names, or for
 * one jail, which must exist; `verb` is for the message otherwise. A negative result ends it. */
typedef int (*jails_part_visit)(void *context, int storage, const char *jail,
                                struct brig_error *err);
int jails_each_part(const struct jails_place *place, const char *verb, const char *jail,
                    const char *part, jails_part_visit visit, void *context,
                    struct brig_error *err);

/* Opens NAME.PART in the storage directory, or makes it; -1 if that is not possible. */
#define JAILS_GIT_PART ".git"
int jails_open_part(int storage, const char *jail, const char *part, bool make);

/* Lets go of a jail's mounts and of its /tmp, or with NULL of all jails'. What is still in use
 * stays, and is said to be. */
int jails_unmount(const char *storage, const char *name, const struct identity *identity,
                  struct brig_error *err);

/* The mode remembered in NAME.jail: "casual" and so on, or "-" if there is none. */
void jails_mode(const char *storage, const char *name, char *buffer, size_t size);

/* ---- Runs that go on ---- */

/* Every run of ours in a jail. */
#define RUNS_FOUND_MAX 64

struct runs {
    struct attach items[RUNS_FOUND_MAX]; /* the newest first */
    size_t count;
};
void runs_done(struct runs *runs);

/* Those of a jail: as its holder knows them, or where none has it, as in sealed runs, all that have
 * its name. Only runs whose supervisor has our uid. */
int runs_find(const struct jails_place *place, const char *jail, struct runs *ret_runs,
              struct brig_error *err);

/* ---- The file NAME.jail ---- */

/* Remembers that paths of the home directory, relative to it, are hidden in a jail, or are not. The
 * file is made if it is missing, and replaced in one step. With the rights of the user. */
int jail_file_set_masks(const char *storage, const char *name, const char *const *paths,
                        size_t count, bool unmask, struct brig_error *err);

/* Appends the text with a last line "mask VALUE" or "unmask VALUE". Lines that say one of these
 * of the same value are left out, and all others are as they were. */
void jail_text_set_mask(struct str *out, const char *text, size_t length, const char *value,
                        bool unmask);
