/* SPDX-License-Identifier: MIT */
/* Passing descriptors over a UNIX socket. */
#include "base/fdpass.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
    struct cmsghdr header; /* for its alignment */
    char room[CMSG_SPACE(FDPASS_MAX * sizeof(int))];
};

ssize_t fdpass_send(int socket, const struct iovec *parts, size_t part_count, const int *fds,
                    size_t fd_count, int flags)
{
    union control control = {0};
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = part_count};
    if (fd_count > FDPASS_MAX)
        return -EINVAL;
    if (fd_count > 0) {
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(fd_count * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

/* The kernel itself closes the descriptors that do not fit into the buffer. */
static size_t take_fds(struct msghdr *message, int *fds)
{
    size_t count = 0;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        size_t bytes = at->cmsg_len - CMSG_LEN(0);
        memcpy(fds + count, CMSG_DATA(at), bytes);
        count += bytes / sizeof(int);
    }
    return count;
}

ssize_t fdpass_receive(int socket, const struct iovec *parts, size_t part_count, int *fds,
                       size_t *fd_count, int flags)
{
    union control control;
    size_t room = *fd_count < FDPASS_MAX ? *fd_count : FDPASS_MAX;
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                             .msg_iovlen = part_count,
                             .msg_control = &control,
                             /* CMSG_LEN(), because CMSG_SPACE() may leave room for one descriptor
                              * too many. */
                             .msg_controllen = CMSG_LEN(room * sizeof(int))};
    *fd_count = 0;
    ssize_t got;
    do
        got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    size_t count = take_fds(&message, fds);
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        for (size_t i = 0; i < count; i++) {
            (void)close(fds[i]);
            fds[i] = -1;
        }
        return -EMSGSIZE;
    }
    *fd_count = count;
    return got;
}
