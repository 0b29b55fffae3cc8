/* SPDX-License-Identifier: MIT */
/* Resolves a host path that brig itself writes to, for --result, --net-log and cp, or that cp
 * grants, without following a symbolic link that a program in a jail may have made.
 *
 * A jail of any earlier run may have had write access to any directory of the user. A link is
 * followed only where no jail writes: in / and in the user's home directory itself, and, unless
 * brig acts for root, if the link and its directory belong to root. Root's jails make files that
 * belong to root. */
#pragma once

#include <brig/brig.h>

#include "base/path.h"

struct brig_error;
struct brig_policy;
struct identity;

/* The file that a path leads to, after a link in its last component was followed. */
struct out_path {
    int fd;     /* O_PATH, or -1 if there is no such file in the directory */
    int dir_fd; /* O_PATH: the directory; the same as fd if the path leads to a directory */
    char name[PATH_COMPONENT_MAX + 1]; /* in dir_fd; "" if the path leads to a directory */
};
#define OUT_PATH_INIT                                                                              \
    (struct out_path)                                                                              \
    {                                                                                              \
        .fd = -1, .dir_fd = -1                                                                     \
    }

/* Resolves a path; its directory must exist. Release with out_path_done(). */
int out_path_find(const char *path, const struct identity *identity, struct out_path *ret_found,
                  struct brig_error *err);
void out_path_done(struct out_path *found);

/* ---- Files that brig writes ---- */

/* Writes a file atomically, by a rename. Returns 1, or 0 without `replace` if the file exists. */
int out_file_write(int dir_fd, const char *name, const char *text, mode_t mode, bool replace,
                   struct brig_error *err);

/* Opens a file for appending, never through a symbolic link that a jail may have created. Returns
 * an fd. Errors begin with the option's name. */
int out_file_append(const char *where, const char *option, const struct brig_policy *policy,
                    const struct identity *identity, struct brig_error *err);

/* Whether `where` is a number or "fd:N", a writable descriptor that brig inherited from its caller:
 * 1 and its number, or 0. Errors begin with the option's name. */
int out_file_number(const char *where, const char *option, int *ret_fd, struct brig_error *err);

/* Whether brig inherited a descriptor from its caller: descriptors that brig opened are
 * close-on-exec. */
bool out_file_is_given(int fd);

/* The destination of --result: an open fd, a regular file that is replaced atomically, or a special
 * file. Initialise with result_file_open; zeroes are not a valid state. */
struct result_file {
    int fd;                            /* written to directly, or -1 */
    bool owned;                        /* result_file_done() closes fd */
    int dir_fd;                        /* the directory of a file to be replaced, or -1 */
    char name[PATH_COMPONENT_MAX + 1]; /* its name in the directory */
};

/* Opens the destination before the command starts: an unwritable one is refused early, and a jail
 * that renames directories or has left a link (see out_path.h) cannot redirect the result. Release
 * with result_file_done. */
int result_file_open(const char *where, const struct brig_policy *policy,
                     const struct identity *identity, struct result_file *ret_file,
                     struct brig_error *err);
int result_file_write(const struct result_file *file, const struct brig_result *result,
                      struct brig_error *err);
void result_file_done(struct result_file *file);
