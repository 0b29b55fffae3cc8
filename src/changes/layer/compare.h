/* SPDX-License-Identifier: MIT */
/* Compares a file in the upper directory with the user's. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* Whether two regular files or links of the same type have the same contents. A file that cannot be
 * read has not. */
bool compare_contents(int left_dir, const struct stat *left, int right_dir,
                      const struct stat *right, const char *name);

/* Whether extended attributes of two files differ, as far as copy_counts_xattr(): 0, COMPARE_ACL, COMPARE_XATTRS for all
 * others, or both. */
enum { COMPARE_ACL = 1, COMPARE_XATTRS = 2 };
int compare_xattrs(int left_dir, int right_dir, const char *name);
