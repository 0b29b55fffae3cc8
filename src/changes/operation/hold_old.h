/* SPDX-License-Identifier: MIT */
/* A hold that is under way, and the store of brig 0.1 and 0.2, NAME.held, which becomes operations. Only for hold.c and
 * hold_old.c. */
#pragma once

#include "changes/operation/hold.h"

struct hold_pending {
    char name[OPERATION_RUN_MAX]; /* of its directory in the log */
    int operations, lock;
    struct operation *operation;
    bool links; /* hard links do for copies: no jail has seen these files */
};
#define HOLD_PENDING_INIT                                                                          \
    (struct hold_pending)                                                                          \
    {                                                                                              \
        .operations = -1, .lock = -1                                                               \
    }

/* Begins a hold, with pending->name, of what `hold` describes. */
int hold_begin(int record, const struct hold *hold, struct hold_pending *pending,
               struct brig_error *err);
/* Opens one that a killed process has left: 1, or 0 if it is in use or complete. */
int hold_open_pending(int record, const char *name, struct hold_pending *pending,
                      struct brig_error *err);
/* Stores the file, unless that was done before, removes it, and numbers the operation. */
int hold_complete(struct hold_pending *pending, int dir, const char *name, struct brig_error *err);
/* To be called in any case. */
void hold_pending_done(struct hold_pending *pending);

/* Makes operations of what is in the store of an earlier version, with the lock of the record, and removes it. Can be killed
 * at any time. */
int hold_convert(int record, struct brig_error *err);
