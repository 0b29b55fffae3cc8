/* SPDX-License-Identifier: MIT */
/* UTF-8, strictly. */
#include "base/utf8.h"

/* What may follow a first byte (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing
 * above U+10FFFF). */
struct sequence {
    size_t length;           /* 0: no first byte */
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

/* Whether the bytes behind the first, as far as there are any, may stand there. */
static bool follows(struct sequence sequence, const unsigned char *p, size_t count)
{
    if (count > 1 && (p[1] < sequence.low || p[1] > sequence.high))
        return false;
    for (size_t i = 2; i < count; i++)
        if ((p[i] & 0xc0) != 0x80)
            return false;
    return true;
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
