/* SPDX-License-Identifier: MIT */
/* Changing the text of a NAME.jail file, which its user may have written too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Appends a value as it is written in a .conf or .jail file, so that it is read as it is. */
void jail_text_quote(struct str *out, const char *value);

/* Appends the text with a last line "mask VALUE" or "unmask VALUE". Lines that say one of these of the
 * same value are left out, and all others are as they were. */
void jail_text_set_mask(struct str *out, const char *text, size_t length, const char *value,
                        bool unmask);
