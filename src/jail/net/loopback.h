/* SPDX-License-Identifier: MIT */
/* Bringing up the loopback interface of a fresh network namespace, without libc. */
#pragma once

#include "jail/sys.h"

static inline int sys_loopback_up(void)
{
    /* struct ifreq: a name of 16 bytes, then a union whose first member here is the flags. */
    struct {
        char name[16];
        short flags;
        char rest[22];
    } request = {.name = "lo", .flags = 0x1 | 0x40 /* IFF_UP | IFF_RUNNING */};
    long fd = SYS(socket, 1 /* AF_UNIX */, 2 | 02000000 /* SOCK_DGRAM | SOCK_CLOEXEC */, 0);
    if (fd < 0)
        return (int)fd;
    long result = SYS(ioctl, fd, 0x8914 /* SIOCSIFFLAGS */, &request);
    (void)SYS(close, fd);
    return (int)result;
}
