/* SPDX-License-Identifier: MIT */
/* Base64 and UTF-8. */
#include "base/encode.h"

#include "base/str.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_append(struct str *out, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (; length > 0; at += 3) {
        size_t here = length < 3 ? length : 3;
        unsigned group =
            (unsigned)at[0] << 16 | (here > 1 ? (unsigned)at[1] << 8 : 0) | (here > 2 ? at[2] : 0);
        const char four[4] = {digits[group >> 18], digits[group >> 12 & 63],
                              here > 1 ? digits[group >> 6 & 63] : '=',
                              here > 2 ? digits[group & 63] : '='};
        str_append_bytes(out, four, sizeof four);
        length -= here;
    }
}

static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* Decodes four digits, of which the last `padding` are '='. Refuses digits with bits that would be
 * lost. */
static bool decode_four(const char *four, size_t padding, unsigned *ret_group)
{
    unsigned group = 0;
    for (size_t i = 0; i < 4 - padding; i++) {
        int value = digit_value(four[i]);
        if (value < 0)
            return false;
        group |= (unsigned)value << (18 - 6 * i);
    }
    *ret_group = group;
    return (group & ((1u << (8 * padding)) - 1)) == 0;
}

bool base64_decode(const char *text, size_t length, char *bytes, size_t *ret_length)
{
    if (length % 4 != 0)
        return false;
    size_t used = 0;
    for (size_t i = 0; i < length; i += 4) {
        bool last = i + 4 == length;
        size_t padding = last ? (size_t)(text[i + 3] == '=') + (size_t)(text[i + 2] == '=') : 0;
        unsigned group;
        if (padding == 1 && text[i + 3] != '=')
            return false;
        if (!decode_four(text + i, padding, &group))
            return false;
        for (size_t k = 0; k < 3 - padding; k++)
            bytes[used++] = (char)(group >> (16 - 8 * k) & 0xff);
    }
    *ret_length = used;
    return true;
}

/* ---- UTF-8, strictly ---- */

#define SEQUENCE_MAX 4 /* bytes of a character */

/* The valid continuations of a first byte (Unicode 15, table 3-7: no overlong forms, no surrogates,
 * nothing above U+10FFFF). */
struct sequence {
    size_t length;           /* 0: not a valid first byte */
    unsigned char low, high; /* bounds of the second byte */
};

static struct sequence sequence_of(unsigned char first)
{
    if (first < 0x80)
        return (struct sequence){.length = 1};
    if (first >= 0xc2 && first <= 0xdf)
        return (struct sequence){.length = 2, .low = 0x80, .high = 0xbf};
    if (first >= 0xe0 && first <= 0xef)
        return (struct sequence){
            .length = 3, .low = first == 0xe0 ? 0xa0 : 0x80, .high = first == 0xed ? 0x9f : 0xbf};
    if (first >= 0xf0 && first <= 0xf4)
        return (struct sequence){
            .length = 4, .low = first == 0xf0 ? 0x90 : 0x80, .high = first == 0xf4 ? 0x8f : 0xbf};
    return (struct sequence){0};
}

/* Whether the bytes after the first, as far as they are present, are valid continuations. */
static bool follows(struct sequence sequence, const unsigned char *p, size_t count)
{
    if (count > 1 && (p[1] < sequence.low || p[1] > sequence.high))
        return false;
    for (size_t i = 2; i < count; i++)
        if ((p[i] & 0xc0) != 0x80)
            return false;
    return true;
}

void percent_decode(struct str *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        int high = text[i] == '%' && i + 2 < length ? hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text[i + 2]) : -1;
        str_append_char(out, low >= 0 ? (char)(high << 4 | low) : text[i]);
        if (low >= 0)
            i += 2;
    }
}

size_t utf8_length(const unsigned char *p, size_t left)
{
    struct sequence sequence = sequence_of(p[0]);
    if (left < sequence.length || !follows(sequence, p, sequence.length))
        return 0;
    return sequence.length;
}

bool utf8_is_beginning(const unsigned char *p, size_t left)
{
    if (left == 0)
        return false;
    struct sequence sequence = sequence_of(p[0]);
    return left < sequence.length && follows(sequence, p, left);
}

size_t utf8_cut(const char *text, size_t length)
{
    const unsigned char *end = (const unsigned char *)text + length;
    for (size_t back = 1; back < SEQUENCE_MAX && back <= length; back++)
        if (utf8_is_beginning(end - back, back))
            return length - back;
    return length;
}

bool utf8_is_valid(const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < length;) {
        size_t n = utf8_length(p + i, length - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

uint32_t utf8_decode(const unsigned char *p, size_t length)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t value = p[0] & first[length];
    for (size_t i = 1; i < length; i++)
        value = value << 6 | (p[i] & 0x3fU);
    return value;
}

/* U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F. */
static bool is_unseen_punctuation(unsigned second, unsigned third)
{
    if (second == 0x80)
        return (third >= 0x8b && third <= 0x8f) || (third >= 0xa8 && third <= 0xae);
    return second == 0x81 && third >= 0xa0 && third <= 0xaf;
}

bool utf8_is_unseen(const unsigned char *p, size_t length)
{
    switch (length) {
    case 1:
        return p[0] < 0x20 || p[0] == 0x7f;
    case 2: /* C1, the soft hyphen, the Arabic letter mark */
        return (p[0] == 0xc2 && (p[1] < 0xa0 || p[1] == 0xad)) || (p[0] == 0xd8 && p[1] == 0x9c);
    case 3: /* and the byte order mark */
        return (p[0] == 0xe2 && is_unseen_punctuation(p[1], p[2])) ||
               (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);
    default: /* tags, U+E0000 to U+E007F */
        return p[0] == 0xf3 && p[1] == 0xa0 && (p[2] == 0x80 || p[2] == 0x81);
    }
}
