/* SPDX-License-Identifier: MIT */
/* Manifests: lists of the files of a tree with their states and where their contents are kept. One is written when a
 * checkpoint is taken, and one for what a run has changed. Sorted by path as base_compare() orders; read and written
 * from the beginning to the end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <brig/brig.h>

#include "changes/layer/base.h"

/* An object of the store, or "@NAME", a clone; "" if there is no content. */
#define MANIFEST_CONTENT_MAX 72

/* Why a checkpoint does not contain an entry and what is below it. The values are in the file. */
enum manifest_absence {
    MANIFEST_PRESENT = '-',
    MANIFEST_IGNORED = 'i', /* an ignored file or directory that is too large: `ident.size` bytes */
    MANIFEST_MASKED = 'm',  /* hidden from the jail, which cannot change it */
    MANIFEST_TYPE = 't',    /* a socket, FIFO or device */
    MANIFEST_UNREADABLE = 'u',
    MANIFEST_DEEP = 'd',     /* a directory with too many levels above it */
    MANIFEST_RESTLESS = 'r', /* the file changed each time it was read */
};

struct manifest_entry {
    const char *path; /* valid until the next call; NULL: there are no more */
    struct ident ident;
    uid_t uid;
    gid_t gid;
    enum manifest_absence absence;
    char content[MANIFEST_CONTENT_MAX];
};

/* ---- reading ---- */

struct manifest_reader;
int manifest_open(int dir, const char *name, struct manifest_reader **ret_reader,
                  struct brig_error *err);
void manifest_close(struct manifest_reader *reader);
/* The value of a header, "" if there is none. */
const char *manifest_header(const struct manifest_reader *reader, const char *name);
/* The next entry: 1, 0 at the end, or a code if the file is damaged. Unless it is 1, the entry has no path. */
int manifest_next(struct manifest_reader *reader, struct manifest_entry *ret_entry,
                  struct brig_error *err);

/* The position of the next entry, and going back to it. */
int64_t manifest_tell(const struct manifest_reader *reader);
int manifest_seek(struct manifest_reader *reader, int64_t position, struct brig_error *err);

/* ---- writing ---- */

struct manifest_writer {
    FILE *file;
};
/* Creates the file, or replaces it. The headers, terminated by a NULL name, come first. */
struct manifest_text {
    const char *name, *value;
};
int manifest_create(int dir, const char *name, const struct manifest_text *headers,
                    struct manifest_writer *ret_writer, struct brig_error *err);
int manifest_write(struct manifest_writer *writer, const struct manifest_entry *entry,
                   struct brig_error *err);
/* Closes the file, with `sync` when it is durable. Without a call of this, close it with manifest_abandon(). */
int manifest_finish(struct manifest_writer *writer, bool sync, struct brig_error *err);
void manifest_abandon(struct manifest_writer *writer);

/* The entry of a file as it is. */
struct manifest_entry manifest_entry_of(const char *path, const struct stat *info);
