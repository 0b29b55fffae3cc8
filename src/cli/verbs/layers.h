/* SPDX-License-Identifier: MIT */
/* Shared by the verbs that look at or handle changes: which jail, its layers, and what is hidden. */
#pragma once

#include <brig/brig.h>

#include "base/path.h"
#include "changes/layer/layer.h"
#include "cli/run/setup.h"

struct verb_layers {
    /* As for a run in this directory: setup.settings has the jail and storage. */
    struct setup setup;
    struct masks_hidden hidden;
    struct layers layers;
};

/* Opens the layers of a jail: `jail`, or with NULL the one that a run in this directory would use. Changes to the
 * ids of the user if root acts for one. Fails if a jail that was given does not exist; `verb` is for the message. The
 * parts borrow from one another, so the struct must not be moved. Release with verb_layers_done(). */
int verb_layers_open(struct verb_layers *verb_layers, const char *verb, const char *jail,
                     struct brig_error *err);
void verb_layers_done(struct verb_layers *verb_layers);
/* The same for a verb that hands something over: killed runs are ended first, see settle(). */
int verb_layers_settled(struct verb_layers *verb_layers, const char *verb, const char *jail,
                        struct brig_error *err);

/* Finds the layer of a path that the user has typed: relative to the working directory or absolute. Links are
 * resolved in its directories, not in its last component, and missing directories are kept as spelt. *ret_path,
 * for the caller to free, is relative to the root. NULL, with an error, if no layer contains it. */
const struct layer *verb_layers_find(const struct verb_layers *verb_layers, const char *typed,
                                     char **ret_path, struct brig_error *err);

/* Makes a typed path absolute, with links resolved as verb_layers_find() does. The caller frees it. */
int verb_resolve_path(const char *typed, char **ret_path, struct brig_error *err);

/* What a verb without paths is about: the root of the reviewed directory that the working directory is in, or NULL for
 * all layers. */
const char *verb_layers_here(const struct verb_layers *verb_layers);

/* Says how many changes are outside `here`, if there are any, and the command for them: `verb`, with options but not
 * the jail, and their roots. Nothing if `here` is NULL. */
void verb_tell_elsewhere(const struct verb_layers *verb_layers, const char *here, const char *verb);

/* Appends the absolute path of a file of a layer, safe for a terminal. */
void verb_append_path(struct str *out, const char *root, const char *path);
