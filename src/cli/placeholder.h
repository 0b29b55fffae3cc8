/* SPDX-License-Identifier: MIT */
/* Placeholders: what takes up a name that does not exist, so that something can be mounted on it in
 * a jail. They lie in the user's own directories and go with the last run that needs them.
 *
 * Every run that relies on one holds a shared lock on it, whoever made it. Who makes one writes it
 * down in a journal at once. At the end of a run, and at the start of the next, whatever is in
 * the journal, is unlocked, unchanged and still empty is removed: so a crash leaves nothing for long,
 * and of several runs the last cleans up. */
#pragma once

#include <stddef.h>

#include <brig/brig.h>

#define PLACEHOLDER_MAX 512    /* of one run; each is an open file */
#define PLACEHOLDER_SIZE_MAX 2 /* bytes in one that is a file */

enum placeholder_kind {
    PLACEHOLDER_DIRECTORY,
    PLACEHOLDER_FILE,   /* empty */
    PLACEHOLDER_SELF,   /* a file that holds ".", for git's commondir: "the same directory" */
    PLACEHOLDER_CLOSED, /* a directory that cannot be entered */
};

struct placeholders {
    int journal; /* on disk, or else of this run only */
    int *locks;  /* fds */
    size_t count, room;
};

/* Opens the journal in a directory (-1: there is none) and removes what an earlier run left. Release
 * with placeholders_done. */
void placeholders_begin(struct placeholders *placeholders, int journal_dir);

/* Makes NAME in a directory, whose path is for the journal, unless it exists, and locks it. 1 once it
 * is there, 0 if nobody could make it here (a read-only filesystem, no permission). */
int placeholders_hold(struct placeholders *placeholders, int dir_fd, const char *dir_path,
                      const char *name, enum placeholder_kind kind, struct brig_error *err);

/* Lets go of all, and removes those that nobody else holds. */
void placeholders_done(struct placeholders *placeholders);
