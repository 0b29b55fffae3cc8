/* SPDX-License-Identifier: MIT */
/* What is hidden and left out unless somebody says otherwise, in every mode that shows a home
 * directory and passes an environment on. One row a line, by subject; adding one is adding a row. */
#pragma once

#include <stddef.h>
#include <string.h>

/* Paths in a home directory that hold credentials, histories or what can be read off them. '*' and
 * '?' stand for any characters but a slash. Ended by an empty one. One text behind the other rather
 * than pointers to them: these would have to be put right at every start, and all their pages be
 * written to. */
extern const char policy_default_masks[];
extern const size_t policy_default_masks_bytes;

static inline const char *policy_next_mask(const char *mask)
{
    return mask + strlen(mask) + 1;
}

/* Directories outside of homes in which the system keeps what belongs to single users. In the same form. */
extern const char policy_default_spools[];

/* Patterns of variables that hold credentials, or name sockets and processes of the host. Ended by
 * NULL. */
extern const char *const policy_default_filters[];
