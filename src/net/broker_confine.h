/* SPDX-License-Identifier: MIT */
/* The sandbox of the broker: a broker that is compromised by bytes from a jail or a server can read
 * only the files that configure name resolution, and has no child process and no capability. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct brig_error;
struct broker_config;

/* Called first in main(): makes the process non-dumpable and closes inherited descriptors above
 * last_fd. */
void confine_early(int last_fd);

/* Changes to this user if started as root. */
int confine_user(bool has_user, uid_t uid, gid_t gid, struct brig_error *err);

enum confine_role {
    CONFINE_BROKER,
    CONFINE_CONNECTOR,
};

/* Applies all other restrictions, permanently. `files` stay readable (NULL-terminated; missing ones
 * are ignored); a directory stands for the files in it. Fails if the kernel lacks a restriction
 * other than Landlock. */
int confine(enum confine_role role, const char *const *files, struct brig_error *err);

/* The paths that a broker reads while it runs, terminated by NULL; not all of them exist. They live
 * as long as the configuration, whose arena contains some of them. */
#define CONFINE_FILES_MAX 24
void confine_files(struct broker_config *config, const char *files[CONFINE_FILES_MAX + 1]);

/* The CA certificates for the upstreams; NULL if there are none. */
const char *confine_certificates(const struct broker_config *config);
