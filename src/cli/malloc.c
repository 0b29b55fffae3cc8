/* SPDX-License-Identifier: MIT */
/* The memory of a brig that is linked against musl, whose own malloc maps and unmaps each size by
 * itself, a sixth of a launch, and whose memcpy uses an instruction that takes as long to begin as
 * copying a hundred bytes. Its strlen takes three times as long for a name. Other builds have what
 * their libc brings, and sanitizers watch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/copying.h"
#include "cli/heap.h"
#include "cli/scanning.h"

#ifndef __GLIBC__

#define ALIGNED_ANYWAY 16

void *malloc(size_t size)
{
    return heap_alloc(size);
}

void *calloc(size_t count, size_t size)
{
    return heap_alloc_zeroed(count, size);
}

void *realloc(void *memory, size_t size)
{
    return heap_resize(memory, size);
}

void free(void *memory)
{
    heap_free(memory);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (alignment <= ALIGNED_ANYWAY)
        return heap_alloc(size);
    errno = ENOMEM;
    return NULL;
}

int posix_memalign(void **ret_memory, size_t alignment, size_t size)
{
    void *memory = aligned_alloc(alignment, size);
    if (!memory)
        return ENOMEM;
    *ret_memory = memory;
    return 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    return copying_copy(to, from, length);
}

/* Here too, as musl's own one is a part of its memcpy. */
void *memmove(void *to, const void *from, size_t length)
{
    return copying_move(to, from, length);
}

#ifdef SCANNING_IS_FAST

size_t strlen(const char *text)
{
    return scanning_length(text);
}

char *strchrnul(const char *text, int byte)
{
    return scanning_find(text, byte);
}

char *strchr(const char *text, int byte)
{
    char *found = scanning_find(text, byte);
    return *found == (char)byte ? found : NULL;
}

#endif

#endif
