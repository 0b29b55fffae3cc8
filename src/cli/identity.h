/* SPDX-License-Identifier: MIT */
/* The user for whom brig acts: the caller, or the user who called sudo. Also the working directory,
 * and which paths may be granted. */
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
    const char *name;      /* the user name inside */
    const char *home;      /* the home directory inside */
    const char *shell;     /* absolute, or NULL if the user has no login shell */
    const char *host_home; /* the real home directory, or NULL */
    char line[USERS_LINE_MAX];
    char home_text[USERS_LINE_MAX];
};

/* Determines the user from the effective uid and, for root, from SUDO_UID. */
void identity_find(struct identity *ret_identity);

/* The uid of the user for whom brig acts. */
uid_t identity_uid(const struct identity *identity);

/* If root acts for a user, changes permanently to the ids of that user; 0 or -errno. */
int identity_become(const struct identity *identity);

/* Sets the identity in the policy, and the variable SHELL. */
int identity_apply(const struct identity *identity, struct brig_policy *policy,
                   struct brig_error *err);

/* If root acts for a user, files that the user names are accessed with the ids of that user,
 * between identity_enter() and identity_leave(). Otherwise both do nothing. They preserve errno. */
void identity_enter(const struct identity *identity);
void identity_leave(const struct identity *identity);

/* Whether a home directory in the passwd file can be the home inside a jail, where an empty
 * directory is mounted on it: many system users have a home that contains programs. Pure. */
bool identity_can_use_home(const char *home);
/* Whether a shell in the passwd file is a login shell; nologin and false are not. Pure. */
bool identity_can_use_shell(const char *shell);

/* Applies EXECUTOR_MEMORY_LIMIT_MB, EXECUTOR_CPU_LIMIT_PERCENT and SANDBOX_KILL_GRACE_MS as
 * defaults to the policy. The error for a bad value names the variable. */
int variables_apply(struct brig_policy *policy, struct brig_error *err);

/* ---- The working directory: granted by default, unless it is or contains a home directory ---- */

/* The origin of the rule that grants the working directory. */
#define WORKDIR_ORIGIN "working directory"

/* Whether a directory is or contains the home directory of any user, or belongs to the system or to
 * all users. */
bool workdir_is_precious(const char *path, const struct identity *identity);

/* Whether brig acts for root, and the directory or one of its parents belongs to another user. */
bool workdir_is_foreign(const char *path, const struct identity *identity);

/* Grants the working directory. */
int workdir_grant(struct settings *settings, struct brig_error *err);

/* Prints a note if the working directory is granted although it belongs to another user. */
void workdir_tell(const struct settings *settings, const struct identity *identity);

/* Called after the options were applied: sets the directory in which the command starts, unless
 * --workdir did. Fails if the working directory is `precious` or foreign and no option decides about
 * it. */
int workdir_choose(struct settings *settings, const struct identity *identity, bool precious,
                   struct brig_error *err);

/* ---- Whether a grant is the file that its name suggests ---- */

/* Refuses to grant a masked path, or the home directory, if only a symbolic link leads to it,
 * because a program in a jail may have created the link. Refuses a masked working directory that no
 * option names. */
int grant_check(const struct settings *settings, const struct masks *masks,
                const struct mask_names *names, struct brig_error *err);

/* The part of a path below a grant, NULL if it is not below it. Directories are compared by device
 * and inode: a directory may be granted by another name, through a link or a mount. */
const char *grant_rest(const struct policy_grant *grant, const char *path);

/* Refuses to grant anything in `directory`, which belongs to brig and is given without links. */
int grant_check_own(const struct mask_names *names, const char *directory, struct brig_error *err);

/* Refuses to grant a file that contains a credential, under any of its names. */
int grant_check_secret(const struct mask_names *names, const struct settings_secret *secret,
                       struct brig_error *err);
