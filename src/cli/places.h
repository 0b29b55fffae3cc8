/* SPDX-License-Identifier: MIT */
/* What lies where in a jail that is not made: the view, private directories, grants and masks of a
 * policy, as the engine would lay them. A model for `brig why`; tests hold it against real jails. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

struct setup;

enum place_kind {
    PLACE_FRAME,   /* the jail's own root: nothing but what is mounted on it */
    PLACE_HOST,    /* a file or directory of the host's */
    PLACE_MADE,    /* a small file that brig makes */
    PLACE_DEVICES, /* /dev */
    PLACE_PROC,    /* /proc */
    PLACE_SCRATCH, /* empty, and gone with the run */
    PLACE_KEPT,    /* the same, kept while the jail is */
    PLACE_HOME,    /* a home of the jail's own */
    PLACE_OVERLAY, /* the user's home, copied on writing */
    PLACE_MASK,    /* nothing to be seen */
};

struct place {
    enum place_kind kind;
    char *dest;   /* in the jail */
    char *host;   /* what is behind it; NULL: nothing of the host's */
    char *rule;   /* in words */
    char *origin; /* who said so */
    bool writable;
    bool
        given; /* by a rule: where the jail has an id of its own, its owner's files seem the jail's */
    bool link; /* a symbolic link there is one in the jail as well */
};

/* Release with places_done. */
struct places {
    struct place *items;
    size_t count;
    bool frame; /* the root is the jail's own */
};

/* After home_foresee(). argv[1…argc-1] are the options, to tell who said what. */
int places_find(const struct setup *setup, int argc, char *const *argv, struct places *ret_places,
                struct brig_error *err);
void places_done(struct places *places);

/* The place that governs a normalised path; never NULL. */
const struct place *places_of(const struct places *places, const char *path);

/* What a path is a symbolic link to that brig makes, or NULL. */
const char *places_link(const struct places *places, const char *path);

/* The rest of a path below a directory, without a slash in front; "" for the directory itself. */
const char *places_rest(const char *directory, const char *path);

/* Who chose something that is no rule of the policy's: "command line", file:line, or "mode NAME". `id`
 * is an enum option_id. The text is borrowed, or in *buffer. */
const char *places_origin_of(const struct setup *setup, int argc, char *const *argv, int id,
                             char *buffer, size_t size);
