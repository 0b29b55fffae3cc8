/* SPDX-License-Identifier: MIT */
/* What a git record (git/take.h) says has moved, in words: for `brig log`, and for a user who brings it back by hand. */
#pragma once

#include "base/str.h"

struct moved {
    struct str what;     /* "main from 1a2b3c4 to 5d6e7f8, made topic"; empty: nothing */
    struct str commands; /* that bring it back, joined by "; " */
};

/* Reads the record of an operation, whose directory is `dir`: 1, 0 if there is none, or a code. Release with
 * moved_done(). */
int moved_read(int dir, struct moved *ret_moved, struct brig_error *err);
void moved_done(struct moved *moved);
