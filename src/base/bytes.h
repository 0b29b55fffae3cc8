/* SPDX-License-Identifier: MIT */
/* Writing all of something. */
#pragma once

#include <stddef.h>

/* Writes everything, whatever it takes; 0 or -errno. For fds that block, and for files. */
int bytes_write(int fd, const void *bytes, size_t length);
