/* SPDX-License-Identifier: MIT */
/* The kernel's table of mounts, as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mountinfo {
    int id, parent; /* of this mount, and of the mount it is attached to */
    unsigned device_major, device_minor;
    const char *root;            /* the directory of the filesystem that the mount shows */
    const char *point;           /* the mount point */
    const char *type;            /* of its filesystem; "" if the line does not say */
    const char *options, *super; /* of the mount and of its filesystem, separated by commas */
    bool follows;                /* a slave mount: mounts on its master propagate to it */
};

/* The mounts of a process (0: the caller). The mounts point into the text. */
struct mountinfo_table {
    char *text;
    struct mountinfo *mounts;
    size_t count;
};
/* Reads the table: 0, or -1 with errno. In a jail the table may be incomplete. */
int mountinfo_read(pid_t pid, struct mountinfo_table *ret_table);
void mountinfo_done(struct mountinfo_table *table);
/* The topmost mount at an absolute path without links; other mounts may be hidden below it. NULL if
 * the table has none. */
const struct mountinfo *mountinfo_at(const struct mountinfo_table *table, const char *path);

/* Parses the next line of a table, in place: escapes are undone in the text. Malformed lines are
 * skipped. Returns false at the end. The strings live as long as the table. */
bool mountinfo_next(char **table, struct mountinfo *ret_mount);
