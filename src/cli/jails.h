/* SPDX-License-Identifier: MIT */
/* Shared by the verbs that manage jails: whose jails, in which storage, and which of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/path.h"
#include "base/str.h"
#include "changes/layer/jail_option.h"
#include "cli/identity.h"
#include "home/home.h"
#include "jail/attach/attach.h"

struct app;

struct jails_place {
    struct identity identity;
    uid_t uid;
    uid_t stranger; /* the isolated uid that root gives a jail; (uid_t)-1 unless root */
    char storage[PATH_LENGTH_MAX + 1];
    char jail[HOME_NAME_MAX + 1];      /* the one of this directory, without -j */
    char project[PATH_LENGTH_MAX + 1]; /* the project it belongs to; "": none */
};

/* Finds the user whose jails are meant and the storage directory. */
int jails_place_find(struct jails_place *ret_place, struct brig_error *err);
/* If root acts for a user, changes permanently to the ids of that user, before it touches files
 * that the user or a jail could have changed. */
int jails_become_user(struct jails_place *place, struct brig_error *err);

/* Fails with BRIG_E_INVALID because the jail that a verb was given does not exist; suggests the
 * nearest name. */
int jails_fail_unknown(const struct jails_place *place, const char *verb, const char *name,
                       struct brig_error *err);

/* Returns 1 if the jail exists, else fails as jails_fail_unknown() does. */
int jails_check(const struct jails_place *place, const char *verb, const char *name,
                struct brig_error *err);

/* Parses `-j NAME`, `-jNAME`, `--jail NAME` or `--jail=NAME` at argv[*at] and advances *at past it;
 * false if argv[*at] is something else. */
bool jails_take_option(int argc, char **argv, int *at, const char **ret_jail);

/* An option of a verb: a flag, or with a value as `--name VALUE` or `--name=VALUE`. */
struct jails_word {
    const char *name;
    bool *flag;
    const char **value; /* NULL: it is a flag */
};

/* Parses the arguments of a verb: -j NAME and `options`, which end with a NULL name, then paths.
 * Returns the index of the first path, or argc. Fails for any other option before "--". */
int jails_parse_words(const struct app *app, int argc, char **argv,
                      const struct jails_word *options, const char **ret_jail,
                      struct brig_error *err);
/* The two halves, for a verb with other words between them: the index after the options, and of the
 * first path. */
int jails_parse_options(const struct app *app, int argc, char **argv,
                        const struct jails_word *options, const char **ret_jail,
                        struct brig_error *err);
int jails_parse_paths(const struct app *app, int argc, char **argv, int at, struct brig_error *err);

/* Calls `visit` for each jail that has NAME.PART in the storage, sorted by name, or for one jail,
 * which must exist; `verb` is for the error message. A negative result ends the iteration. */
typedef int (*jails_part_visit)(void *context, int storage, const char *jail,
                                struct brig_error *err);
int jails_each_part(const struct jails_place *place, const char *verb, const char *jail,
                    const char *part, jails_part_visit visit, void *context,
                    struct brig_error *err);

/* Opens NAME.PART in the storage directory, or creates it; -1 on failure. */
int jails_open_part(int storage, const char *jail, const char *part, bool make);
/* The directory for the private git directories of a jail, by the path of the storage; -1 if there is none. */
int jails_open_git(const char *storage, const char *jail);

/* Unmounts the home and /tmp of a jail, or with NULL of all jails. Mounts that are in use stay and
 * are reported. */
int jails_unmount(const char *storage, const char *name, const struct identity *identity,
                  struct brig_error *err);

/* Writes the mode recorded in NAME.jail, such as "casual", or "-" if there is none. */
void jails_mode(const char *storage, const char *name, char *buffer, size_t size);

/* Fails if the jail has something that exists nowhere else and that the user has not decided about. In cmd_rm.c. */
int jails_refuse_loss(const struct jails_place *place, const char *name, struct brig_error *err);

/* Deletes a jail. Without `force` it fails if the jail has something that exists nowhere else and that the user
 * has not decided about. In cmd_rm.c. */
int jails_delete(const struct jails_place *place, const char *name, bool force,
                 struct brig_error *err);

/* ---- Running jails ---- */

/* All runs of this user in a jail. */
#define RUNS_FOUND_MAX 64

struct runs {
    struct attach items[RUNS_FOUND_MAX]; /* newest first */
    size_t count;
};
void runs_done(struct runs *runs);

/* Finds the runs of a jail: the runs that its holder knows or, without a holder, as for sealed
 * runs, all runs with the jail's name. Only runs whose supervisor has our uid count. */
int runs_find(const struct jails_place *place, const char *jail, struct runs *ret_runs,
              struct brig_error *err);

/* ---- The file NAME.jail ---- */

/* Records in NAME.jail that paths, relative to the home directory, are masked or unmasked. The file
 * is created if it is missing, and replaced atomically. Uses the ids of the user. */
int jail_file_set_masks(const char *storage, const char *name, const char *const *paths,
                        size_t count, bool unmask, struct brig_error *err);

/* Records in NAME.jail, which must exist, a line "allow RULE" or "deny RULE", and "net ask" if no
 * line chooses a network. Lines with the opposite decision about the same rule, or about all ports
 * of its name, are dropped. Uses the ids of the user. */
int jail_file_add_rule(const char *storage, const char *name, const char *line,
                       struct brig_error *err);

/* Appends the text with the line, as above. Pure. */
void jail_text_add_rule(struct str *out, const char *text, size_t length, const char *line);

/* Appends the text with a final line "mask VALUE" or "unmask VALUE". Earlier mask and unmask lines
 * with the same value are dropped; all other lines are unchanged. */
void jail_text_set_mask(struct str *out, const char *text, size_t length, const char *value,
                        bool unmask);
