/* SPDX-License-Identifier: MIT */
/* The kernel's table of mounts, as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mountinfo {
    int id, parent; /* its own, and that of the mount it is on */
    unsigned device_major, device_minor;
    const char *root;            /* which directory of its filesystem it shows */
    const char *point;           /* where */
    const char *type;            /* of its filesystem; "" if the line does not say */
    const char *options, *super; /* of the mount and of its filesystem, separated by commas */
    bool follows;                /* what is mounted or unmounted on its master is here, too */
};

/* The table of the mounts of a process, or with 0 our own: its text, which the mounts point into. */
struct mountinfo_table {
    char *text;
    struct mountinfo *mounts;
    size_t count;
};
/* Reads it: 0, or -1 with errno. What there is of it to read in a jail is read. */
int mountinfo_read(pid_t pid, struct mountinfo_table *ret_table);
void mountinfo_done(struct mountinfo_table *table);
/* The mount on which an absolute path without links is found: there may be others at the same place,
 * below it. NULL if the table has none. */
const struct mountinfo *mountinfo_at(const struct mountinfo_table *table, const char *path);

/* Takes the next line off a table, which it changes: escapes are undone in place. False at the end.
 * Lines that are none are passed over. The texts live as long as the table. */
bool mountinfo_next(char **table, struct mountinfo *ret_mount);
