/* SPDX-License-Identifier: MIT */
/* The paths and patterns that a user has typed for a verb about changes, sorted by layer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "changes/layer.h"

struct verb_layers;

/* One word: a path relative to the root of its layer, or a pattern for fnmatch(), in which * matches also slashes. */
struct selected {
    const char *typed;
    char *path;
    bool pattern;
    bool matched; /* a change was found */
};

struct selection {
    size_t layer; /* index */
    struct selected *words;
    size_t count;
    /* For changes_walk(): NULL if everything must be walked. */
    const char **paths;
    size_t path_count;
};

struct selections {
    struct selection items[LAYERS_MAX]; /* by layer */
    bool all;                           /* no words: everything */
};

/* Sorts words by layer. A word with a wildcard is a pattern, unless a file has this name. Without words, everything is
 * selected. Release with selections_done(). */
int selections_make(struct selections *ret_selections, const struct verb_layers *layers, int count,
                    char **words, struct brig_error *err);
void selections_done(struct selections *selections);

/* Whether a layer has nothing that was selected. */
bool selection_is_empty(const struct selections *selections, size_t layer);

/* Whether a path is selected, or a directory above it. Notes which words have matched. */
bool selection_has(struct selections *selections, size_t layer, const char *path);

/* The first word that no path has matched, or NULL. */
const char *selections_unmatched(const struct selections *selections);
