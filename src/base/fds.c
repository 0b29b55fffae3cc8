/* SPDX-License-Identifier: MIT */
/* Descriptors: reading and writing, and their place in the table. */
#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

/* With fewer open descriptors the table need not grow. */
#define FDS_CROWDED 48
/* Read at once: of most files there is less. With a NUL it is a power of two, as a string's room
 * is. */
#define PIECE_BYTES ((size_t)8191)
#define PIECE_BYTES_MIN ((size_t)1024) /* for less it is not read */

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
            (void)str_extend(text, (size_t)length); /* it is there already */
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
