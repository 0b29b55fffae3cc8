/* SPDX-License-Identifier: MIT */
/* The masks of a run: from the settings' rules to what its policy hides. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#include "jail/view/mask.h"

struct mask_names;
struct settings;

/* The rules that are left of all in their order. Release with masks_done. Texts are borrowed from the
 * settings, but for the owned ones. */
struct masks {
    struct mask_rules rules;
    const char **origins; /* of each hidden one, where the rule comes from */
    char **owned;
    size_t owned_count;
};

/* With the default masks before them where the settings want these for grants only. */
int masks_resolve(const struct settings *settings, struct masks *ret_masks, struct brig_error *err);
void masks_done(struct masks *masks);

/* Adds a rule, copied. */
int masks_add(struct masks *masks, const char *path, const char *origin, struct brig_error *err);

/* Notes in settings->masks which of them hide something that is in the home directory now. */
int masks_mark_found(struct settings *settings, const char *home, struct brig_error *err);

/* Adds masks to the policy wherever it shows what the rules hide. With the rights of the user. */
int masks_apply(const struct masks *masks, const struct mask_names *names, struct brig_error *err);

/* Adds rules for the paths in the home directory that links lead to. */
int masks_follow_links(struct masks *masks, const char *home, struct brig_error *err);
