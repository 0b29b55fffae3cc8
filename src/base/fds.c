/* SPDX-License-Identifier: MIT */
#include "base/fds.h"

#include <fcntl.h>
#include <unistd.h>

/* Who has fewer open need not make its table larger. */
#define FDS_CROWDED 48

int fds_keep_high(int fd)
{
    if (fd < FDS_CROWDED || fd >= FDS_HIGH)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FDS_HIGH);
    if (moved < 0)
        return fd;
    (void)close(fd);
    return moved;
}
