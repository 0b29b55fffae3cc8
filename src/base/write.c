/* SPDX-License-Identifier: MIT */
/* Writing to its end what write(2) may take in parts. */
#include "base/write.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int write_all(int fd, const void *data, size_t length)
{
    const char *next = data;
    while (length > 0) {
        ssize_t written = write(fd, next, length);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return -errno;
        } else if (written > 0) {
            next += written;
            length -= (size_t)written;
        }
    }
    return 0;
}
