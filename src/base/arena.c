/* SPDX-License-Identifier: MIT */
/* Arenas: allocations that are released together. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Most arenas hold a few strings for the length of a run. Each chunk is four times the size of the
 * previous one, so that a plan needs four chunks. */
#define ARENA_FIRST_BYTES 1024
#define ARENA_CHUNK_BYTES 65536
#define ARENA_GROWTH 4

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
    struct arena_chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        return NULL;
    chunk->used = 0;
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

static size_t next_size(const struct arena *arena, size_t wanted)
{
    size_t size = arena->chunks ? arena->chunks->size * ARENA_GROWTH : ARENA_FIRST_BYTES;
    if (size > ARENA_CHUNK_BYTES)
        size = ARENA_CHUNK_BYTES;
    return wanted > size ? wanted : size;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t rounded = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct arena_chunk *chunk = arena->chunks;
    if (rounded < size || !chunk || chunk->size - chunk->used < rounded) {
        chunk = rounded < size ? NULL : add_chunk(arena, next_size(arena, rounded));
        if (!chunk) {
            arena->failed = 1;
            return NULL;
        }
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return memset(memory, 0, size);
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
    void *copy = arena_alloc(arena, size);
    if (copy && size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    return copy ? memcpy(copy, text, length) : NULL;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    autofree char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) {
        text = NULL;
        arena->failed = 1;
        return NULL;
    }
    return arena_strdup(arena, text);
}

char *arena_number(struct arena *arena, uint64_t value)
{
    return arena_strdup(arena, str_number(value).text);
}

char *arena_concat_all(struct arena *arena, const char *const *texts)
{
    size_t length = 0;
    for (size_t i = 0; texts[i]; i++)
        length += strlen(texts[i]);
    char *all = arena_alloc(arena, length + 1), *at = all;
    for (size_t i = 0; all && texts[i]; i++)
        at = mempcpy(at, texts[i], strlen(texts[i]));
    return all;
}

void arena_wipe(struct arena *arena)
{
    for (struct arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next)
        explicit_bzero(chunk->bytes, chunk->used);
    arena_done(arena);
}

void arena_done(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
}
