/* SPDX-License-Identifier: MIT */
/* Files of /proc. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Of most files there is less. With a NUL it is a power of two, as a string's room is. */
#define PIECE_BYTES ((size_t)8191)
#define PIECE_BYTES_MIN ((size_t)1024) /* for less it is not read */

char *proc_read(const char *path, size_t max, bool *ret_whole)
{
    *ret_whole = false;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    autostr struct str text = {0};
    ssize_t length;
    do {
        if (text.capacity - text.length <= PIECE_BYTES_MIN)
            str_reserve(&text, PIECE_BYTES);
        if (text.failed) {
            errno = ENOMEM;
            return NULL;
        }
        length = read(fd, text.data + text.length, text.capacity - text.length - 1);
        if (length > 0)
            (void)str_extend(&text, (size_t)length); /* it is there already */
    } while ((length > 0 && text.length < max) || (length < 0 && errno == EINTR));
    char *taken = NULL;
    if (str_take(&text, &taken, NULL) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    *ret_whole = length == 0;
    return taken;
}
