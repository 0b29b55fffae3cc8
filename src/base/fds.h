/* SPDX-License-Identifier: MIT */
/* Descriptors: reading and writing all of what read(2) and write(2) may take in parts, and where
 * in the table of fds what is kept for long has its place; and sending them over a UNIX socket
 * (SCM_RIGHTS). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct iovec;
struct str;

/* Writes all of it, waiting where the fd does not; 0 or -errno. */
int write_all(int fd, const void *data, size_t length);

/* Appends what is read up to the end, or somewhat more than `max` bytes of what is longer; 0 or
 * -errno. A lack of memory is the string's failure. */
int read_all(int fd, size_t max, struct str *text);

/* The same of a file, such as one of /proc, which the kernel writes anew for each read: the
 * text, for the caller to free, or NULL with errno. *ret_whole says whether it is no longer than
 * max. */
char *proc_read(const char *path, size_t max, bool *ret_whole);

/* What a job keeps lies above this, what a start needs below: so a child can do without the
 * first by one number. */
#define FDS_HIGH 256

/* Moves an fd above FDS_HIGH, if so many are open that it matters, and gives its new number; what
 * cannot be moved stays where it is. A negative one is given back. */
int fds_keep_high(int fd);

/* Raises the soft limit of open files to as many, as far as the hard one lets it, and never
 * lowers it. Gives what it is then; *ret_before, which may be NULL, has rlim_max 0 if it was not
 * raised. */
rlim_t fds_raise_limit(rlim_t wanted, struct rlimit *ret_before);

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
