/* SPDX-License-Identifier: MIT */
/* What a verb about changes is to handle: paths and patterns that a user has typed, or items that were shown, sorted by
 * layer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/token.h"

struct change;
struct git;
struct inventory_item;
struct verb_layers;

/* One word: a path relative to the root of its layer, or a pattern for fnmatch(), in which * matches also slashes. */
struct selected {
    const char *typed;
    char *path;
    bool pattern;
    bool matched;       /* a change was found */
    struct token token; /* of an item that was shown */
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
    struct selection git;               /* of items that were shown: those of git, by their names */
    bool all;                           /* no words: everything */
    bool exact;                         /* words are paths, never patterns */
    bool shown;                         /* the words are items */
    struct str text;                    /* the items as they were read */
    struct str changed;                 /* a list: absolute paths of ignored directories that have
                                           changed since they were shown */
};

#define SELECTION_CHANGED "it has changed since it was shown"

/* Sorts words by layer. A word with a wildcard is a pattern, unless a file has this name. Without words, everything is
 * selected. With `exact` words are paths. Fails if a word is in no layer. Release with selections_done(). */
int selections_make(struct selections *ret_selections, const struct verb_layers *layers, bool exact,
                    int count, char **words, struct brig_error *err);
/* The same for two jails, by exact paths: fails if a word is in no layer of either. */
int selections_make_both(struct selections ret_both[static 2], struct verb_layers *const *layers,
                         int count, char **words, struct brig_error *err);
/* Reads items from standard input: each is a token, a blank, the absolute path as brig status --json has it, and a NUL.
 * A path of a directory that git ignores ends in a slash, and means all files in it. Items of git have "git:NAME" in place of
 * a path; the token says which repository it is. */
int selections_read_shown(struct selections *ret_selections, const struct verb_layers *layers,
                          const struct git *git, struct brig_error *err);
void selections_done(struct selections *selections);

/* Whether a layer has nothing that was selected. */
bool selection_is_empty(const struct selections *selections, size_t layer);

/* Whether nothing was named, or the root of a layer: also if paths are exact. */
bool selection_has_root(const struct selections *selections, size_t layer);

/* Whether everything in a layer is selected: nothing was named, or its root. */
bool selection_is_whole(const struct selections *selections, size_t layer);

/* Whether a change is selected: its path, or a directory above it; of items only the item, and with a deleted directory
 * what was in it. If it is not what was shown, *ret_reason says so. Ask in the order of the walk. Notes which words have
 * matched. */
bool selection_has(struct selections *selections, size_t layer, const struct change *change,
                   const char **ret_reason);

/* Of a selected item, whether a copy (change->copy_name) that was made while a run is active is what was shown. */
bool selection_fits(const struct selections *selections, size_t layer, const struct change *change);

/* Whether an item of git was shown; notes that it was found. */
bool selections_have_git(struct selections *selections, const struct inventory_item *item);

/* Appends what was selected, for the log: "PATH" or "PATH and 2 more". */
void selections_describe(const struct selections *selections, struct str *out);

/* The first word that no path has matched, or NULL. The root of a layer may have no changes. */
const char *selections_unmatched(const struct selections *selections);
