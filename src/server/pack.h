/* SPDX-License-Identifier: MIT */
/* Numbers, texts and bytes one after the other, for messages between processes. Writing fails as its
 * string does; reading checks every length against what is there and against a limit, and once it has
 * failed gives nothing but zeros. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/execution.h"

struct arena;
struct str;

void pack_u64(struct str *out, uint64_t value);
void pack_bytes(struct str *out, const void *bytes, size_t length);
void pack_text(struct str *out, const char *text); /* NULL stays NULL */

struct unpack {
    const unsigned char *at;
    size_t left;
    struct arena *arena; /* where texts and bytes are copied to */
    bool failed;
};

uint64_t unpack_u64(struct unpack *in, uint64_t max);
/* With a NUL behind it. */
struct execution_bytes unpack_bytes(struct unpack *in, size_t max);
/* Refuses a NUL inside. NULL where NULL was packed, or on failure. */
const char *unpack_text(struct unpack *in, size_t max);
/* The same, but NULL is a failure, and gives "". */
const char *unpack_needed_text(struct unpack *in, size_t max);
/* Room for as many as follow, at most max; NULL for none, or on failure, when the count is 0. */
void *unpack_array(struct unpack *in, size_t max, size_t size, size_t *ret_count);
