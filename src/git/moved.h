/* SPDX-License-Identifier: MIT */
/* What a git record (git/take.h) says has moved, in words, for the log. */
#pragma once

#include "base/str.h"

/* Appends what the record in a directory has moved, "moved main from 1a2b3c4 to 5d6e7f8, made topic": 1, 0 if there is none, or
 * a code. */
int moved_read(int dir, struct str *ret_what, struct brig_error *err);
