/* SPDX-License-Identifier: MIT */
/* Base64, hexadecimal digits and UTF-8. Pure, whatever the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str;

/* Padded, on one line; and back. `bytes` has room for length / 4 * 3, and may be the text
 * itself. False if it is none. */
void base64_append(struct str *out, const void *bytes, size_t length);
bool base64_decode(const char *text, size_t length, char *bytes, size_t *ret_length);

/* The digit's value, of either case, or -1. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The length of the well-formed sequence at p, 0 if there is none; `left` is at least 1. */
size_t utf8_length(const unsigned char *p, size_t left);
/* Whether these bytes, fewer than a sequence, are how one begins. */
bool utf8_is_beginning(const unsigned char *p, size_t left);
bool utf8_is_valid(const void *bytes, size_t length);
