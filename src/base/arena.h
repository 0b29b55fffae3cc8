/* SPDX-License-Identifier: MIT */
/* Memory that lives and dies together: a plan is built in one arena and released at once. */
#pragma once

#include <stddef.h>

struct arena_chunk;

/* Zero-initialise. All memory handed out is zeroed and stays put until arena_done(). */
struct arena {
    struct arena_chunk *chunks;
    int failed; /* set once an allocation failed: check at the end */
};

void *arena_alloc(struct arena *arena, size_t size); /* NULL and failed=1 when memory is short */
void *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void arena_done(struct arena *arena);
