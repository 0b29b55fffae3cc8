/* SPDX-License-Identifier: MIT */
/* What was hidden from the runs that wrote to a layer: never a change, whatever the upper directory contains
 * and whatever the configuration says by now. Each run records its masks in NAME.record/LAYER.hidden, and the filters
 * for start-up files, one file for each different set of them, named by its hash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "policy/startup.h"

struct mask_rules;
struct hidden;

/* How start-up files appear in a run; without rules as they are. */
struct hidden_startup {
    const char *home;
    struct startup_filter filter;
};

/* Records the masks of a run, and its own directories; all are relative to the root of the layer. */
int hidden_record(int record, const char *layer, const struct mask_rules *rules,
                  const char *const *own, size_t own_count, const struct hidden_startup *startup,
                  struct brig_error *err);

/* Reads all sets. Free with hidden_free(), which accepts NULL. */
int hidden_read(int record, const char *layer, struct hidden **ret_hidden, struct brig_error *err);
void hidden_free(struct hidden *hidden);

/* Whether one of the sets hides a path relative to the root, or a directory above it. Compares text. */
bool hidden_has(const struct hidden *hidden, const char *path);

/* Whether a path is that of a start-up file, or was the target of a link at its place. */
bool hidden_is_startup(const struct hidden *hidden, const char *path);
/* The filters of all sets that have some. */
const struct startup_filter *hidden_filters(const struct hidden *hidden, size_t *ret_count);
