/* SPDX-License-Identifier: MIT */
/* Writing to its end what write(2) may take in parts. */
#pragma once

#include <stddef.h>

/* Writes all of it, waiting where the fd does not; 0 or -errno. */
int write_all(int fd, const void *data, size_t length);
