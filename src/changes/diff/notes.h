/* SPDX-License-Identifier: MIT */
/* Notes of a diff: changes that git does not know, such as empty directories, owners and FIFOs. They are kept in a
 * file until git has printed the rest. */
#pragma once

#include <stdio.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/str.h"

struct change;

struct notes {
    FILE *file;           /* owned */
    const char *root;     /* of the layer that is being added */
    const char *jail;     /* put before the paths, or NULL */
    struct str directory; /* an added or deleted directory in which nothing was found yet */
    const char *directory_note;
};

/* A line about a path. */
void notes_add(struct notes *notes, const char *path, const char *text);
/* The lines for a change; called in the order of a walk. */
void notes_add_change(struct notes *notes, const struct change *change);
/* An added or deleted directory is noted only if nothing in it is a change. `next` is the path of the next
 * change; NULL at the end of a layer. */
void notes_end_directory(struct notes *notes, const char *next);

/* Copies the lines to a descriptor. */
int notes_print(struct notes *notes, int to, struct brig_error *err);
void notes_done(struct notes *notes);

/* The mode that git gives a file. */
mode_t notes_git_mode(mode_t mode);
