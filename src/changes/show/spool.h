/* SPDX-License-Identifier: MIT */
/* Lists of status items in temporary files. */
#pragma once

#include <stdio.h>

#include <brig/brig.h>

#include "base/str.h"

struct inventory_item;

struct spool {
    FILE *file;
    struct str text; /* of the item that was read last */
};

/* Creates a file without a name in a directory or, if that is not possible, in /var/tmp. Close it with
 * fclose(). */
int spool_file(int dir, FILE **ret_file, struct brig_error *err);
/* Writes what is buffered and goes to the beginning. */
int spool_rewind(FILE *file, struct brig_error *err);

int spool_write(FILE *file, const struct inventory_item *item, struct brig_error *err);
/* Reads the next item: 1, 0 at the end, or a negative code. Its texts are valid until the next
 * call. */
int spool_read(struct spool *spool, struct inventory_item *ret_item, struct brig_error *err);
