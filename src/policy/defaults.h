/* SPDX-License-Identifier: MIT */
/* The default masks and environment filters, for every mode that shows a home directory and passes
 * on the environment. Each list is a sequence of texts that ends with an empty one: the loader
 * would have to relocate an array of pointers at every start. */
#pragma once

#include <stddef.h>
#include <string.h>

/* Paths in a home directory; '*' and '?' match any characters except a slash. */
extern const char policy_default_masks[];
extern const size_t policy_default_masks_bytes;
/* Directories outside of homes with data of single users. */
extern const char policy_default_spools[];
/* Patterns of environment variables. */
extern const char policy_default_filters[];

static inline const char *policy_next_default(const char *text)
{
    return text + strlen(text) + 1;
}
