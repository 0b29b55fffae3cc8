/* SPDX-License-Identifier: MIT */
/* Rows that brigd 0.1 left in its spool, files NUMBER.spool of records, for this version's history. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct brig_error;
struct row;
struct store;

/* Parses the record at the start of `bytes`: >0, how many bytes it takes, and the row, which is to be
 * released with row_done(); 0, it is not complete; negative, it is damaged. Pure. */
long old_spool_parse(const void *bytes, size_t length, struct row *ret_row);

/* Stores the rows of all such files in SQLite, oldest first, and removes each file after its rows are
 * stored. What follows a damaged record is kept in NUMBER.spool.damaged. Returns the number of rows. */
int old_spool_import(const char *directory, struct store *store, uint64_t *ret_damaged,
                     struct brig_error *err);
