/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4): of API keys, and of code and output that are not kept themselves. */
#pragma once

#include <stddef.h>

#define SHA256_BYTES 32
#define SHA256_HEX_LENGTH 64

void sha256(const void *bytes, size_t length, unsigned char ret_digest[SHA256_BYTES]);
/* As lower case hexadecimal digits, with a NUL. */
void sha256_hex(const void *bytes, size_t length, char ret_text[SHA256_HEX_LENGTH + 1]);
