/* SPDX-License-Identifier: MIT */
/* The broker's own jail: a broker that is taken over by the bytes of a jail or of a server has no file
 * but those that say how to resolve names, no process and no capability. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct brig_error;
struct broker_config;

/* Called first in main(): makes the process non-dumpable and closes inherited descriptors. */
void confine_early(int last_fd);

/* Changes to this user if started as root. */
int confine_user(bool has_user, uid_t uid, gid_t gid, struct brig_error *err);

enum confine_role {
    CONFINE_BROKER,
    CONFINE_CONNECTOR,
};

/* Everything else, for good. `files` may still be read (NULL-terminated; missing ones are left out); a
 * directory among them stands for the files in it. Fails if the kernel lacks what is needed; only
 * Landlock may be missing. */
int confine(enum confine_role role, const char *const *files, struct brig_error *err);

/* The paths a broker reads while it runs, with NULL at the end; not all of them exist. They live as long
 * as the configuration, in whose arena some are. */
#define CONFINE_FILES_MAX 24
void confine_files(struct broker_config *config, const char *files[CONFINE_FILES_MAX + 1]);

/* The CA certificates that upstreams are checked with; NULL if there are none. */
const char *confine_certificates(const struct broker_config *config);
