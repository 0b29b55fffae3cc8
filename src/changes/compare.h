/* SPDX-License-Identifier: MIT */
/* Compares a file in the upper directory with the user's. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct layer;

/* Opens a regular file for reading without following a link. If it belongs to the caller and its
 * mode does not let the caller read it, the mode is changed while it is opened. -1 with errno. */
int compare_open(int dir, const char *name);

/* Whether two regular files or links of the same type have the same contents. A file that cannot be
 * read has not. */
bool compare_contents(int left_dir, const struct stat *left, int right_dir,
                      const struct stat *right, const char *name);

/* Whether two files have the same extended attributes, except those of overlayfs and of the
 * system's security modules. */
bool compare_xattrs(int left_dir, int right_dir, const char *name);
/* Whether an attribute counts: it is copied and compared. */
bool compare_counts_xattr(const char *attribute);
