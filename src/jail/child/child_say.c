/* SPDX-License-Identifier: MIT */
/* What the child says on its socket. */
#include "jail/child/child_say.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "jail/sys.h"
#include "jail/wire.h"

void child_say(int wire, int type, int a, int b)
{
    struct wire_message message = {.type = type, .a = a, .b = b};
    (void)SYS(write, wire, &message, sizeof message);
}

int child_say_fd(int wire, int type, int a, int fd)
{
    struct wire_message message = {.type = type, .a = a};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    *(int *)(void *)CMSG_DATA(&control.header) = fd;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};
    long result = SYS(sendmsg, wire, &header, MSG_NOSIGNAL);
    return result < 0 ? (int)result : 0;
}
