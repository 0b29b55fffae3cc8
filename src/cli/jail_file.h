/* SPDX-License-Identifier: MIT */
/* The file NAME.jail of a jail, as far as brig changes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

/* Remembers that paths of the home directory, relative to it, are hidden in a jail, or are not. The
 * file is made if it is missing, and replaced in one step. With the rights of the user. */
int jail_file_set_masks(const char *storage, const char *name, const char *const *paths,
                        size_t count, bool unmask, struct brig_error *err);
