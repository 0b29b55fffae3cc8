/* SPDX-License-Identifier: MIT */
/* The journal of placeholders: by it they are found again when the run that made them is gone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/placeholder.h"

struct str;

/* Opens the journal in a directory; an fd, or -1. */
int journal_open(int dir_fd);

/* For the other functions it must be locked. False if others have it for too long. */
bool journal_lock(int journal);
void journal_unlock(int journal);

/* Appends a record to a text. Its length does not depend on the inode, which is 0 as long as the
 * placeholder is only about to be made. */
void journal_format(struct str *text, enum placeholder_kind kind, uint64_t ino,
                    const char *dir_path, const char *name);
/* The same length of text, and no record. */
void journal_format_none(struct str *text, const char *dir_path, const char *name);

/* Writes records behind all others: where they are, or -1. */
off_t journal_append(int journal, const struct str *text);

/* Whether what was opened is still as a placeholder is made. */
bool journal_is_untouched(int fd, enum placeholder_kind kind);

/* Removes the placeholders that nobody holds, and keeps the records of the rest. */
void journal_clean(int journal);
