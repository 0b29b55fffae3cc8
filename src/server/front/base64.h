/* SPDX-License-Identifier: MIT */
/* Bytes as base64, and back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str;

void front_base64_append(struct str *out, const void *bytes, size_t length);
/* Padded, on one line. `bytes` has room for length / 4 * 3. False if it is none. */
bool front_base64_decode(const char *text, size_t length, char *bytes, size_t *ret_length);
