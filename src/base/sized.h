/* SPDX-License-Identifier: MIT */
/* Structs that a program fills and that begin with their size: the program may be older or newer than
 * the library. */
#pragma once

#include <stddef.h>

struct brig_error;

/* Copies the `known` bytes that this library knows of a struct whose first member is its size. Members
 * that the program does not know are zero; members that only the program knows must be, else
 * BRIG_E_INVALID. `init` names what sets the size, for the message. Does not allocate. */
int sized_read(void *ret, size_t known, const void *given, const char *init,
               struct brig_error *err);
