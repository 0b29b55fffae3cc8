/* SPDX-License-Identifier: MIT */
/* Descriptors: complete reads and writes, the numbers of descriptors that stay open for long, and
 * sending descriptors over a UNIX socket (SCM_RIGHTS). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct brig_error;
struct iovec;
struct str;

/* Writes all bytes, and polls where a non-blocking descriptor is not ready; 0 or -errno. */
int write_all(int fd, const void *data, size_t length);

/* Appends everything up to the end of the file, but stops soon after more than `max` bytes; 0 or
 * -errno. A lack of memory also sets the failure flag of the string. */
int read_all(int fd, size_t max, struct str *text);

/* Reads a file that the kernel generates on each read, such as one in /proc. Returns the text, for
 * the caller to free, or NULL with errno. *ret_whole is false if the file is longer than max. */
char *proc_read(const char *path, size_t max, bool *ret_whole);

/* Descriptors that a job keeps for long are numbered from here on, so that the low numbers are free
 * for the descriptors of the next start, and its descriptor table stays small. */
#define FDS_HIGH 256

/* Moves a descriptor to FDS_HIGH or above, if many descriptors are open, and returns the new
 * number. If that fails, or fd is negative, fd is returned unchanged. */
int fds_keep_high(int fd);

/* Opens /dev/null as each of 0, 1 and 2 that is closed, close-on-exec, and leaves it open. Otherwise a
 * descriptor of the library would get the number, and a jail that inherits the caller's streams would
 * inherit it. Returns 0 or a negative code. */
int fds_fill_standard(struct brig_error *err);

/* Raises the soft limit of open files to `wanted`, at most to the hard limit, and never lowers it.
 * Returns the limit in force. *ret_before, which may be NULL, gets the previous limits; its
 * rlim_max is 0 if nothing was raised. */
rlim_t fds_raise_limit(rlim_t wanted, struct rlimit *ret_before);

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
