/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), for API keys, for code and output of which only the hash is kept, and for
 * Git LFS objects. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_BLOCK_BYTES 64
#define SHA256_BYTES 32
#define SHA256_HEX_LENGTH 64

struct sha256 {
    uint32_t state[8];
    uint64_t length;
    unsigned char rest[SHA256_BLOCK_BYTES]; /* the bytes after the last complete block */
};

/* Incremental hashing: begin, add any number of times, end. The result is lower-case hexadecimal
 * digits and a NUL. */
void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_end(struct sha256 *hash, char ret_text[SHA256_HEX_LENGTH + 1]);

/* Hashes one buffer. */
void sha256_hex(const void *bytes, size_t length, char ret_text[SHA256_HEX_LENGTH + 1]);
/* HMAC-SHA256 (RFC 2104) of one buffer. */
void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 unsigned char ret_digest[SHA256_BYTES]);
