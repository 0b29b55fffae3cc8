/* SPDX-License-Identifier: MIT */
/* Where programs that brig starts outside the jail are looked for. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

/* Copies the directories of PATH, without those in which a jail or a cloned repository could have put a program: relative
 * ones, those that the policy (may be NULL) lets a jail write to, and those in the project of the working directory.
 * The list is for the caller to free, and may be empty. */
int outside_path(const char *const *environment, const struct brig_policy *policy, char **ret_list,
                 struct brig_error *err);

/* Whether the policy (may be NULL) lets a jail write to a path. */
bool outside_path_is_writable(const struct brig_policy *policy, const char *path);
