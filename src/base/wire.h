/* SPDX-License-Identifier: MIT */
/* The format of what crosses a process boundary: a version, then numbers, texts and bytes one after the other,
 * in the order that writer and reader agree on. Both are on one machine: numbers are as it has them.
 *
 * Writing appends to a string and fails as it does. Reading trusts nothing: every length and count is checked
 * against the bytes there are and against a limit of the caller; after a failure everything read is 0 or
 * empty, so a chain of reads is checked once, with wire_done(). Nothing is allocated but arrays, which the
 * bytes that are there bound: texts and bytes are pointers into the message. */
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

/* The message is borrowed, and lives as long as what is read from it. Another version is a failure. */
struct wire_reader wire_open(const void *message, size_t length, uint64_t version);
/* Whether all reads went well, and nothing is left. */
bool wire_done(const struct wire_reader *in);

uint64_t wire_get_u64(struct wire_reader *in, uint64_t max);
int64_t wire_get_i64(struct wire_reader *in, int64_t min, int64_t max);
bool wire_get_bool(struct wire_reader *in);
/* Followed by a NUL that is not counted. "" on failure. */
const char *wire_get_bytes(struct wire_reader *in, size_t max, size_t *ret_length);
/* At most max bytes before its NUL, and none inside. "" on failure, also where NULL was put. */
const char *wire_get_text(struct wire_reader *in, size_t max);
/* The same, but NULL where NULL was put, and on failure. */
const char *wire_get_text_or_null(struct wire_reader *in, size_t max);
/* How many items follow, at most max. Each has at least one number, text or bytes, so there are never more than
 * an eighth of the bytes that are left. */
size_t wire_get_count(struct wire_reader *in, size_t max);
/* Room for that many, zeroed; NULL for none, or on failure, when the count is 0. */
void *wire_get_array(struct wire_reader *in, struct arena *arena, size_t max, size_t size,
                     size_t *ret_count);
