/* SPDX-License-Identifier: MIT */
/* The paths and patterns that a user has typed for a verb about changes, sorted by layer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "changes/layer/layer.h"

struct change;
struct verb_layers;

/* One word: a path relative to the root of its layer, or a pattern for fnmatch(), in which * matches also slashes. */
struct selected {
    const char *typed;
    char *path;
    bool pattern;
    bool whole;   /* an exact path that ends in a slash: with everything below it */
    bool matched; /* a change was found */
};

struct selection {
    struct selected *words;
    size_t count;
    /* For changes_walk(): NULL if everything must be walked. */
    const char **paths;
    size_t path_count;
    const char *deleted; /* the last directory that was selected and is deleted, or NULL */
};

struct selections {
    struct selection items[LAYERS_MAX]; /* by layer */
    bool all;                           /* no words: everything */
    bool exact; /* only these paths: no patterns, and nothing below a directory */
};

/* Sorts words by layer. A word with a wildcard is a pattern, unless a file has this name. Without words, everything is
 * selected. With `exact` words are paths, and a directory does not mean what is in it, unless it ends in a slash. Fails
 * if a word is in no layer. Release with selections_done(). */
int selections_make(struct selections *ret_selections, const struct verb_layers *layers, bool exact,
                    int count, char **words, struct brig_error *err);
/* The same for two jails, by exact paths: fails if a word is in no layer of either. */
int selections_make_both(struct selections ret_both[static 2], struct verb_layers *const *layers,
                         int count, char **words, struct brig_error *err);
void selections_done(struct selections *selections);

/* Whether a layer has nothing that was selected. */
bool selection_is_empty(const struct selections *selections, size_t layer);

/* Whether everything in a layer is selected: nothing was named, or its root. */
bool selection_is_whole(const struct selections *selections, size_t layer);

/* Whether a change is selected: its path, or a directory above it. Of exact paths, a directory that is deleted includes
 * what was in it. Ask in the order of the walk. Notes which words have matched. */
bool selection_has(struct selections *selections, size_t layer, const struct change *change);

/* The first word that no path has matched, or NULL. The root of a layer may have no changes. */
const char *selections_unmatched(const struct selections *selections);
