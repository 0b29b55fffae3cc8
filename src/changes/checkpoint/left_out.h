/* SPDX-License-Identifier: MIT */
/* What a checkpoint does not contain, in words. */
#pragma once

#include <stdint.h>

#include "base/str.h"

struct manifest_entry;

#define LEFT_OUT_SHOWN 4 /* names of each kind; the others are counted */

struct left_out {
    struct str large, others;
    uint64_t large_count, other_count;
};

/* Adds an entry that is left out. Masked ones are not mentioned, because the command cannot change them. */
void left_out_add(struct left_out *left_out, const struct manifest_entry *entry);
/* Appends a line for each kind, or nothing. */
void left_out_tell(const struct left_out *left_out, struct str *text);
void left_out_done(struct left_out *left_out);
