/* SPDX-License-Identifier: MIT */
/* A temporary bare git repository in the record of a jail, which no jail sees, for work with git on
 * files that a jail has written. It has no attributes and no configuration except its format, so
 * git uses only the user's. */
#pragma once

#include <brig/brig.h>

#define SCRATCH_NAME_MAX 64

struct scratch {
    int record; /* NAME.record, borrowed */
    int dir;    /* the repository, an fd; locked, which tells it from one that was left behind */
    char name[SCRATCH_NAME_MAX];
};
#define SCRATCH_INIT                                                                               \
    (struct scratch)                                                                               \
    {                                                                                              \
        .record = -1, .dir = -1                                                                    \
    }

/* Creates the repository, and removes those that killed commands have left behind. Remove it with
 * scratch_remove(). */
int scratch_make(int record, struct scratch *ret_scratch, struct brig_error *err);
/* Accepts one that was not made. */
void scratch_remove(struct scratch *scratch);

/* Creates a file in the repository. */
int scratch_write(const struct scratch *scratch, const char *name, const void *bytes, size_t length,
                  struct brig_error *err);
