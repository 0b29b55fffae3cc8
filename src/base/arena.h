/* SPDX-License-Identifier: MIT */
/* Memory that lives and dies together: a plan is built in one arena and released at once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

/* Zero-initialise. Memory handed out stays put until arena_done(). */
struct arena {
    struct arena_chunk *chunks;
    int failed; /* set once an allocation failed: check at the end */
};

/* Zeroed; NULL and failed=1 when memory is short. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* In decimal, to be concatenated. */
char *arena_number(struct arena *arena, uint64_t value);
/* The texts one after the other: what "%s%s" would do, and much faster. */
#define arena_concat(arena, ...) arena_concat_all(arena, (const char *const[]){__VA_ARGS__, NULL})
char *arena_concat_all(struct arena *arena, const char *const *texts);
void arena_done(struct arena *arena);
