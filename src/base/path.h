/* SPDX-License-Identifier: MIT */
/* Paths as text, without asking the filesystem, and opening a name so that it cannot lead out of
 * its directory. */
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

/* Returns an absolute path without "//", "." and a trailing slash ("/" stays), for the caller to
 * free. ".." is never resolved as text, because its meaning depends on symbolic links: it is
 * refused, or kept with PATH_KEEP_DOTDOT. Refuses relative, empty and overlong paths. All other
 * bytes are allowed. */
int path_normalise(const char *path, unsigned flags, char **ret_path, struct brig_error *err);

/* Returns the path if it is absolute, else cwd/path, normalised with PATH_KEEP_DOTDOT. cwd must
 * come from getcwd(): it has no links, so a leading ".." of path can be resolved against it as
 * text. */
int path_make_absolute(const char *cwd, const char *path, char **ret_path, struct brig_error *err);

/* Whether child is parent or lies below it. Both are normalised. */
bool path_is_beneath(const char *parent, const char *child);

/* The part of `path` below parent, "" if they are equal, NULL if path is not below parent. Both are
 * normalised. */
const char *path_below(const char *parent, const char *path);

/* Whether the relative target of a symbolic link at `path` may lead above the root of `path`, as text. A ".." after a name leads
 * wherever that name does, which may become another link at any time. */
bool path_leads_above(const char *path, const char *target);

/* The number of components of a normalised path, 0 for "/". */
size_t path_depth(const char *path);

/* Compares relative paths component by component, so that a directory is followed by what is in it. */
int path_compare(const char *a, const char *b);
/* The same for qsort() and bsearch(), with pointers to such texts. */
int path_compare_items(const void *a, const void *b);

/* Opens a relative name from dir_fd. No "..", link or mount leads above dir_fd (RESOLVE_BENEATH),
 * and magic links of /proc are not followed. An absolute name or link is refused with EXDEV. Flags
 * and mode as for openat(); O_CLOEXEC is added. Fails with BRIG_E_SYSTEM and the errno in err. */
int path_open_beneath(int dir_fd, const char *name, int flags, mode_t mode, int *ret_fd,
                      struct brig_error *err);

/* The same with root_fd as "/": absolute paths, absolute links and ".." stay inside it
 * (RESOLVE_IN_ROOT). */
int path_open_in_root(int root_fd, const char *path, int flags, mode_t mode, int *ret_fd,
                      struct brig_error *err);

/* Opens a relative path from dir_fd that contains no symbolic link; "" is dir_fd itself. With O_PATH |
 * O_NOFOLLOW the last component may be one, and is opened. O_CLOEXEC is added. -1 with errno. */
int path_open_plain(int dir_fd, const char *path, int flags);

/* Renames without replacing anything: 0, or -errno, which is -EEXIST if the name exists. */
int path_rename_new(int from_fd, const char *old, int to_fd, const char *name);

/* Writes the absolute path of the file that `path` leads to, without symbolic links, to ret_path
 * (PATH_LENGTH_MAX + 1 bytes). The kernel resolves it once, into a descriptor, and the path is read
 * from /proc. False if the file does not exist or the caller may not look it up. The name can mean
 * another file afterwards. */
bool path_resolve(const char *path, char *ret_path);
/* The same for a descriptor; false if the file is in no directory. */
bool path_of_fd(int fd, char *ret_path);

/* The name of a descriptor in /proc, for calls that take no descriptor, or none with O_PATH. Use as:
 * path_proc(fd).text */
struct path_proc {
    char text[32]; /* "/proc/self/fd/" and a number */
};
struct path_proc path_proc(int fd);

/* Creates the missing directories of an absolute path. Only the first `length` bytes of it count. */
int path_make_directories(const char *path, size_t length, mode_t mode, struct brig_error *err);

/* Takes the next candidate for a program from a list of directories, separated by colons as in PATH:
 * "DIRECTORY/NAME" in ret_path (PATH_LENGTH_MAX + 1 bytes), "./NAME" for an empty directory. Advances
 * *list, which may be NULL; false at its end. Paths that are too long are skipped. */
bool path_next_program(const char **list, const char *name, char *ret_path);

/* Finds a program of this project that can be executed: at one of the `places`, which are relative
 * to the directory of the running program and end with NULL, else at `installed`. False if there is
 * none. */
bool path_find_program(const char *const *places, const char *installed, char *ret_path,
                       size_t size);
