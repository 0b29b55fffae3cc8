/* SPDX-License-Identifier: MIT */
/* Held back files: files that a run has created and that a program outside would execute. Each is an operation of the kind
 * `hold`, which has deleted the name from the user's directory: its undo keeps the file.
 *
 * The file is renamed aside first, to NAME.held-X in its directory. That needs no space and no lock, and no program obeys
 * it there. Then it is copied into the operation, as the jail may have kept a hard link to it, and removed. Until the
 * operation is complete, its directory in the log is `hold-X`, so that it disturbs no other operation and none disturbs it.
 * holds_settle() completes what a killed process, or a full disk, has left. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/place.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation.h"

struct held_root;
struct names_held_name;

/* Holds back one name of a granted directory. FIFOs, sockets and devices are deleted. Appends a line about it to `notes`. For
 * held_take(). */
int hold_name(int record, const struct held_root *root, const struct names_held_name *name,
              struct str *notes, struct brig_error *err);

/* Completes what a process that was killed, or that had no space, has begun. Needs no lock. */
int holds_settle(int record, struct brig_error *err);

/* A file, directory or link of which nobody has decided whether it is kept. */
struct hold {
    char jail[LAYER_JAIL_MAX];
    uint64_t id;   /* of the operation */
    char *project; /* the directory it came from; owned */
    struct place place;
    char path[OPERATION_TEXT_MAX];    /* relative to it */
    char program[OPERATION_TEXT_MAX]; /* what would execute it */
    char *target;                     /* of a link, else NULL; owned */
    int64_t time_ns;
    mode_t mode;
    uint64_t bytes;
    uint64_t files;   /* in a directory, including links */
    uint64_t special; /* FIFOs, sockets and devices that are not in it */
};
struct hold_list {
    struct hold *items;
    size_t count;
};

/* Adds what a record holds to a list, which is initially zero. Takes the lock of the record if an earlier version has left
 * something. Release with hold_list_done(), also after an error. */
int holds_list(int record, struct hold_list *list, struct brig_error *err);
void hold_list_done(struct hold_list *list);

/* What was held back, or a part of it. */
struct hold_file {
    const char *path; /* relative to the project */
    int dir;          /* where its copy is, and its name there */
    const char *name;
    mode_t mode;
    uint64_t bytes;
};
/* Calls `visit` for each file, link and directory of a hold, sorted by name, a directory after what is in it. A result other
 * than 0 ends it and is returned. */
typedef int (*hold_visit)(void *context, const struct hold_file *file, struct brig_error *err);
int hold_each(int record, const struct hold *hold, hold_visit visit, void *context,
              struct brig_error *err);

/* Puts it back, or into the directory `to`, where its name must be free. Fails with BRIG_E_STATE if another directory is
 * there now, or a link. */
int hold_keep(int record, const struct hold *hold, const char *to, struct brig_error *err);
/* Deletes it. */
int hold_discard(int record, const struct hold *hold, struct brig_error *err);
