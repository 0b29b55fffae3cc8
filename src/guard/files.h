/* SPDX-License-Identifier: MIT */
/* Small files of the storage, in which no jail writes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Writes a file under another name and renames it: whoever reads it finds the old or the new text. */
int files_write(int dir, const char *name, const void *bytes, size_t length,
                struct brig_error *err);

/* Appends what a file contains; false if it is missing, cannot be read or is larger than 32 MiB. */
bool files_read(int dir, const char *name, struct str *text);
