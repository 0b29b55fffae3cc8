/* SPDX-License-Identifier: MIT */
/* What the last look at a private git directory has found: the record `seen` beside base/. It is a cache, and valid as long
 * as private_sign() is the same. */
#pragma once

#include "git/transfer.h"

struct seen {
    uint64_t signature; /* of the private directory; 0: nothing was seen */
    uint64_t items;     /* how many things differ from base/ */
    struct str said;    /* what the user was told */
};

/* Reads what is known; nothing, if there is no record. Release with seen_done(). */
void seen_read(int folder, struct seen *ret_seen);
void seen_done(struct seen *seen);

/* Writes what a look has found: how many items there are, with their names and both values. `said` may be NULL. */
int seen_write(const struct transfer *t, uint64_t signature, const char *said,
               struct brig_error *err);
/* Writes that nothing differs, or that something does and nothing more is known. */
int seen_write_count(const struct private_git *p, uint64_t items, struct brig_error *err);
