/* SPDX-License-Identifier: MIT */
/* For whom brig acts: the caller, or the user behind sudo; where, and what may be granted. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/users.h"

struct masks;
struct mask_names;
struct policy_grant;
struct settings;
struct settings_secret;

/* Strings point into `line` or are constant. */
struct identity {
    uid_t host_uid; /* (uid_t)-1: let the engine choose */
    gid_t host_gid;
    const char *name;      /* inside */
    const char *home;      /* inside */
    const char *shell;     /* absolute, or NULL if the user cannot log in */
    const char *host_home; /* the real home directory, or NULL */
    char line[USERS_LINE_MAX];
    char home_text[USERS_LINE_MAX];
};

/* Finds out by effective uid and, for root, SUDO_UID. */
void identity_find(struct identity *ret_identity);

/* The uid of the user for whom brig acts. */
uid_t identity_uid(const struct identity *identity);

/* Root that acts for a user becomes that user for good; 0 or -errno. */
int identity_become(const struct identity *identity);

/* Tells the policy, and sets SHELL. */
int identity_apply(const struct identity *identity, struct brig_policy *policy,
                   struct brig_error *err);

/* Root that acts for a user touches files the user names with that user's rights only, from
 * identity_enter() to identity_leave(). Both do nothing otherwise and leave errno alone. */
void identity_enter(const struct identity *identity);
void identity_leave(const struct identity *identity);

/* Whether a path of the passwd file can be the home inside a jail, where it is mounted empty: many
 * system users have a home in which programs live. Pure. */
bool identity_can_use_home(const char *home);
/* Whether a shell of the passwd file is one; nologin and false are not. Pure. */
bool identity_can_use_shell(const char *shell);

/* Applies EXECUTOR_MEMORY_LIMIT_MB, EXECUTOR_CPU_LIMIT_PERCENT and SANDBOX_KILL_GRACE_MS as
 * defaults to the policy; a bad value is an error that names the variable. */
int variables_apply(struct brig_policy *policy, struct brig_error *err);

/* ---- The working directory: granted by default, but never by accident the whole home directory
 * ---- */

/* Of the rule that grants it. */
#define WORKDIR_ORIGIN "working directory"

/* Whether a directory is, or holds, the home directory of any user, or belongs to the system or
 * to everybody. */
bool workdir_is_precious(const char *path, const struct identity *identity);

/* Whether brig acts for root, and the directory, or one on the way to it, belongs to another
 * user. */
bool workdir_is_foreign(const char *path, const struct identity *identity);

/* Before the options: grants the working directory unless it is precious or foreign, which is then
 * said in *ret_held_back (it may still be asked for by an option). */
int workdir_grant(struct settings *settings, const struct identity *identity, bool *ret_held_back,
                  struct brig_error *err);

/* Notes that the working directory is granted although it belongs to another user. */
void workdir_tell(const struct settings *settings, const struct identity *identity);

/* After the options: where the command starts, unless --workdir said so. Fails if the working
 * directory was held back and no option has settled what becomes of it. */
int workdir_choose(struct settings *settings, const struct identity *identity, bool held_back,
                   struct brig_error *err);

/* ---- Whether what is granted is what its name says ---- */

/* Refuses to grant something masked, or the home itself, that only a symbolic link leads to,
 * which a program in a jail may have put there; and a masked working directory that no option
 * names. */
int grant_check(const struct settings *settings, const struct masks *masks,
                const struct mask_names *names, struct brig_error *err);

/* The part of a path below what a rule grants, NULL if it is not below it. Directories are compared by
 * identity: one may be granted by another name, through a link or a mount. */
const char *grant_rest(const struct policy_grant *grant, const char *path);

/* Refuses to grant what is in a directory of brig's own, given without links. */
int grant_check_own(const struct mask_names *names, const char *directory, struct brig_error *err);

/* Refuses to grant exactly a file that a credential comes from, by whatever name. */
int grant_check_secret(const struct mask_names *names, const struct settings_secret *secret,
                       struct brig_error *err);
