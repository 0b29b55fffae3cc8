/* SPDX-License-Identifier: MIT */
/* UTF-8, strictly: what is well-formed, and what may still become so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The length of the well-formed sequence at p, 0 if there is none; `left` is at least 1. */
size_t utf8_length(const unsigned char *p, size_t left);
/* Whether these bytes, fewer than a sequence, are how one begins. */
bool utf8_is_beginning(const unsigned char *p, size_t left);
bool utf8_is_valid(const void *bytes, size_t length);
