/* SPDX-License-Identifier: MIT */
/* The journal of placeholders: by it they are found again when the run that made them is gone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "cli/placeholder.h"

struct str;

/* Opens the journal in a directory; an fd, or -1. And whether there is anything in it. */
int journal_open(int dir_fd);
bool journal_is_empty(int journal);

/* For the other functions it must be locked. False if others have it for too long. */
bool journal_lock(int journal);
void journal_unlock(int journal);

struct journal_record {
    enum placeholder_kind kind;
    uint64_t ino; /* or 0. The device is not recorded: its number may change at a reboot. */
    const char *path;
};
/* Reads one record, whose path points into the text; false if it is malformed. Pure. */
bool journal_parse(const char *text, struct journal_record *ret_record);

/* The whole journal, for the caller to free, and the offset where its last record ends; NULL if it
 * cannot be read. */
char *journal_read(int journal, size_t *ret_length);
/* The offset where the last record ends, or -1; allocates nothing. */
off_t journal_find_end(int journal);

/* Appends the record of a placeholder that is about to be made to a text: where in it. */
size_t journal_format(struct str *text, enum placeholder_kind kind, const char *dir_path,
                      const char *name);
/* Fills in the inode, as soon as there is one; with 0 it is a record no longer. */
void journal_settle(char *record, enum placeholder_kind kind, uint64_t ino);

/* Writes records behind all others: where they are, or -1. And again at the same place. Neither
 * allocates anything. */
off_t journal_append(int journal, const struct str *text);
void journal_rewrite(int journal, const struct str *text, off_t at);

/* Whether the records at `at`, the first if it is 0, are all there are; and forgets all. */
bool journal_ends(int journal, off_t at);
void journal_forget(int journal);

/* Whether what was opened is still as a placeholder is made. */
bool journal_is_untouched(int fd, const struct stat *info, enum placeholder_kind kind);

/* Removes the placeholders that nobody holds, and keeps the records of the rest. */
void journal_clean(int journal);
