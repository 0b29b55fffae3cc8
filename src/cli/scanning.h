/* SPDX-License-Identifier: MIT */
/* Finding a byte in a text, fast for short ones: see malloc.c for who uses it. */
#pragma once

#include <stddef.h>

#ifdef __SSE2__
#define SCANNING_IS_FAST 1

/* As strlen and strchrnul. */
size_t scanning_length(const char *text);
char *scanning_find(const char *text, int byte);

#endif
