/* SPDX-License-Identifier: MIT */
/* Files that came back from a program, which may be hostile. */
#pragma once

#include <stddef.h>

struct brig_error;

/* Writes a file below a directory, which is made. A name cannot lead out of it, also not by links that
 * are there. */
int returned_write(const char *directory, const char *name, const void *bytes, size_t length,
                   struct brig_error *err);
