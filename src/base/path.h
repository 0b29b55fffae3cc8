/* SPDX-License-Identifier: MIT */
/* Paths as text, without asking the filesystem, and opening a name so that it cannot lead out of
 * the directory it was given for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct brig_error;

#define PATH_LENGTH_MAX 4095   /* PATH_MAX without the NUL */
#define PATH_COMPONENT_MAX 255 /* NAME_MAX */

enum path_flag {
    PATH_KEEP_DOTDOT = 1 << 0, /* leave ".." for the kernel to resolve instead of refusing it */
};

/* An absolute path without "//", "." and a trailing slash ("/" stays), for the caller to free. As
 * what ".." means depends on symbolic links, it is never resolved as text: it is refused, or kept
 * with PATH_KEEP_DOTDOT. Refuses relative, empty and overlong paths. Any other byte is fine. */
int path_normalise(const char *path, unsigned flags, char **ret_path, struct brig_error *err);

/* The path if it is absolute, else cwd/path; normalised with PATH_KEEP_DOTDOT. cwd must be what
 * getcwd() returns: free of links, so that a ".." at the very start of path can be taken off it. */
int path_make_absolute(const char *cwd, const char *path, char **ret_path, struct brig_error *err);

/* Of normalised paths: whether child is parent or lies below it. */
bool path_is_beneath(const char *parent, const char *child);

/* Of normalised paths: the part of `path` below parent, "" for parent itself, NULL if it is not
 * there. */
const char *path_below(const char *parent, const char *path);

/* Of a normalised path: the number of components, 0 for "/". */
size_t path_depth(const char *path);

/* Opens name, relative, from dir_fd: no "..", link or mount leads above dir_fd
 * (RESOLVE_BENEATH), no magic link of /proc is followed. An absolute name or link is refused
 * with EXDEV. Flags and mode as for openat(); O_CLOEXEC is added. Fails with BRIG_E_SYSTEM and
 * the errno in err. */
int path_open_beneath(int dir_fd, const char *name, int flags, mode_t mode, int *ret_fd,
                      struct brig_error *err);

/* The same, but as if root_fd were "/": absolute paths and links and ".." stay inside it
 * (RESOLVE_IN_ROOT). */
int path_open_in_root(int root_fd, const char *path, int flags, mode_t mode, int *ret_fd,
                      struct brig_error *err);

/* The absolute path of what `path` leads to, without symbolic links, into ret_path (PATH_LENGTH_MAX + 1
 * bytes): the kernel looks it up once, into a descriptor, and says where that is. False if there is nothing,
 * or the caller may not look. The name can mean another file afterwards. */
bool path_resolve(const char *path, char *ret_path);
/* The same of a descriptor; false for what is in no directory. */
bool path_of_fd(int fd, char *ret_path);

/* Makes every directory of an absolute path that is missing, for their owner alone. `length` is how much of the
 * path counts. */
int path_make_directories(const char *path, size_t length, struct brig_error *err);
