/* SPDX-License-Identifier: MIT */
/* Copying and comparing bytes, fast for a few of them: a run copies some thousand names, and a holder
 * compares what a run hides with what the last one has hidden. */
#include "cli/copying.h"

#include <stdint.h>

/* In these the compiler must not find a memcpy, as they are that in the end. */
#if defined __GNUC__ && !defined __clang__
#define PLAIN_LOOPS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#else
#define PLAIN_LOOPS
#endif

/* At any address, whatever is there. */
struct block {
    uint64_t words[2];
} __attribute__((packed, may_alias));

struct word {
    uint64_t value;
} __attribute__((packed, may_alias));

struct half {
    uint32_t value;
} __attribute__((packed, may_alias));

/* At most a block: its first bytes and its last, which may be the same ones. */
PLAIN_LOOPS static void copy_few(char *to, const char *from, size_t length)
{
    if (length >= sizeof(struct word)) {
        struct word first = *(const struct word *)(const void *)from;
        struct word last = *(const struct word *)(const void *)(from + length - sizeof last);
        *(struct word *)(void *)to = first;
        *(struct word *)(void *)(to + length - sizeof last) = last;
        return;
    }
    if (length >= sizeof(struct half)) {
        struct half first = *(const struct half *)(const void *)from;
        struct half last = *(const struct half *)(const void *)(from + length - sizeof last);
        *(struct half *)(void *)to = first;
        *(struct half *)(void *)(to + length - sizeof last) = last;
        return;
    }
    for (size_t i = 0; i < length; i++)
        to[i] = from[i];
}

/* From the front, each block being read before it is written, as moving wants it. */
PLAIN_LOOPS void *copying_copy(void *to, const void *from, size_t length)
{
    char *at = to;
    const char *source = from;
    for (; length > sizeof(struct block); length -= sizeof(struct block)) {
        struct block block = *(const struct block *)(const void *)source;
        *(struct block *)(void *)at = block;
        at += sizeof block;
        source += sizeof block;
    }
    copy_few(at, source, length);
    return to;
}

PLAIN_LOOPS void *copying_move(void *to, const void *from, size_t length)
{
    char *at = to;
    const char *source = from;
    if ((uintptr_t)to - (uintptr_t)from >= length) /* nothing is overwritten before it is read */
        return copying_copy(to, from, length);
    while (length-- > 0)
        at[length] = source[length];
    return to;
}

PLAIN_LOOPS int copying_compare(const void *a, const void *b, size_t length)
{
    const unsigned char *one = a, *other = b;
    for (; length >= sizeof(struct word); length -= sizeof(struct word)) {
        if (((const struct word *)(const void *)one)->value !=
            ((const struct word *)(const void *)other)->value)
            break;
        one += sizeof(struct word);
        other += sizeof(struct word);
    }
    for (; length > 0; length--, one++, other++)
        if (*one != *other)
            return *one - *other;
    return 0;
}
