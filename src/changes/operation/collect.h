/* SPDX-License-Identifier: MIT */
/* Removes what is kept for undoing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

struct collected {
    uint64_t operations, bytes;
};

/* Removes the operations of a record that ended before a time, or with `dry` only counts them; with the lock of the
 * record. An interrupted operation stays, and one that has files which a newer operation needs or that
 * were held back and are not decided about. */
int collect_operations(int record, int64_t before_ns, bool dry, struct collected *ret_collected,
                       struct brig_error *err);
