/* SPDX-License-Identifier: MIT */
/* The broker's own jail. What the bytes of a jail, or of a server, might make of the process shall not
 * be worth having: no file but those that say how to resolve, no process, no capability. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct brig_error;

/* First thing in main(): nobody may look at this process, and what was left open is closed. */
void confine_early(int last_fd);

/* Becomes this user, where started as root. */
int confine_user(bool has_user, uid_t uid, gid_t gid, struct brig_error *err);

enum confine_role {
    CONFINE_BROKER,
    CONFINE_CONNECTOR,
};

/* Everything else, for good. `files` are read when the broker runs (NULL-terminated; those that are
 * missing are left out); a directory among them stands for the files in it. Fails if the kernel lacks
 * what is needed; Landlock alone may be missing. */
int confine(enum confine_role role, const char *const *files, struct brig_error *err);
