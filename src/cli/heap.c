/* SPDX-License-Identifier: MIT */
/* Memory cut from one piece.
 *
 * Every block begins with a header that says its class and whether it is in use. Freed blocks of a
 * class are a list. Classes are four to a power of two, so that no more than a fifth is wasted. What
 * is larger than the largest class is a mapping of its own. */
#include "cli/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 16
#define FIRST_BYTES ((size_t)192 * 1024) /* what a launch needs, without a mapping */
#define PIECE_BYTES ((size_t)1024 * 1024)
#define SMALLEST 32
#define CLASSES 45          /* 32 bytes to 96 KiB, with the header */
#define CLASS_LARGE CLASSES /* a mapping of its own */
#define IN_USE UINT32_C(0xb416a11c)
#define FREED UINT32_C(0xb416f4ee)

struct header {
    uint32_t state; /* IN_USE, FREED */
    uint32_t class;
    size_t size; /* of all of it if it is large */
};
_Static_assert(sizeof(struct header) == ALIGNMENT, "blocks are aligned because headers are");

struct freed {
    struct header header;
    struct freed *next;
};

static _Alignas(ALIGNMENT) char first_piece[FIRST_BYTES];

static struct {
    bool begun;
    pthread_t owner;  /* who began */
    char *next, *end; /* what is left of the current piece; all zero */
    struct freed *freed[CLASSES];
} heap;

static void refuse_others(void)
{
    if (heap.begun && heap.owner != pthread_self())
        abort();
}

/* The bytes of a class: 32, 40, 48, 56 would not be aligned, so steps are at least 16. */
static size_t class_bytes(unsigned class)
{
    if (class < 2)
        return SMALLEST + (size_t) class * 16;
    size_t power = (size_t)64 << (class - 2) / 4;
    return power + power / 4 * ((class - 2) % 4);
}

static unsigned class_of(size_t bytes)
{
    if (bytes <= SMALLEST + 16)
        return bytes <= SMALLEST ? 0 : 1;
    if (bytes <= 64)
        return 2;
    unsigned log = 63 - (unsigned)__builtin_clzll(bytes - 1); /* 2^log <= bytes - 1 */
    unsigned quarter = (unsigned)((bytes - 1 - ((size_t)1 << log)) >> (log - 2));
    return 2 + (log - 6) * 4 + quarter + 1;
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* What is left of the old piece is lost: less than the block that did not fit. */
static bool take_piece(void)
{
    if (!heap.begun) {
        heap.begun = true;
        heap.owner = pthread_self();
        heap.next = first_piece;
        heap.end = first_piece + FIRST_BYTES;
        return true;
    }
    char *piece = map(PIECE_BYTES);
    if (!piece)
        return false;
    heap.next = piece;
    heap.end = piece + PIECE_BYTES;
    return true;
}

static struct header *cut(unsigned class)
{
    size_t bytes = class_bytes(class);
    while ((size_t)(heap.end - heap.next) < bytes)
        if (!take_piece())
            return NULL;
    struct header *header = (struct header *)(void *)heap.next;
    heap.next += bytes;
    *header = (struct header){.state = IN_USE, .class = class};
    return header;
}

static struct header *alloc_large(size_t bytes)
{
    struct header *header = map(bytes);
    if (header)
        *header = (struct header){.state = IN_USE, .class = CLASS_LARGE, .size = bytes};
    return header;
}

/* *ret_used: it may hold what was in it before. */
static void *alloc(size_t size, bool *ret_used)
{
    struct header *header = NULL;
    refuse_others();
    *ret_used = false;
    size_t bytes = 0;
    if (!__builtin_add_overflow(size, sizeof *header, &bytes) && bytes <= PTRDIFF_MAX) {
        unsigned class = bytes <= class_bytes(CLASSES - 1) ? class_of(bytes) : CLASS_LARGE;
        if (class == CLASS_LARGE) {
            header = alloc_large(bytes);
        } else if (heap.freed[class]) {
            header = &heap.freed[class]->header;
            heap.freed[class] = heap.freed[class]->next;
            header->state = IN_USE;
            *ret_used = true;
        } else {
            header = cut(class);
        }
    }
    if (!header) {
        errno = ENOMEM;
        return NULL;
    }
    return header + 1;
}

void *heap_alloc(size_t size)
{
    bool used;
    return alloc(size, &used);
}

void *heap_alloc_zeroed(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    bool used;
    void *memory = alloc(bytes, &used);
    if (memory && used)
        memset(memory, 0, bytes);
    return memory;
}

static struct header *header_of(void *memory)
{
    struct header *header = (struct header *)memory - 1;
    refuse_others();
    if (header->state != IN_USE || header->class > CLASS_LARGE)
        abort();
    return header;
}

static size_t room_in(const struct header *header)
{
    size_t bytes = header->class == CLASS_LARGE ? header->size : class_bytes(header->class);
    return bytes - sizeof *header;
}

void *heap_resize(void *memory, size_t size)
{
    if (!memory)
        return heap_alloc(size);
    size_t room = room_in(header_of(memory));
    if (size <= room)
        return memory;
    void *larger = heap_alloc(size);
    if (!larger)
        return NULL;
    memcpy(larger, memory, room);
    heap_free(memory);
    return larger;
}

void heap_free(void *memory)
{
    if (!memory)
        return;
    struct header *header = header_of(memory);
    if (header->class == CLASS_LARGE) {
        int saved = errno;
        (void)munmap(header, header->size);
        errno = saved;
        return;
    }
    header->state = FREED;
    struct freed *freed = (struct freed *)(void *)header;
    freed->next = heap.freed[header->class];
    heap.freed[header->class] = freed;
}
