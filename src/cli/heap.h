/* SPDX-License-Identifier: MIT */
/* Memory for a program that lives for a millisecond or waits for days, and has one thread for it: it is cut
 * from one piece, kept for reuse when freed, and never given back. Giving a mapping back interrupts
 * every CPU on which a child that shares the memory runs. */
#pragma once

#include <stddef.h>

/* As malloc, calloc, realloc and free are; aligned to 16 bytes. What was not allocated here, or was
 * freed already, ends the process, and so does a second thread that comes for memory: there is no lock,
 * which a fork() in the meantime would leave locked. */
void *heap_alloc(size_t size);
void *heap_alloc_zeroed(size_t count, size_t size);
void *heap_resize(void *memory, size_t size);
void heap_free(void *memory);
