/* SPDX-License-Identifier: MIT */
/* Bytes as base64, and back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str;

/* Padded, on one line; and back. `bytes` has room for length / 4 * 3, and may be the text itself. False
 * if it is none. */
void base64_append(struct str *out, const void *bytes, size_t length);
bool base64_decode(const char *text, size_t length, char *bytes, size_t *ret_length);
