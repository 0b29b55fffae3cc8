/* SPDX-License-Identifier: MIT */
/* A part of a file that is read once, hashed, and decompressed if it is gzip or zstd. */
#pragma once

#include <stdint.h>

#include <brig/brig.h>

#include "base/sha256.h"

/* A part of an open file. */
struct blob {
    int fd;
    uint64_t offset, size;
};

/* The bytes of a blob, decompressed, and both hashes: of the blob and of what comes out. */
struct blob_stream;

/* The file is borrowed. What comes out may have `limit` bytes, and a limited ratio to what goes
 * in. */
int blob_stream_new(const struct blob *blob, uint64_t limit, struct blob_stream **ret_stream,
                    struct brig_error *err);
void blob_stream_free(struct blob_stream *stream);

/* Fills the buffer, except at the end; returns the number of bytes, or a negative code. */
int blob_stream_read(void *stream, void *buffer, size_t length, struct brig_error *err);
/* Reads what is left, and returns both hashes as hexadecimal digits. */
int blob_stream_finish(struct blob_stream *stream, char ret_digest[SHA256_HEX_LENGTH + 1],
                       char ret_content[SHA256_HEX_LENGTH + 1], struct brig_error *err);
/* The number of bytes that have come out. */
uint64_t blob_stream_bytes(const struct blob_stream *stream);

/* Reads a whole small blob, as it is; the caller frees *ret_text, which has a NUL after it. */
int blob_read_all(const struct blob *blob, size_t max, char **ret_text, struct brig_error *err);
