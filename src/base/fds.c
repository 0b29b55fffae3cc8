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

rlim_t fds_raise_limit(rlim_t wanted, struct rlimit *ret_before)
{
    struct rlimit now = {0}, before = {0};
    (void)getrlimit(RLIMIT_NOFILE, &now);
    struct rlimit more = now;
    more.rlim_cur = wanted < now.rlim_max ? wanted : now.rlim_max;
    if (now.rlim_cur < more.rlim_cur && setrlimit(RLIMIT_NOFILE, &more) == 0) {
        before = now;
        now = more;
    }
    if (ret_before)
        *ret_before = before;
    return now.rlim_cur;
}
