/* SPDX-License-Identifier: MIT */
/* Making the history process's directories. */
#include "server/history/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

static int make_all(char *path, struct brig_error *err)
{
    for (char *slash = path + 1;; *slash++ = '/') {
        slash = strchrnul(slash, '/');
        bool last = *slash == '\0';
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "make the directory '%s'",
                             str_shown(path).text);
        if (last)
            return 0;
    }
}

int directory_open(const char *path, int *ret_fd, struct brig_error *err)
{
    autofree char *copy = NULL;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        int result = str_copy(path, &copy, err);
        if (result == 0)
            result = make_all(copy, err);
        if (result < 0)
            return result;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "open the directory '%s'",
                         str_shown(path).text);
    *ret_fd = fd;
    return 0;
}

int directory_open_of(const char *file, int *ret_fd, struct brig_error *err)
{
    autofree char *copy = NULL;
    int result = str_copy(file, &copy, err);
    if (result < 0)
        return result;
    char *slash = strrchr(copy, '/');
    if (!slash)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is not an absolute path",
                         str_shown(file).text);
    slash[slash == copy] = '\0';
    return directory_open(copy, ret_fd, err);
}
