/* SPDX-License-Identifier: MIT */
/* Base64, hexadecimal digits, percent-encoding and UTF-8. Pure, independent of the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str;

/* Encode and decode base64 with padding, on one line. `bytes` has room for length / 4 * 3 bytes,
 * and may be the same memory as the text. Decoding returns false if the text is not base64. */
void base64_append(struct str *out, const void *bytes, size_t length);
bool base64_decode(const char *text, size_t length, char *bytes, size_t *ret_length);

/* The value of a hexadecimal digit in either case, or -1. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Appends the text with its escapes %XX decoded; others stay as they are. */
void percent_decode(struct str *out, const char *text, size_t length);

/* The length of the well-formed sequence at p, 0 if it is malformed or incomplete; `left` is at
 * least 1. */
size_t utf8_length(const unsigned char *p, size_t left);
/* The character of a well-formed sequence of this length. */
uint32_t utf8_decode(const unsigned char *p, size_t length);
/* Whether these bytes are the beginning of a well-formed but incomplete sequence. */
bool utf8_is_beginning(const unsigned char *p, size_t left);
bool utf8_is_valid(const void *bytes, size_t length);
/* The length of a text that is cut off there, without an incomplete sequence at its end. */
size_t utf8_cut(const char *text, size_t length);
/* Whether the well-formed sequence of this length is a character that is not shown but changes how
 * others are: a control character, one for the direction of writing, or one without a width. */
bool utf8_is_unseen(const unsigned char *p, size_t length);
