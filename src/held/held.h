/* SPDX-License-Identifier: MIT */
/* Held back files: files that a run has created and that a program outside would execute. They are
 * copied into the jail's storage and removed from the project; the user can inspect, restore or
 * delete them there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/place.h"
#include "base/str.h"

struct held_rules {
    const char *const *unprotect; /* names that are not held back */
    size_t unprotect_count;
    bool report_only; /* leave files in place, and only report them */
};

/* Which of the held names exist in a directory. */
#define HELD_NAMES_MAX 256
struct held_set {
    uint64_t words[HELD_NAMES_MAX / 64]; /* a bit for each, in the order of names_next_held() */
};
bool held_set_has(const struct held_set *set, size_t index);
/* Looks which of them exist in a directory now. */
void held_look_at(int top, struct held_set *ret_set);
/* The same as a text without NUL, which another version of brig can read. */
void held_set_write(const struct held_set *set, struct str *text);
void held_set_read(const char *text, struct held_set *ret_set);

/* A granted directory, as it was at the start of the run. */
struct held_root {
    int top;
    char *path;
    struct held_set existed;
};

/* Records the state of a directory, and keeps a duplicate of the fd. Release with
 * held_root_done(). */
int held_look(int top, const char *path, struct held_root *ret_root, struct brig_error *err);
void held_root_done(struct held_root *root);

/* Whether one of the names exists that did not at the start. */
bool held_has_new(const struct held_root *root);

/* Calls `each` for each name that is to be held back: new, and not excepted by the rules. Returns its
 * first failure, after the others. */
struct names_held_name;
typedef int (*held_each)(void *context, const struct held_root *root,
                         const struct names_held_name *held);
int held_find(const struct held_root *root, const struct held_rules *rules, held_each each,
              void *context);

/* Holds back the new files in the directory. `store` is a directory of the storage, or -1: then
 * nothing is moved. FIFOs, sockets and devices are deleted. A line about each file is appended to
 * `notes`. */
int held_take(const struct held_root *root, int store, const struct held_rules *rules,
              struct str *notes);

#define HELD_PART ".held" /* NAME.held in the storage directory */

/* One held back file, directory or link; texts are owned. */
struct held_item {
    char *jail;
    char *place;     /* its directory in the storage: "NAME.held/NUMBER" */
    char *project;   /* the directory it came from, */
    struct place at; /* and which one that was */
    char *path;      /* relative to `project`, as in the table of names */
    char *why;       /* what would execute it */
    struct timespec time;
    mode_t mode;
    uint64_t bytes;
    size_t files;    /* including links, in a directory */
    size_t left_out; /* skipped FIFOs, sockets and devices */
};
struct held_list {
    struct held_item *items;
    size_t count;
};

/* Adds the items of a jail to a list, which is initially zero. `storage` is the directory with all
 * jails. Release with held_list_done(), also after an error. */
int held_list(int storage, const char *jail, struct held_list *list, struct brig_error *err);
void held_list_done(struct held_list *list);

/* Opens an item with O_PATH, or a file below it if it is a directory; "": the item itself. */
int held_open(int storage, const struct held_item *item, const char *below, struct brig_error *err);

/* Calls `visit` for each file and link in and below a held back directory, sorted by name. */
typedef void (*held_visit)(void *context, const char *path, const struct stat *info);
int held_walk(int directory, held_visit visit, void *context, struct brig_error *err);

/* Moves an item back into its project, where its name must be free, and forgets it. Fails with
 * BRIG_E_STATE if another directory is there now, or a link. `to` is a directory to be used instead,
 * or -1. */
int held_restore(int storage, const struct held_item *item, int to, struct brig_error *err);
int held_discard(int storage, const struct held_item *item, struct brig_error *err);
