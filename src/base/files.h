/* SPDX-License-Identifier: MIT */
/* Files and directories of the storage, copies of files of the user or of a jail, and cached
 * answers of git. No function here follows a symbolic link in the last component of a name, or
 * blocks on a FIFO. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct brig_error;

bool files_exists(int dir, const char *name);

/* Opens a directory for reading; -1 with errno. */
int files_open_dir(int at, const char *name);
/* Opens a directory as a stream for files_next(); NULL with errno. */
DIR *files_list(int at, const char *name);
/* The next entry, except "." and ".."; NULL at the end. */
const struct dirent *files_next(DIR *dir);

/* Whether a directory has no entries. */
bool files_is_empty_dir(int dir);
/* Whether an open `.git` is the mount point of another run: it is empty, and that run holds a lock
 * on it. Otherwise an empty one is locked for the caller until it is closed. */
bool files_is_mount_point(int dir);

/* Opens a directory of the storage, and creates it if it is missing. */
int files_make_dir(int at, const char *name, int *ret_fd, struct brig_error *err);

/* Creates the missing directories of a relative path, without following links; -1 on failure. */
int files_make_path(int top, const char *path);

/* Writes an id that is unique while the file exists: "BIRTH-INODE", or "DEVICE-INODE" where the filesystem knows no birth time:
 * the number of a device may change with a reboot. `name` may be "" for the fd itself. False if the file does not exist. */
#define FILES_ID_MAX 40
bool files_identify(int dir, const char *name, char ret_id[FILES_ID_MAX]);
/* Whether an id of this or an earlier version, whose ids had the device, is that of an open file. */
bool files_has_id(int fd, const char *id);
/* Renames PREFIX and the earlier id of an open file, if that exists in `dir`, to PREFIX and its id of today. */
void files_rename_id(int dir, const char *prefix, int fd);

/* Writes an unused name: the prefix and random digits. */
int files_random_name(const char *prefix, char *ret_name, size_t size, struct brig_error *err);

/* Makes a file durable, or with "." the directory itself, as far as that is possible. */
void files_sync(int dir, const char *name);

/* Replaces a file of the storage atomically, by a rename: readers see the old or the new
 * contents. */
int files_write(int dir, const char *name, const void *bytes, size_t length,
                struct brig_error *err);
/* The same, and it is on the disk when this returns. */
int files_write_durable(int dir, const char *name, const void *bytes, size_t length,
                        struct brig_error *err);

/* Appends the contents of a file; false if it is missing, unreadable or larger than 32 MiB. */
bool files_read(int dir, const char *name, struct str *text);

/* A file in memory with these contents, at its beginning: an fd, or a code. */
int files_in_memory(const void *bytes, size_t length, struct brig_error *err);

/* ---- cached answers of git ---- */

/* An answer is kept in `cache`, a directory of the storage or -1, with the states of the files it
 * depends on. */

/* Appends the path and the state of a file. A missing file has a state too, because it may be
 * created later. */
void files_add_state(struct str *states, const char *path);
/* Appends the cached answer; false if there is none, or a file it depends on has changed. */
bool files_read_answer(int cache, const char *name, struct str *ret_answer);
void files_write_answer(int cache, const char *name, const struct str *states,
                        const struct str *answer);

/* ---- copying ---- */

/* Copies one file, sharing its blocks if the filesystem can. Returns 1, 0 if there is no regular
 * file with this name, or a negative code. Replaces an existing target, so the target directory
 * must be one that no jail can write to. */
int copying_file(int from, const char *name, int to, const char *to_name, struct brig_error *err);

/* Copies the regular files and directories of the directory `name` into a directory that may exist.
 * Names that end with `except` are skipped (NULL: none). Exceeding the limit of files or levels is
 * an error. Returns 1, 0 if there is no such directory, or a negative code. */
int copying_tree(int from, const char *name, int to, const char *to_name, const char *except,
                 struct brig_error *err);
