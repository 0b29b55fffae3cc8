/* SPDX-License-Identifier: MIT */
/* Compares a file in the upper directory with the user's. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* Whether two regular files or links of the same type have the same contents. A file that cannot be
 * read has not. */
bool compare_contents(int left_dir, const struct stat *left, int right_dir,
                      const struct stat *right, const char *name);

/* Whether two files have the same extended attributes, as far as copy_counts_xattr(). */
bool compare_xattrs(int left_dir, int right_dir, const char *name);
