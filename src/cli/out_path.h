/* SPDX-License-Identifier: MIT */
/* Resolves a host path that brig itself writes to, for --result, --net-log and cp, or that cp grants,
 * without following a symbolic link that a program in a jail may have made.
 *
 * A jail of any earlier run may have had write access to any directory of the user. A link is followed
 * only where no jail writes: in / and in the user's home directory itself, and, unless brig acts for
 * root, if the link and its directory belong to root. Root's jails make files that belong to root. */
#pragma once

#include "base/path.h"

struct brig_error;
struct brig_policy;
struct identity;

/* Opens the directory of `path` (O_PATH) and points *ret_name at the last component, which is not looked
 * at. A link in a directory that the policy lets the jail write to is never followed. The kernel's magic
 * links in /proc are followed as their text says. Refuses a path that does not name a file. */
int out_path_open(const char *path, const struct brig_policy *policy,
                  const struct identity *identity, const char **ret_name, int *ret_dir_fd,
                  struct brig_error *err);

/* What a path leads to, a link at its end included. */
struct out_path {
    int fd;     /* O_PATH, or -1 if there is no such file in the directory */
    int dir_fd; /* O_PATH: the directory; the same as fd if the path leads to a directory */
    char name[PATH_COMPONENT_MAX + 1]; /* in it, "" if the path leads to a directory */
};
#define OUT_PATH_INIT                                                                              \
    (struct out_path)                                                                              \
    {                                                                                              \
        .fd = -1, .dir_fd = -1                                                                     \
    }

/* Finds it; the directory must exist. Release with out_path_done(). */
int out_path_find(const char *path, const struct identity *identity, struct out_path *ret_found,
                  struct brig_error *err);
void out_path_done(struct out_path *found);

/* The path of an open file as the kernel has it, free of links. */
int out_path_of(int fd, char ret_path[static PATH_LENGTH_MAX + 1]);
