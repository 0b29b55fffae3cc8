/* SPDX-License-Identifier: MIT */
/* Undoes what a run has changed in the user's files directly, from the checkpoint that was taken before it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "changes/operation/operation.h"

/* Whether operation ID is a run with a checkpoint. */
bool restore_can(int record, uint64_t id);

/* Restores modified and deleted files, and removes added ones, by an operation that can itself be undone. Fails with
 * BRIG_E_STATE, and changes nothing, if a file has changed since, unless undo->force. undo->id is the run; the caller
 * holds the lock of the record. *ret_id gets the new operation. */
int restore_run(const struct layers *layers, int record, const struct operation_undo *undo,
                uint64_t *ret_id, struct brig_error *err);

/* Calls `visit` for each file that the run has changed, with a word for what it did, as operation_steps() does. */
int restore_steps(int record, uint64_t id, operation_step_visit visit, void *context,
                  struct brig_error *err);

/* Records what killed runs have changed: a run that is active has its directory locked. */
int restore_settle(int record, struct brig_error *err);

/* Opens the directory of an operation; -1 if there is none. */
int restore_open_run(int record, uint64_t id);
/* Marks a run as active: an fd with a lock, which the run keeps open. -1 if it is active. */
int restore_lock_run(int run);
