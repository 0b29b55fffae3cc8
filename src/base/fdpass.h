/* SPDX-License-Identifier: MIT */
/* Sending and receiving file descriptors over a UNIX socket (SCM_RIGHTS). */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct iovec;

#define FDPASS_MAX 64 /* descriptors in one message; the kernel allows 253 */

/* Calls sendmsg() with MSG_NOSIGNAL, again after EINTR. The caller keeps ownership of the
 * descriptors. Returns the number of bytes sent, or -errno; -EINVAL for more than FDPASS_MAX
 * descriptors. */
ssize_t fdpass_send(int socket, const struct iovec *parts, size_t part_count, const int *fds,
                    size_t fd_count, int flags);

/* Calls recvmsg() with MSG_CMSG_CLOEXEC, again after EINTR. On entry `*fd_count` is the capacity of
 * `fds`, at most FDPASS_MAX; on return it is the number of descriptors received, which the caller
 * owns. Returns the number of bytes received, 0 at the end of the stream, or -errno. A message with
 * more bytes or descriptors than fit is -EMSGSIZE, and all of its descriptors are closed. */
ssize_t fdpass_receive(int socket, const struct iovec *parts, size_t part_count, int *fds,
                       size_t *fd_count, int flags);
