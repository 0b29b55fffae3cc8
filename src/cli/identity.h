/* SPDX-License-Identifier: MIT */
/* For whom brig acts: the caller, or the user behind sudo. */
#pragma once

#include <sys/types.h>

#include <brig/brig.h>

#include "base/users.h"

/* Strings point into `line` or are constant. */
struct identity {
    uid_t host_uid; /* (uid_t)-1: let the engine choose */
    gid_t host_gid;
    const char *name;      /* inside */
    const char *home;      /* inside */
    const char *shell;     /* absolute, or NULL if there is none to speak of */
    const char *host_home; /* the real home directory, or NULL */
    char line[USERS_LINE_MAX];
    char home_text[USERS_LINE_MAX];
};

/* Finds out by effective uid and, for root, SUDO_UID. */
void identity_find(struct identity *ret_identity);

/* Tells the policy, and sets SHELL. */
int identity_apply(const struct identity *identity, struct brig_policy *policy,
                   struct brig_error *err);

/* Root that acts for a user touches files the user names with that user's rights only, from
 * identity_enter() to identity_leave(). Both do nothing for anybody else and leave errno alone. */
void identity_enter(const struct identity *identity);
void identity_leave(const struct identity *identity);

/* Whether a path of the passwd file can be the home inside a jail, where it is mounted empty: many
 * system users have a home in which programs live. Pure. */
bool identity_can_use_home(const char *home);
/* Whether a shell of the passwd file is one; nologin and false are not. Pure. */
bool identity_can_use_shell(const char *shell);
