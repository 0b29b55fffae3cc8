/* SPDX-License-Identifier: MIT */
/* Which added files the user's git ignores. Git runs in the user's repository: rules that the jail has
 * written do not count. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <brig/brig.h>

#include "base/path.h"
#include "base/str.h"

struct change;
struct git;
struct layer;
struct inventory_item;

/* Git is asked about each file and about each directory above one, once. The questions of a file
 * depend on the file before it, so the answers are read in the same order as the questions were
 * written. */
struct ignored {
    FILE *questions;                /* paths for `git check-ignore` */
    FILE *answers;                  /* one byte for each: '1' is ignored */
    uint64_t count;                 /* questions */
    char last[PATH_LENGTH_MAX + 2]; /* with a slash after a directory */
    size_t whole; /* the length of the ignored directory that `last` is in, or 0 */
    char replaced[PATH_LENGTH_MAX + 1]; /* the last directory that has replaced a file or link */
    /* What the user's index has: hashes of the paths and of the directories above them, sorted. git would compare each
     * question with each entry of it. */
    uint64_t *tracked;
    size_t tracked_count;
    struct str submodules; /* a list of paths */
};

int ignored_begin(struct ignored *ignored, const struct layer *layer, struct brig_error *err);
void ignored_done(struct ignored *ignored);

/* Whether git can be asked about a change: an added file, not below a directory that is a link outside. Call it for each
 * change. */
bool ignored_can_ask(struct ignored *ignored, const struct change *change);
/* Adds a file; in the order of path_compare(). */
int ignored_add(struct ignored *ignored, const char *path, bool directory, struct brig_error *err);
/* Asks git. If it cannot answer, nothing more is ignored. */
int ignored_ask(struct ignored *ignored, const struct layer *layer, const struct git *git,
                struct brig_error *err);
/* Sets `ignored` and `group` of an item; in the same order. */
int ignored_find(struct ignored *ignored, struct inventory_item *item, struct brig_error *err);
