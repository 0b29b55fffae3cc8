/* SPDX-License-Identifier: MIT */
/* Looks up uids and gids without libc's name service: its modules cannot be loaded into a static
 * program, and loading them takes longer than starting a jail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USERS_LINE_MAX 1024

/* One line of a passwd file; the fields are NUL-terminated inside the line. */
struct users_user {
    uid_t uid;
    gid_t gid;
    char *name;
    char *home;
    char *shell;
};

/* Finds uid in the text of a passwd file and copies the line to `line` (USERS_LINE_MAX bytes),
 * which the strings of *ret_user point into. *ret_user is unchanged if there is no such user.
 * Pure. */
bool users_find_in_text(const char *text, size_t length, uid_t uid, char *line,
                        struct users_user *ret_user);

/* Takes the next user from the text of a passwd file, in the same way; false at the end. Pure. */
bool users_next_in_text(const char **text, size_t *length, char *line, struct users_user *ret_user);

/* Copies the name of gid in the text of a group file to `name` (USERS_LINE_MAX bytes). Pure. */
bool users_group_in_text(const char *text, size_t length, gid_t gid, char *name);

/* Look up users and groups of the system: in /etc/passwd or /etc/group, else with getent(1), which
 * knows the directory services, with a timeout. */
bool users_find(uid_t uid, char *line, struct users_user *ret_user);
bool users_group(gid_t gid, char *name);

/* Stores the answer of `getent DATABASE ID` (passwd or group), at most `max` bytes without a NUL.
 * Returns its length, 0 if there was no answer in time. */
size_t users_ask_getent(const char *database, unsigned id, char *text, size_t max);

/* Whether `match` returns true for one of the users in /etc/passwd. */
bool users_any(bool (*match)(const struct users_user *user, void *arg), void *arg);
