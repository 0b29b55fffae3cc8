/* SPDX-License-Identifier: MIT */
/* Converts configuration files of jai to those of brig. Pure. The syntax is the same, and every
 * directive of jai is one of brig; what differs is where files are. */
#pragma once

#include <brig/brig.h>

struct str;

/* Appends the text of a file as brig needs it:
 *   - `storage` becomes a comment, because jai's jails are not used by both programs;
 *   - a relative path with a slash of `script` and `initjail` begins at `dir`, jai's directory;
 *   - a directive that brig does not know becomes a comment.
 * Each change is a line of `notes`, which begins with the number of the line in the file. */
void import_convert(const char *text, const char *dir, struct str *to, struct str *notes);

/* Calls `found` for each file in jai's directory that a `script` or `initjail` directive names
 * without a slash, and `storage` for the value of that directive, which is never NULL. */
struct import_hooks {
    void *context;
    void (*script)(void *context, const char *name);
    void (*storage)(void *context, const char *value);
};
void import_scan(const char *text, const struct import_hooks *hooks);
