/* SPDX-License-Identifier: MIT */
/* What a checkpoint does not contain, in words. */
#pragma once

#include <stdint.h>

#include "base/str.h"

struct manifest_entry;

#define LEFT_OUT_SHOWN 4 /* names of each kind; the others are counted */

struct left_out_list {
    struct str names;
    uint64_t count;
};

struct left_out {
    struct left_out_list ignored, large, holes, others;
};

/* Adds an entry that is left out. Masked ones are not mentioned, because the command cannot change them. */
void left_out_add(struct left_out *left_out, const struct manifest_entry *entry);
/* Appends a line for each kind, or nothing; `most_bytes` is that of the checkpoint. */
void left_out_tell(const struct left_out *left_out, uint64_t most_bytes, struct str *text);
void left_out_done(struct left_out *left_out);
