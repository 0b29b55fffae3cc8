/* SPDX-License-Identifier: MIT */
/* Who has a uid or gid, without libc's name service: its modules cannot be loaded into a static
 * program, and loading them costs more than starting a jail does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define USERS_LINE_MAX 1024

/* One line of a passwd file, its parts NUL-terminated inside the line. */
struct users_user {
    uid_t uid;
    gid_t gid;
    char *name;
    char *home;
    char *shell;
};

/* Finds uid in the text of a passwd file and copies its line to `line` (of USERS_LINE_MAX bytes),
 * which the user's strings then point into. *ret_user stays as it is if there is no such user. Pure. */
bool users_find_in_text(const char *text, size_t length, uid_t uid, char *line,
                        struct users_user *ret_user);

/* Takes the next user from the text of a passwd file, as above; false at its end. Pure. */
bool users_next_in_text(const char **text, size_t *length, char *line, struct users_user *ret_user);

/* The name of gid in the text of a group file, copied to `name` (of USERS_LINE_MAX bytes). Pure. */
bool users_group_in_text(const char *text, size_t length, gid_t gid, char *name);

/* The same of the system's users and groups: in /etc/passwd or /etc/group, else as getent(1)
 * answers, which knows the directory services. Answers that take seconds are not waited for. */
bool users_find(uid_t uid, char *line, struct users_user *ret_user);
bool users_group(gid_t gid, char *name);

/* The answer of `getent DATABASE ID` (passwd or group), cut at `max` bytes and without a NUL: its
 * length, 0 if there is none in time. */
size_t users_ask_getent(const char *database, unsigned id, char *text, size_t max);

/* Whether the function returns true for one of the users in /etc/passwd. */
bool users_any(bool (*match)(const struct users_user *user, void *arg), void *arg);
