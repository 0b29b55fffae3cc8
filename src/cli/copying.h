/* SPDX-License-Identifier: MIT */
/* Copying and comparing bytes, fast for a few of them: see malloc.c for who uses it. */
#pragma once

#include <stddef.h>

/* As memcpy and memmove. */
void *copying_copy(void *to, const void *from, size_t length);
void *copying_move(void *to, const void *from, size_t length);
/* As memcmp. */
int copying_compare(const void *a, const void *b, size_t length);
