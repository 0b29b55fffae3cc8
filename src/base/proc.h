/* SPDX-License-Identifier: MIT */
/* Files of /proc, which the kernel writes anew for each read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reads a file in few large pieces, up to about `max` bytes. *ret_whole says whether that was all of
 * it. The text, for the caller to free, or NULL with errno if it cannot be opened or there is no memory. */
char *proc_read(const char *path, size_t max, bool *ret_whole);
