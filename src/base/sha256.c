/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4). */
#include "base/sha256.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 64

static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t value, unsigned count)
{
    return value >> count | value << (32 - count);
}

static uint32_t read_word(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void expand(const unsigned char *block, uint32_t words[ROUNDS])
{
    for (unsigned i = 0; i < 16; i++)
        words[i] = read_word(block + (size_t)4 * i);
    for (unsigned i = 16; i < ROUNDS; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        uint32_t low = turn(a, 7) ^ turn(a, 18) ^ (a >> 3);
        uint32_t high = turn(b, 17) ^ turn(b, 19) ^ (b >> 10);
        words[i] = words[i - 16] + low + words[i - 7] + high;
    }
}

static void add_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t words[ROUNDS], s[8];
    expand(block, words);
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t first = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice +
                         round_constants[i] + words[i];
        uint32_t second = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_begin(struct sha256 *hash)
{
    *hash = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                      0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    while (length > 0) {
        size_t used = hash->length % SHA256_BLOCK_BYTES, part = SHA256_BLOCK_BYTES - used;
        if (part > length)
            part = length;
        memcpy(hash->rest + used, at, part);
        hash->length += part;
        at += part;
        length -= part;
        if (used + part == SHA256_BLOCK_BYTES)
            add_block(hash->state, hash->rest);
    }
}

/* The padding of the last block: a one bit, zeros, and the length in bits. */
static void finish(struct sha256 *hash)
{
    static const unsigned char padding[SHA256_BLOCK_BYTES] = {0x80};
    unsigned char bits[8];
    size_t used = (hash->length + sizeof bits) % SHA256_BLOCK_BYTES;
    for (size_t i = 0; i < sizeof bits; i++)
        bits[i] = (unsigned char)(hash->length * 8 >> (56 - 8 * i));
    sha256_add(hash, padding, SHA256_BLOCK_BYTES - used);
    sha256_add(hash, bits, sizeof bits);
}

void sha256_end(struct sha256 *hash, char ret_text[SHA256_HEX_LENGTH + 1])
{
    finish(hash);
    for (size_t i = 0; i < 8; i++)
        (void)snprintf(ret_text + 8 * i, 9, "%08" PRIx32, hash->state[i]);
}

void sha256_hex(const void *bytes, size_t length, char ret_text[SHA256_HEX_LENGTH + 1])
{
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, ret_text);
}

static void end_bytes(struct sha256 *hash, unsigned char ret_digest[SHA256_BYTES])
{
    finish(hash);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        ret_digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 unsigned char ret_digest[SHA256_BYTES])
{
    unsigned char block[SHA256_BLOCK_BYTES] = {0}, inner[SHA256_BYTES];
    struct sha256 hash;
    if (key_length > sizeof block) {
        sha256_begin(&hash);
        sha256_add(&hash, key, key_length);
        end_bytes(&hash, block);
    } else if (key_length > 0) {
        memcpy(block, key, key_length);
    }
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    sha256_begin(&hash);
    sha256_add(&hash, block, sizeof block);
    sha256_add(&hash, bytes, length);
    end_bytes(&hash, inner);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    sha256_begin(&hash);
    sha256_add(&hash, block, sizeof block);
    sha256_add(&hash, inner, sizeof inner);
    end_bytes(&hash, ret_digest);
}
