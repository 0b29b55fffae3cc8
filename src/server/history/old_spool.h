/* SPDX-License-Identifier: MIT */
/* Rows that brigd 0.1 left in its spool, files NUMBER.spool of records, for this version's history. */
#pragma once

#include <stdint.h>

struct brig_error;
struct store;

/* Stores the rows of all such files in SQLite, oldest first, and removes each file after its rows are
 * stored. What follows a damaged record is kept in NUMBER.spool.damaged. Returns the number of rows. */
int old_spool_import(const char *directory, struct store *store, uint64_t *ret_damaged,
                     struct brig_error *err);
