/* SPDX-License-Identifier: MIT */
/* The format of messages between processes: a version, then numbers, texts and bytes in an order
 * that writer and reader agree on. Both run on the same machine, so numbers have the native byte
 * order.
 *
 * Writing appends to a string and shares its failure flag. Reading trusts nothing: every length and
 * count is checked against the bytes left and against a limit of the caller. After a failure every
 * read returns 0 or an empty text, so a chain of reads is checked once, with wire_done(). Only
 * arrays are allocated, and their size is bounded by the bytes left; texts and bytes are pointers
 * into the message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct str;

void wire_put_version(struct str *out, uint64_t version);
void wire_put_u64(struct str *out, uint64_t value);
void wire_put_i64(struct str *out, int64_t value);
void wire_put_bool(struct str *out, bool value);
void wire_put_bytes(struct str *out, const void *bytes, size_t length);
void wire_put_text(struct str *out, const char *text); /* NULL stays NULL */

struct wire_reader {
    const unsigned char *at;
    size_t left;
    bool failed;
};

/* Borrows the message, which must live as long as the values read from it. A different version is a
 * failure. */
struct wire_reader wire_open(const void *message, size_t length, uint64_t version);
/* Whether all reads succeeded and consumed the whole message. */
bool wire_done(const struct wire_reader *in);

uint64_t wire_get_u64(struct wire_reader *in, uint64_t max);
int64_t wire_get_i64(struct wire_reader *in, int64_t min, int64_t max);
bool wire_get_bool(struct wire_reader *in);
/* The bytes are followed by a NUL that is not counted. "" on failure. */
const char *wire_get_bytes(struct wire_reader *in, size_t max, size_t *ret_length);
/* A text of at most max bytes before its NUL, without a NUL inside. "" on failure, and for a NULL
 * text. */
const char *wire_get_text(struct wire_reader *in, size_t max);
/* The same, but NULL for a NULL text and on failure. */
const char *wire_get_text_or_null(struct wire_reader *in, size_t max);
/* The number of items that follow, at most max. Each item has at least one number, text or byte
 * string, so the count is at most an eighth of the bytes left. */
size_t wire_get_count(struct wire_reader *in, size_t max);
/* Reads a count and allocates a zeroed array of that many items; NULL for a count of 0 and on
 * failure, when the count is 0 too. */
void *wire_get_array(struct wire_reader *in, struct arena *arena, size_t max, size_t size,
                     size_t *ret_count);
