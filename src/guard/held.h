/* SPDX-License-Identifier: MIT */
/* Files that a run has created and that a program outside would execute: they are copied into the jail's
 * storage, removed from the project, and can be looked at, restored or deleted there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/str.h"

struct held_rules {
    const char *const *unprotect; /* names that are not held back */
    size_t unprotect_count;
    bool report_only; /* leave them in place, and only say what they are */
};

/* A granted directory, as it was when the run began. */
struct held_root {
    int top;
    char *path;
    uint64_t existed; /* a bit for each row of the table in held.c */
};

/* Looks at a directory, of which a copy of the fd is kept. Release with held_root_done(). */
int held_look(int top, const char *path, struct held_root *ret_root, struct brig_error *err);
void held_root_done(struct held_root *root);

/* Whether there is a name that was not there. */
bool held_has_new(const struct held_root *root);

/* Holds back what is new in the directory. `store` is a directory of the storage, or -1: then nothing is moved.
 * FIFOs, sockets and devices are deleted. A line about each file is appended to `notes`. */
int held_take(const struct held_root *root, int store, const struct held_rules *rules,
              struct str *notes);

#define HELD_PART ".held" /* of a jail: NAME.held in the storage directory */

/* One file, directory or link that is held back; texts are owned. */
struct held_item {
    char *jail;
    char *place;   /* its directory in the storage: "NAME.held/NUMBER" */
    char *project; /* the directory it was in */
    char *path;    /* relative to it, as in the table of names */
    char *why;     /* what would execute it */
    struct timespec time;
    mode_t mode;
    uint64_t bytes;
    size_t files;    /* in a directory, with links */
    size_t left_out; /* FIFOs, sockets and devices that were in it */
};
struct held_list {
    struct held_item *items;
    size_t count;
};

/* Adds the items of a jail to a list, which is zero in the beginning. `storage` is the directory with all jails. Release
 * with held_list_done(), also after an error. */
int held_list(int storage, const char *jail, struct held_list *list, struct brig_error *err);
void held_list_done(struct held_list *list);

/* Opens an item with O_PATH, or what is below it if it is a directory; "": the item itself. */
int held_open(int storage, const struct held_item *item, const char *below, struct brig_error *err);

/* Calls back for each file and link in a directory that is held back and below it, in the order of their names. */
typedef void (*held_visit)(void *context, const char *path, const struct stat *info);
int held_walk(int directory, held_visit visit, void *context, struct brig_error *err);

/* Puts it back into its project, which must not have a file of this name by now, and forgets it. */
int held_restore(int storage, const struct held_item *item, struct brig_error *err);
int held_discard(int storage, const struct held_item *item, struct brig_error *err);
