/* SPDX-License-Identifier: MIT */
/* Files that a run has created and that a program outside would execute: they are copied into the jail's
 * storage, removed from the project, and can be looked at, restored or deleted there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
 * A line about each file is appended to `notes`. */
int held_take(const struct held_root *root, int store, const struct held_rules *rules,
              struct str *notes, struct brig_error *err);

/* One file that is held back; texts are owned. */
struct held_item {
    char *number;  /* its directory in the store */
    char *project; /* the directory it was in */
    char *path;    /* relative to it */
    char *why;     /* what would execute it */
};
struct held_list {
    struct held_item *items;
    size_t count;
};
int held_list(int store, struct held_list *ret_list, struct brig_error *err);
void held_list_done(struct held_list *list);

/* Puts it back into its project, which must not have a file of this name by now, and forgets it. */
int held_restore(int store, const struct held_item *item, struct brig_error *err);
int held_discard(int store, const struct held_item *item, struct brig_error *err);
/* Opens the copy: a file or a directory. */
int held_open(int store, const struct held_item *item, struct brig_error *err);
