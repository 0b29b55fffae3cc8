/* SPDX-License-Identifier: MIT */
/* Reading a tar archive from a stream: ustar, pax and GNU long names. Sparse files are refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#define TAR_BLOCK 512
#define TAR_NAME_MAX 4095
#define TAR_EXTRA_MAX 65536 /* bytes of one pax header or long name */
#define TAR_CHAIN_MAX 8     /* such entries before one file */

enum tar_type {
    TAR_FILE,
    TAR_HARD_LINK,
    TAR_SYMLINK,
    TAR_DIRECTORY,
    TAR_SPECIAL, /* a device or a FIFO */
};

struct tar_entry {
    enum tar_type type;
    uint64_t size; /* of the contents, which follow; 0 but for files */
    unsigned mode; /* as in the archive */
    int64_t mtime;
    char name[TAR_NAME_MAX + 1]; /* as in the archive, not empty */
    char link[TAR_NAME_MAX + 1]; /* target of a link */
};

/* Where the archive comes from. `read` fills the buffer except at the end of the stream, and returns
 * the number of bytes or a negative code with err set. */
struct tar_input {
    int (*read)(void *context, void *buffer, size_t length, struct brig_error *err);
    void *context;
};

struct tar {
    struct tar_input input;
    uint64_t left;    /* contents of the current entry that were not read */
    unsigned padding; /* after them */
    bool ended;
};

/* Reads up to the contents of the next file, which the caller need not read. Returns 1, 0 at the end
 * of the archive, or a negative code. */
int tar_next(struct tar *tar, struct tar_entry *ret_entry, struct brig_error *err);
/* Reads contents of the current entry: the number of bytes, 0 at their end, or a negative code. */
int tar_read(struct tar *tar, void *buffer, size_t length, struct brig_error *err);
