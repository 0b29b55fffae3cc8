/* SPDX-License-Identifier: MIT */
/* Reading and writing descriptors, choosing their numbers, and sending them over a socket. */
#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

/* With fewer open descriptors the kernel does not have to grow the descriptor table. */
#define FDS_CROWDED 48
/* The size of one read, larger than most files. With the NUL it is a power of two, like the
 * capacity of a string. */
#define PIECE_BYTES ((size_t)8191)
#define PIECE_BYTES_MIN ((size_t)1024) /* grow the buffer when less than this is free */

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

int fds_fill_standard(struct brig_error *err)
{
    for (int number = 0; number <= STDERR_FILENO;) {
        if (fcntl(number, F_GETFD) >= 0) {
            number++;
            continue;
        }
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* the lowest number that is free */
        if (fd < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno,
                             "fd %d is closed, and /dev/null cannot be opened in its place",
                             number);
        if (fd > STDERR_FILENO) /* another thread was faster */
            (void)close(fd);
    }
    return 0;
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

int write_all(int fd, const void *data, size_t length)
{
    const char *next = data;
    while (length > 0) {
        ssize_t written = write(fd, next, length);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return -errno;
        } else if (written > 0) {
            next += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

int read_all(int fd, size_t max, struct str *text)
{
    for (ssize_t length = 1; length != 0 && text->length <= max;) {
        if (text->capacity - text->length <= PIECE_BYTES_MIN)
            str_reserve(text, PIECE_BYTES);
        if (text->failed)
            return -ENOMEM;
        length = read(fd, text->data + text->length, text->capacity - text->length - 1);
        if (length > 0)
            (void)str_extend(text, (size_t)length); /* the bytes are in place */
        else if (length < 0 && errno != EINTR)
            return -errno;
    }
    return 0;
}

char *proc_read(const char *path, size_t max, bool *ret_whole)
{
    *ret_whole = false;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    autostr struct str text = {0};
    char *taken = NULL;
    *ret_whole = read_all(fd, max, &text) == 0 && text.length <= max;
    if (str_take(&text, &taken, NULL) < 0)
        errno = ENOMEM;
    return taken;
}

/* ---- over a socket ---- */

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
