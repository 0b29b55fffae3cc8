/* SPDX-License-Identifier: MIT */
/* What is hidden of the home directory, from the rules in their order. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

struct settings;
struct path_aliases;

/* What the rules come to: patterns to hide, and what is shown all the same. Release with
 * masks_done. Texts are borrowed from the settings. */
struct masks {
    const char **hidden;  /* relative to the home directory */
    const char **origins; /* of each, where the rule comes from */
    size_t hidden_count;
    const char **shown; /* below something hidden */
    size_t shown_count;
    char **owned; /* texts of its own */
    size_t owned_count;
};

int masks_resolve(const struct settings *settings, struct masks *ret_masks, struct brig_error *err);
void masks_done(struct masks *masks);

/* Which rule hides a path relative to the home directory: an index in masks->hidden, or -1. */
int masks_find(const struct masks *masks, const char *path);

/* Notes in settings->masks which of them hide something that is in the home directory now. */
void masks_look(struct settings *settings, const char *home);

/* Masks hold wherever the path would show: adds them to the policy where they lie inside of what is
 * granted, or can be seen by another name. With `links` also what they lead to by symbolic links;
 * else the jail's holder has told that. With the rights of the user. */
int masks_apply(const struct masks *masks, const struct path_aliases *path_aliases, bool links,
                struct brig_error *err);

/* What the rules come to with the default masks before them, for masks_apply_late(). */
int masks_resolve_late(const struct settings *settings, struct masks *ret_masks,
                       struct brig_error *err);

/* The same as masks_apply() with the default masks for a mode that has nothing of the home but what is granted, if they
 * are wanted there; links are not followed. */
int masks_apply_late(const struct settings *settings, const struct path_aliases *path_aliases,
                     struct brig_error *err);

/* Adds what the holder has told: places that masks lead to by links. */
int masks_apply_places(const char *places, size_t length, const struct path_aliases *path_aliases,
                       struct brig_error *err);

/* Has places in the home directory that masks lead to by links among those hidden. */
int masks_follow_links(struct masks *masks, const char *home, struct brig_error *err);

/* Which masks can show by their own names: the others need not be looked for. */
struct masks_relevant {
    bool all;
    const char **inside; /* granted paths below the home, relative to it */
    size_t count;
};
/* Adds a granted path; `inside` has room for it. */
void masks_add_granted(struct masks_relevant *relevant, const char *home, const char *granted);
/* Whether a mask may show in one of the granted paths. */
bool masks_matters(const struct masks_relevant *relevant, const char *mask);
