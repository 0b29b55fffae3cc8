/* SPDX-License-Identifier: MIT */
/* What is hidden and left out unless the user says otherwise, in every mode that shows a home directory
 * and passes an environment on. Each list is one text after another, ended by an empty one, rather than
 * pointers to them: the loader would have to relocate these at every start. */
#pragma once

#include <stddef.h>
#include <string.h>

/* Paths in a home directory; '*' and '?' stand for any characters but a slash. */
extern const char policy_default_masks[];
extern const size_t policy_default_masks_bytes;
/* Directories outside of homes in which the system keeps what belongs to single users. */
extern const char policy_default_spools[];
/* Patterns of variables. */
extern const char policy_default_filters[];

static inline const char *policy_next_default(const char *text)
{
    return text + strlen(text) + 1;
}
