/* SPDX-License-Identifier: MIT */
/* Memory that lives and dies together. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* So many texts are counted once when they are concatenated. */
#define CONCAT_COUNTED 4

/* Many an arena holds a few strings for as long as a run lasts; each chunk is four times the one
 * before it, so that a plan takes four. */
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

void *arena_alloc_raw(struct arena *arena, size_t size)
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
    return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    void *memory = arena_alloc_raw(arena, size);
    if (memory)
        memset(memory, 0, size);
    return memory;
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
    void *copy = arena_alloc_raw(arena, size);
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
    char *copy = arena_alloc_raw(arena, length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    char short_text[256]; /* most are, and are then formatted once */
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(short_text, sizeof short_text, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : arena_alloc_raw(arena, (size_t)length + 1);
    if (!text)
        arena->failed = 1;
    else if ((size_t)length < sizeof short_text)
        memcpy(text, short_text, (size_t)length + 1);
    else
        (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_number(struct arena *arena, uint64_t value)
{
    return arena_strdup(arena, str_number(value).text);
}

char *arena_concat_all(struct arena *arena, const char *const *texts)
{
    size_t sizes[CONCAT_COUNTED], length = 0;
    for (size_t i = 0; texts[i]; i++) {
        size_t size = strlen(texts[i]);
        if (i < CONCAT_COUNTED)
            sizes[i] = size;
        length += size;
    }
    char *all = arena_alloc_raw(arena, length + 1);
    if (!all)
        return NULL;
    char *at = all;
    for (size_t i = 0; texts[i]; i++) {
        size_t size = i < CONCAT_COUNTED ? sizes[i] : strlen(texts[i]);
        memcpy(at, texts[i], size);
        at += size;
    }
    *at = '\0';
    return all;
}

void arena_done(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
}
