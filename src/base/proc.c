/* SPDX-License-Identifier: MIT */
/* Files of /proc. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define PIECE_BYTES ((size_t)32 * 1024)

char *proc_read(const char *path, size_t max, bool *ret_whole)
{
    *ret_whole = false;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    autostr struct str text = {0};
    char piece[PIECE_BYTES];
    ssize_t length;
    do {
        length = read(fd, piece, sizeof piece);
        if (length > 0)
            str_append_bytes(&text, piece, (size_t)length);
    } while ((length > 0 && text.length < max) || (length < 0 && errno == EINTR));
    char *taken = NULL;
    if (str_take(&text, &taken, NULL) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    *ret_whole = length == 0;
    return taken;
}
