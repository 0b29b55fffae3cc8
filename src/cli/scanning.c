/* SPDX-License-Identifier: MIT */
/* Finding a byte in a text, fast for short ones: a run asks some thousand names for their length.
 *
 * Sixteen bytes are looked at together, always those between two multiples of sixteen. So what is read
 * before and behind a text lies in the same page as a part of it. */
#include "cli/scanning.h"

#ifdef __SSE2__

#include <emmintrin.h>
#include <stdint.h>

#define BLOCK ((uintptr_t)sizeof(__m128i))

/* A sanitizer would rather have every byte be a part of the text. */
#define UNWATCHED __attribute__((no_sanitize_address))

/* A bit for each byte of a block that is `byte`. */
UNWATCHED static unsigned find_in_block(const __m128i *block, __m128i byte)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(block), byte));
}

UNWATCHED size_t scanning_length(const char *text)
{
    const __m128i nul = _mm_setzero_si128();
    uintptr_t before = (uintptr_t)text % BLOCK;
    const __m128i *block = (const __m128i *)(const void *)(text - before);
    unsigned found = find_in_block(block, nul) >> before;
    if (found)
        return (size_t)__builtin_ctz(found);
    while (!(found = find_in_block(++block, nul)))
        ;
    return (size_t)((const char *)block - text) + (size_t)__builtin_ctz(found);
}

UNWATCHED char *scanning_find(const char *text, int byte)
{
    const __m128i nul = _mm_setzero_si128(), wanted = _mm_set1_epi8((char)byte);
    uintptr_t before = (uintptr_t)text % BLOCK;
    const __m128i *block = (const __m128i *)(const void *)(text - before);
    unsigned found = (find_in_block(block, nul) | find_in_block(block, wanted)) >> before << before;
    while (!found) {
        block++;
        found = find_in_block(block, nul) | find_in_block(block, wanted);
    }
    return (char *)(uintptr_t)block + __builtin_ctz(found);
}

#endif
