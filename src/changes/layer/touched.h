/* SPDX-License-Identifier: MIT */
/* Times of change that brig itself has caused, in NAME.record/touched. A rename, a hard link and a mode give a file a new
 * time of change, for all its names; so the time alone does not tell whether the user has changed a file since. Each
 * operation appends, for every file that it has moved or given a mode, the time that it found and the time that it left. A
 * time is explained if these lead to it, one after another, from a time that is known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/manifest.h"

struct touched_entry {
    uint64_t inode;
    int64_t from_ns, to_ns; /* from_ns 0: whatever it was; a copy that an undo has put there */
};

/* Appends entries, with the lock of the record. */
int touched_add(int record, const struct touched_entry *items, size_t count,
                struct brig_error *err);

/* The entries of a record, read when they are first needed. Initialise with only `record`; release with touched_done(). */
struct touched {
    int record;
    bool is_read;
    struct touched_entry *items; /* sorted */
    size_t count;
};
void touched_done(struct touched *touched);

/* Whether a file with this time of change has changed by nothing but operations since a time. */
bool touched_explains(struct touched *touched, uint64_t inode, int64_t since_ns, int64_t now_ns);

/* Whether a file is a copy of another one, which an undo has put in its place and nothing else has changed since. */
bool touched_is_copy(struct touched *touched, const struct ident *wanted, const struct stat *now);

/* Whether it is that, or the file itself, changed by nothing but operations. */
bool touched_is_same(struct touched *touched, const struct ident *wanted, const struct stat *now);
