/* SPDX-License-Identifier: MIT */
/* What a brig that is linked against musl has of its own. musl's malloc maps and unmaps each size by
 * itself, a sixth of a launch; its memcpy uses an instruction that takes as long to begin as copying a
 * hundred bytes; its strlen takes three times as long for a name, and its memcmp goes byte by byte. Other
 * builds have what their libc brings, and sanitizers watch. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
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

int memcmp(const void *a, const void *b, size_t length)
{
    return copying_compare(a, b, length);
}

/* musl closes on exec what the kernel has opened so already, with a call of its own; in openat() it
 * does not. */
int open(const char *path, int flags, ...) /* lint: cloexec because it is said by who calls */
{
    mode_t mode = 0;
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return openat(AT_FDCWD, path, flags, mode); /* lint: cloexec because it is in the flags */
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
