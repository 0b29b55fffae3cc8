/* SPDX-License-Identifier: MIT */
/* What was applied while a run used the layer: the upper directory is mounted, so the entries stay in it, recorded as applied
 * (STEP_APPLIED). When no run uses it any more, entries that equal the user's files are removed from it, as changes_tidy() does with
 * all copies; those of such an operation are moved into it, where its undo finds them. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

struct change;
struct layer;
struct live;

/* Lists the entries of a layer that operations have applied, and of which the layer has still the entry. Free it with live_free(). */
int live_list(const struct layer *layer, struct live **ret_live, struct brig_error *err);
void live_free(struct live *live);

/* Moves the entry `name` of the upper directory to the operation that has applied it; false if there is none. */
bool live_take(const struct live *live, const struct change *change, const char *name);
