/* SPDX-License-Identifier: MIT */
/* The directory of a file that brig itself writes outside the jail: for --result and --net-log. */
#pragma once

struct brig_error;
struct brig_policy;

/* Opens the directory of `path` (O_PATH) and points *ret_name at the last component. A symbolic link on
 * the way is followed, unless it lies in a directory that the policy lets the jail write to: an earlier
 * run may have put it there to have a file outside replaced. The kernel's magic links in /proc are
 * followed as their text says. Refuses a path that does not name a file. */
int out_path_open(const char *path, const struct brig_policy *policy, const char **ret_name,
                  int *ret_dir_fd, struct brig_error *err);
