/* SPDX-License-Identifier: MIT */
/* Small files of the storage, in which no jail writes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Writes a file under another name and renames it: whoever reads it finds the old or the new text. */
int files_write(int dir, const char *name, const void *bytes, size_t length,
                struct brig_error *err);

/* Appends what a file contains; false if it is missing, cannot be read or is larger than 32 MiB. */
bool files_read(int dir, const char *name, struct str *text);

/* ---- copying ---- */

/* Copies files without following a symbolic link or waiting for a FIFO, with which the source
 * may have been prepared. */

struct brig_error;

/* Copies one file, sharing its blocks where the filesystem can. 1, 0 if there is no regular file of this
 * name, or a negative code. An existing target is replaced only if it was made by us in a directory that
 * no jail writes to: the caller says where to copy to. */
int copying_file(int from, const char *name, int to, const char *to_name, struct brig_error *err);

/* Copies the directory `name` with its regular files and directories alone, into one that may exist. Names that end with `except` are
 * left out (NULL: none). More than so many files or levels is an error. 1, 0 if there is no such
 * directory, or a negative code. */
int copying_tree(int from, const char *name, int to, const char *to_name, const char *except,
                 struct brig_error *err);

/* Copies the regular file, the symbolic link or the directory `name`; in a directory also its links, as links. What else is in
 * it is counted and left out. 1, 0 if `name` is none of these, or a negative code. */
int copying_all(int from, const char *name, int to, const char *to_name, size_t *ret_left_out,
                struct brig_error *err);
