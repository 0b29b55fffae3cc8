/* SPDX-License-Identifier: MIT */
/* What the child says on its socket, and what it is given there. */
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

static int send_fds(int wire, struct wire_message message, const int *fds, size_t count)
{
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(CHILD_GIVEN_MAX * sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(count * sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    int *given = (int *)(void *)CMSG_DATA(&control.header);
    for (size_t i = 0; i < count; i++)
        given[i] = fds[i];
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    long result = SYS(sendmsg, wire, &header, MSG_NOSIGNAL);
    return result < 0 ? (int)result : 0;
}

int child_say_fd(int wire, int type, int a, int fd)
{
    return send_fds(wire, (struct wire_message){.type = type, .a = a}, &fd, 1);
}

int child_give(int wire, int type, const int *fds, size_t count)
{
    return send_fds(wire, (struct wire_message){.type = type}, fds, count);
}

int child_take(int wire, int type, int ret_fds[CHILD_GIVEN_MAX])
{
    struct wire_message message = {0};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(CHILD_GIVEN_MAX * sizeof(int))];
    } control;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};
    long result = SYS(recvmsg, wire, &header, MSG_CMSG_CLOEXEC);
    if (result < 0)
        return (int)result;
    if (result != (long)sizeof message || message.type != type)
        return -EPROTO;
    if (header.msg_controllen < CMSG_LEN(sizeof(int)))
        return 0;
    const int *given = (const int *)(void *)CMSG_DATA(&control.header);
    size_t count = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++)
        ret_fds[i] = given[i];
    return (int)count;
}
