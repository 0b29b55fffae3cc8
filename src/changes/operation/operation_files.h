/* SPDX-License-Identifier: MIT */
/* The directory of one operation: its info, its marks, and its state in memory. Only for operation.c, undo.c and
 * recover.c. */
#pragma once

#include <stdio.h>

#include "changes/layer/layer.h"
#include "changes/operation/operation.h"

#define OPERATIONS "operations"
#define OPERATION_OBJECTS "objects"
#define OPERATION_READY "ready"
#define OPERATION_DONE "done"
#define OPERATION_UNDONE "undone"
#define OPERATION_BASE ".base" /* after the number of a layer in the operation */
#define OPERATION_SYNC_MAX 32  /* so many files are made durable one by one; more by syncfs() */

struct operation {
    const struct layers *layers;
    int record, dir;
    struct operation_info info;
    struct step_context steps;
    char jail[LAYER_JAIL_MAX];
    FILE *journal; /* while it is written */
    uint32_t next;
    uint64_t count, staged;
    off_t replaced_bytes; /* of files on another filesystem that come into the operation */
    void *timed;          /* for tfind(): directories of which the time is remembered */
    bool ready;
    struct operation_git git;
    struct git_taking *taking; /* holds the locks of the repositories */
};

/* Opens NAME.record/operations, creating it; an fd or a code. */
int operations_open(int record, struct brig_error *err);
/* The greatest ID there, or 0. */
uint64_t operations_last(int operations);

/* Allocates the state for an operation in memory: all descriptors are -1. */
struct operation *operation_new(const struct layers *layers, int record);

/* Adds a layer, which may be NULL: only its root is left. The caller sets what else is known. */
struct step_tree *operation_add_tree(struct operation *operation, const struct layer *layer,
                                     const char *name, const char *root);

/* Whether it is to survive a power cut: not a run of which nothing can be restored. */
bool operation_is_durable(const struct operation_info *info);

/* Reads and writes the file `info`, with the layers. Reading opens the roots. */
int operation_write_info(const struct operation *operation, struct brig_error *err);
int operation_read_info(int operations, uint64_t id, struct operation_info *ret_info,
                        struct operation *operation, struct brig_error *err);

/* The same for the open directory of an operation, which may have no number. */
int operation_read_dir(int dir, struct operation_info *info, struct operation *operation,
                       struct brig_error *err);

/* Gives a directory of the log the next number: the newest operation. */
int operation_number(int operations, const char *name, uint64_t *ret_id, struct brig_error *err);

/* Opens an existing operation with its layers and objects. */
int operation_open(const struct layers *layers, int record, uint64_t id,
                   struct operation **ret_operation, struct brig_error *err);

/* Fails if a root does not exist any more, or, unless `any`, is another directory now. */
int operation_check_roots(const struct operation *operation, bool any, struct brig_error *err);

/* Creates a mark in the operation's directory, durably. `text` may be NULL. */
int operation_mark(int dir, const char *name, const char *text, struct brig_error *err);

/* Makes the journal and all new objects durable. */
int operation_make_durable(struct operation *operation, struct brig_error *err);

/* The directory of objects on the filesystem of a root, if it exists: opens it, or with `make` creates it where it is
 * needed. */
int operation_open_remote(struct operation *operation, struct step_tree *tree, bool make,
                          struct brig_error *err);
/* Move the objects of the user's files there, and back into the operation. */
int operation_export(struct operation *operation, struct brig_error *err);
int operation_import(struct operation *operation, struct brig_error *err);
/* Keeps as much space free as the files need that an operation replaces on another filesystem: all of it, before the first
 * step. operation_import() uses it. */
int operation_reserve(struct operation *operation, struct brig_error *err);
void operation_unreserve(const struct operation *operation);
/* What a file needs. */
off_t operation_space_of(const struct stat *info);
/* Removes the directories of an operation that has changed nothing. */
void operation_drop_remote(const struct operation *operation);

/* Takes all steps, or with `revert` takes them back. */
int operation_take(struct operation *operation, bool revert, operation_report report, void *context,
                   struct brig_error *err);

/* ---- git (operation_git.c) ---- */

/* Whether it has a git record. */
bool operation_has_git(const struct operation *operation);
/* Before the first step: takes the locks and checks all values. In a revert, git stays as it is where that fails, which is
 * noted: returns 1. */
int operation_git_begin(struct operation *operation, bool revert, struct brig_error *err);
/* After the last one. `skipped`: a step could not be taken. */
int operation_git_move(struct operation *operation, bool revert, bool skipped,
                       struct brig_error *err);
/* The undo of operation `id` moves git back. */
int operation_git_reverse(struct operation *operation, uint64_t id, const struct operation_git *git,
                          struct brig_error *err);

/* ---- undo ---- */

/* What an undo has planned. */
struct undo_found {
    uint64_t count;   /* of changes that are undone */
    uint64_t changed; /* files that have changed since */
    uint64_t already; /* files that are as they were before the operation */
    uint64_t lost;    /* files that have changed and were in no checkpoint */
    bool whole;       /* nothing was left out */
};
/* Takes the steps of an undo of `old`, unless files have changed or there is nothing to do. */
int undo_run(struct operation *operation, const struct operation_undo *undo,
             const struct operation_info *old, const struct undo_found *found,
             struct brig_error *err);
