/* SPDX-License-Identifier: MIT */
/* For whom brig acts: the caller, or the user behind sudo. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <brig/brig.h>

#define IDENTITY_LINE_MAX 1024

/* Strings point into `line` or are constant. */
struct identity {
    uid_t host_uid; /* (uid_t)-1: let the engine choose */
    gid_t host_gid;
    const char *name;      /* inside */
    const char *home;      /* inside */
    const char *shell;     /* absolute, or NULL if there is none to speak of */
    const char *host_home; /* the real home directory, or NULL */
    char line[IDENTITY_LINE_MAX];
    char home_text[IDENTITY_LINE_MAX];
};

/* One line of a passwd file, its parts NUL-terminated inside the line. */
struct identity_entry {
    uid_t uid;
    gid_t gid;
    char *name;
    char *home;
    char *shell;
};

/* Finds uid in the text of a passwd file and copies its line to `line` (of IDENTITY_LINE_MAX
 * bytes), which the entry then points into. Pure. */
bool identity_find_entry(const char *text, size_t length, uid_t uid, char *line,
                         struct identity_entry *ret_entry);

/* Finds out by effective uid and, for root, SUDO_UID. /etc/passwd is read directly; the name
 * service is asked only about a user who is not there. */
void identity_find(struct identity *ret_identity);

/* Tells the policy, and sets SHELL. */
int identity_apply(const struct identity *identity, struct brig_policy *policy,
                   struct brig_error *err);
