/* SPDX-License-Identifier: MIT */
/* Risk flags: changes after which something runs outside the jail, or that are unusual enough that the
 * user should look at them. The table of names (held/names.h), and a few checks of the file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct change;
struct names_mark;

/* The mark of a change; false if it has none. Deleted files have one only if what is left without them
 * behaves differently, such as settings. A file that cannot be read is judged by its name and mode. */
bool risk_judge(const struct change *change, struct names_mark *ret_mark);

/* The reason of the mark, or NULL. */
const char *risk_find(const struct change *change);

/* The same without reading files: neither credentials nor what is in package.json and in lock files count. */
const char *risk_find_quickly(const struct change *change);
