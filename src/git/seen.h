/* SPDX-License-Identifier: MIT */
/* What the last look at a private git directory has found: the record `seen` beside base/. It is a cache, and valid as long
 * as private_sign() is the same. */
#pragma once

#include "git/transfer.h"

struct seen {
    uint64_t signature; /* of the private directory; 0: nothing was seen */
    uint64_t items;     /* how many things differ from base/ */
    struct str said;    /* what the user was told */
    struct str look;    /* what git printed about it, see fetch.c; empty: that is not known */
};

/* Reads what is known; nothing, if there is no record. Release with seen_done(). */
void seen_read(int folder, struct seen *ret_seen);
void seen_done(struct seen *seen);

/* Writes what a look has found. `said` may be NULL. */
int seen_write(const struct transfer *t, const char *said, struct brig_error *err);
/* The same after a look of which the user is not told, unless nothing has changed since the last one. */
int seen_update(const struct transfer *t, struct brig_error *err);
/* Base/ has changed: nothing is known until the next look. */
void seen_forget(int folder);

/* Writes that nothing differs, or that something does and nothing more is known. */
int seen_write_count(const struct private_git *p, uint64_t items, struct brig_error *err);
