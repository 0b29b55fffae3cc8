/* SPDX-License-Identifier: MIT */
/* Manifests: lists of the files of a tree with their states, sorted by path as path_compare() orders. What a layer is
 * based on, what a checkpoint contains and what a run has changed are such lists.
 *
 * A manifest is written from the beginning to the end, and put in place as a whole. It is read one entry after the other,
 * or beside a walk of a tree; in memory is one block of 64 KiB. Each block has a checksum, which is compared before an
 * entry of it is returned.
 *
 * Lists of brig 0.1 and 0.2 are read through a copy in memory, and are never changed: what is written next is a manifest,
 * and takes the place of the list by a rename. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"

struct brig_error;

/* ---- states ---- */

/* The identity of a file's state. */
struct ident {
    uint32_t mode; /* with the type; 0: there is no file */
    uint32_t unused;
    uint64_t inode, size;
    int64_t mtime_ns, ctime_ns;
};

struct ident ident_of(const struct stat *info);
/* A time of an ident, also one before 1970. */
struct timespec ident_time(int64_t time_ns);
/* Whether it is the same file with the same contents and metadata. Directories are the same if both
 * are directories: their times change whenever something in them does. */
bool ident_equal(const struct ident *a, const struct ident *b);

/* An object of the store, or "@NAME", a clone; "" if there is no content. */
#define MANIFEST_CONTENT_MAX 72

/* What an entry says. The values are in the file. */
enum manifest_kind {
    MANIFEST_PRESENT = '-', /* `ident` was the state of the file; mode 0: there was none */
    MANIFEST_SINCE =
        's', /* unknown, but a file with a later ctime than ident.ctime_ns has changed */
    /* The others: why a checkpoint does not contain the file and what is below it. */
    MANIFEST_IGNORED = 'i', /* an ignored file or directory that is too large: `ident.size` bytes */
    MANIFEST_LARGE = 'l',   /* a file that would exceed what an optional checkpoint reads */
    MANIFEST_HOLES = 'h',   /* a file of which too much is holes */
    MANIFEST_MASKED = 'm',  /* hidden from the jail, which cannot change it */
    MANIFEST_TYPE = 't',    /* a socket, FIFO or device */
    MANIFEST_UNREADABLE = 'u',
    MANIFEST_DEEP = 'd',     /* a directory with too many levels above it */
    MANIFEST_RESTLESS = 'r', /* the file changed each time it was read */
};

struct manifest_entry {
    const char *path; /* valid until the next call; NULL: there are no more */
    enum manifest_kind kind;
    bool covers; /* a directory that the jail has deleted or replaced: see changes/layer/base.h */
    bool has_owner; /* uid and gid are known */
    uid_t uid;
    gid_t gid;
    struct ident ident;
    struct ident applied; /* the state of the jail's file when it was applied; all 0: it was not */
    char content[MANIFEST_CONTENT_MAX];
};

/* The entry of a file as it is. */
struct manifest_entry manifest_entry_of(const char *path, const struct stat *info);

/* ---- reading ---- */

struct manifest;
/* BRIG_E_NOT_FOUND if there is no such file. */
int manifest_open(int dir, const char *name, struct manifest **ret_manifest,
                  struct brig_error *err);
void manifest_close(struct manifest *manifest);
/* The value of a header, "" if there is none. */
const char *manifest_header(const struct manifest *manifest, const char *name);

/* Goes to the next entry: 1, 0 at the end, or a code if the file is damaged. The first call goes to the first one. */
int manifest_next(struct manifest *manifest, struct brig_error *err);
/* The entry that was gone to; its path is NULL before the first and at the end. */
const struct manifest_entry *manifest_entry(const struct manifest *manifest);
/* Goes on to the entry of a path, or to the first one after it: 1 if there is one of this path. Paths are asked for in
 * order. */
int manifest_find(struct manifest *manifest, const char *path, struct brig_error *err);

/* The position of the current entry, and going back to before it. Position 0 is before the first one. */
int64_t manifest_tell(const struct manifest *manifest);
int manifest_seek(struct manifest *manifest, int64_t position, struct brig_error *err);

/* ---- writing ---- */

#define MANIFEST_NAME_MAX 64

struct manifest_writer {
    int file, dir; /* `dir` is borrowed */
    char name[MANIFEST_NAME_MAX];
    unsigned char *block;
    size_t used;
    int64_t offset; /* of the block in the file */
    uint64_t count; /* entries */
};

/* The headers, terminated by a NULL name. */
struct manifest_text {
    const char *name, *value;
};

/* Begins a manifest, which is NAME.new until manifest_finish(). */
int manifest_create(int dir, const char *name, const struct manifest_text *headers,
                    struct manifest_writer *ret_writer, struct brig_error *err);
int manifest_write(struct manifest_writer *writer, const struct manifest_entry *entry,
                   struct brig_error *err);
/* Puts the file in place of the old one; with `durable` it is on the disk then. */
int manifest_finish(struct manifest_writer *writer, bool durable, struct brig_error *err);
/* Removes what was written, unless it is finished. Accepts a writer that is all 0. */
void manifest_abandon(struct manifest_writer *writer);
#define automanifest __attribute__((cleanup(manifest_abandon)))
