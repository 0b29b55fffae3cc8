/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

#include <errno.h>
#include <unistd.h>

int bytes_write(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        ssize_t count = write(fd, at, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? -errno : -EIO;
        at += count;
        length -= (size_t)count;
    }
    return 0;
}
