/* SPDX-License-Identifier: MIT */
/* Placeholders: what takes up a name that does not exist, so that something can be mounted on it in
 * a jail. They lie in the user's own directories and go with the last run that needs them.
 *
 * Every run that relies on one holds a shared lock on it, whoever made it. Who makes some writes them
 * down in a journal before. At the end of a run, and at the start of the next, whatever is in
 * the journal, is unlocked, unchanged and still empty is removed: so a crash leaves nothing for long,
 * and of several runs the last cleans up.
 *
 * They are made anew for each run and not kept for the next. Somebody who opened one could follow it
 * to where it is kept, or into the directory that it holds a name in next. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/str.h"

#define PLACEHOLDER_MAX 512    /* of one run; each is an open file */
#define PLACEHOLDER_SIZE_MAX 2 /* bytes in one that is a file */
#define PLACEHOLDER_SELF_TEXT ".\n"

enum placeholder_kind {
    PLACEHOLDER_DIRECTORY,
    PLACEHOLDER_FILE,   /* empty */
    PLACEHOLDER_SELF,   /* a file that holds ".", for git's commondir: "the same directory" */
    PLACEHOLDER_CLOSED, /* a directory that cannot be entered */
};

/* What unlinkat() needs to be told. */
int placeholder_unlink_flags(enum placeholder_kind kind);

/* A directory with placeholders. */
struct placeholder_dir {
    int fd;
    char *path;
    bool closed; /* nobody can make anything there */
};

struct placeholder {
    size_t dir;
    char *name;
    enum placeholder_kind kind;
    enum { PLACEHOLDER_WANTED, PLACEHOLDER_MADE, PLACEHOLDER_FOUND, PLACEHOLDER_IMPOSSIBLE } state;
    int lock; /* fd, or -1 */
    uint64_t ino;
    size_t first_rule, rule_count; /* the caller's: what is of no use without it */
};

struct placeholders {
    int journal;                   /* on disk, or else of this run only */
    off_t records_at, records_end; /* what we wrote into it last */
    struct str records;            /* of what is only wanted, to be written */
    struct placeholder_dir *dirs;
    size_t dir_count;
    struct placeholder *items;
    size_t count, room;
    size_t settled;            /* of these are no longer only wanted */
    struct brig_error failure; /* why not all could be made, for who asks again */
    int *removed;              /* open still: see placeholders_remove() */
    size_t removed_count;
    bool announced; /* the journal is locked, until it says what has become of them */
    bool making;    /* by this thread */
    pthread_t maker;
};

#define PLACEHOLDERS_INIT                                                                          \
    (struct placeholders)                                                                          \
    {                                                                                              \
        .journal = -1                                                                              \
    }

/* Opens the journal in a directory (-1: there is none) and removes what an earlier run left. Release
 * with placeholders_done. */
void placeholders_begin(struct placeholders *placeholders, int journal_dir);

/* Remembers NAME in a directory, whose path is for the journal, to be held. */
int placeholders_want(struct placeholders *placeholders, int dir_fd, const char *dir_path,
                      const char *name, enum placeholder_kind kind, struct brig_error *err);

/* Locks the journal and writes down what is wanted, before any of it is made; the functions below do
 * that first. Without a journal the run goes on: a crash then leaves an empty directory. */
void placeholders_announce(struct placeholders *placeholders);

/* Has a thread begin with what placeholders_make() does, which then waits for it. Nothing else may be
 * done with them meanwhile. With one CPU nothing happens. */
void placeholders_make_beside(struct placeholders *placeholders);

/* Makes what is wanted, unless it exists, and locks it. What nobody could make here (a read-only
 * filesystem, no permission) is PLACEHOLDER_IMPOSSIBLE then. */
int placeholders_make(struct placeholders *placeholders, struct brig_error *err);

/* Removes those that nobody else holds and lets go of the others. A directory is given back to its
 * filesystem when it is closed for the last time, which takes ten times as long as removing its name:
 * those on the filesystem of the journal stay open in `removed`, for who has time for it. */
void placeholders_remove(struct placeholders *placeholders);

/* Closes those that stay open. Of who has them too, the last has the work of it. */
void placeholders_let_go(struct placeholders *placeholders);

/* Removes what is left, and lets go of all. */
void placeholders_done(struct placeholders *placeholders);
