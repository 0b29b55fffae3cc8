/* SPDX-License-Identifier: MIT */
/* Fds the caller speaks of by their numbers. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>

/* Whether it was handed to us: what we opened ourselves since closes on exec, and what was handed
 * to us cannot. */
static inline bool given_fd(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC);
}
