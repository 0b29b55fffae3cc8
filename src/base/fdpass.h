/* SPDX-License-Identifier: MIT */
/* Sending and receiving file descriptors over a UNIX socket (SCM_RIGHTS). */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct iovec;

#define FDPASS_MAX 64 /* descriptors in one message; the kernel allows 253 */

/* sendmsg() with MSG_NOSIGNAL, again after EINTR. The descriptors stay the caller's. Bytes that were sent, or
 * -errno; more than FDPASS_MAX descriptors are -EINVAL. */
ssize_t fdpass_send(int socket, const struct iovec *parts, size_t part_count, const int *fds,
                    size_t fd_count, int flags);

/* recvmsg() with MSG_CMSG_CLOEXEC, again after EINTR. `*fd_count` is how many descriptors there is room for in
 * `fds`, at most FDPASS_MAX, and then how many came, which are the caller's. Bytes that were received, 0 at
 * the end of the stream, or -errno. A message that brings more bytes or more descriptors than there is room for
 * is -EMSGSIZE: all of its descriptors are closed. */
ssize_t fdpass_receive(int socket, const struct iovec *parts, size_t part_count, int *fds,
                       size_t *fd_count, int flags);
