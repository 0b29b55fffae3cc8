/* SPDX-License-Identifier: MIT */
/* The kernel's table of mounts, as text. */
#pragma once

#include <stdbool.h>

struct mountinfo {
    unsigned device_major, device_minor;
    const char *root;  /* which directory of its filesystem it shows */
    const char *point; /* where */
};

/* Takes the next line off a table, which it changes: escapes are undone in place. False at the end.
 * Lines that are none are passed over. The texts live as long as the table. */
bool mountinfo_next(char **table, struct mountinfo *ret_mount);
