/* SPDX-License-Identifier: MIT */
/* Files and directories of the storage, copies of a user's or a jail's files, and answers of git that are kept. No
 * function here follows a symbolic link in the last part of a name, or waits for a FIFO. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct brig_error;

bool files_exists(int dir, const char *name);

/* Opens a directory for reading; -1 with errno. */
int files_open_dir(int at, const char *name);
/* The same as a stream for files_next(); NULL with errno. */
DIR *files_list(int at, const char *name);
/* The next entry, without "." and ".."; NULL at the end. */
const struct dirent *files_next(DIR *dir);

/* Opens a directory of the storage, which is made if it is missing. */
int files_make_dir(int at, const char *name, int *ret_fd, struct brig_error *err);

/* A text that no other file has while this one exists: "DEVICE-INODE". `name` may be "" for the fd itself. False if there is
 * no such file. */
#define FILES_ID_MAX 40
bool files_identify(int dir, const char *name, char ret_id[FILES_ID_MAX]);

/* A name that no file has: the prefix and random digits. */
int files_random_name(const char *prefix, char *ret_name, size_t size, struct brig_error *err);

/* Writes a file of the storage under another name and renames it: whoever reads it finds the old or the new text. */
int files_write(int dir, const char *name, const void *bytes, size_t length,
                struct brig_error *err);

/* Appends what a file contains; false if it is missing, cannot be read or is larger than 32 MiB. */
bool files_read(int dir, const char *name, struct str *text);

/* ---- answers of git ---- */

/* An answer is kept in `cache`, a directory of the storage or -1, with the states of the files it depends on. */

/* Appends the path of a file and its state; a missing file has a state as well, because it may appear. */
void files_add_state(struct str *states, const char *path);
/* Appends the answer; false if there is none, or a file has changed. */
bool files_read_answer(int cache, const char *name, struct str *ret_answer);
void files_write_answer(int cache, const char *name, const struct str *states,
                        const struct str *answer);

/* ---- copying ---- */

/* Copies one file, sharing its blocks where the filesystem can. 1, 0 if there is no regular file of this
 * name, or a negative code. An existing target is replaced only if it was made by us in a directory that
 * no jail writes to: the caller says where to copy to. */
int copying_file(int from, const char *name, int to, const char *to_name, struct brig_error *err);

/* Copies the directory `name` with its regular files and directories alone, into one that may exist. Names that end with
 * `except` are left out (NULL: none). More than so many files or levels is an error. 1, 0 if there is no such
 * directory, or a negative code. */
int copying_tree(int from, const char *name, int to, const char *to_name, const char *except,
                 struct brig_error *err);

/* Copies the regular file, the symbolic link or the directory `name`; in a directory also its links, as links. What else is
 * in it is counted and left out. 1, 0 if `name` is none of these, or a negative code. */
int copying_all(int from, const char *name, int to, const char *to_name, size_t *ret_left_out,
                struct brig_error *err);
