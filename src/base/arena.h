/* SPDX-License-Identifier: MIT */
/* Arenas: allocations that are released together. A plan is built in one arena and released at
 * once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

/* Zero-initialise. Allocated memory does not move until arena_done(). */
struct arena {
    struct arena_chunk *chunks;
    int failed; /* set once an allocation failed: check at the end */
};

/* Returns zeroed memory; NULL, with `failed` set, when memory is short. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Formats a value in decimal, for arena_concat(). */
char *arena_number(struct arena *arena, uint64_t value);
/* Concatenates the texts; much faster than formatting with "%s%s". */
#define arena_concat(arena, ...) arena_concat_all(arena, (const char *const[]){__VA_ARGS__, NULL})
char *arena_concat_all(struct arena *arena, const char *const *texts);
void arena_done(struct arena *arena);
/* The same for an arena that holds secrets: overwrites everything before it is freed. */
void arena_wipe(struct arena *arena);
