/* SPDX-License-Identifier: MIT */
/* Writing files that came back. */
#include "client/returned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "base/write.h"

static bool is_plain(const char *part)
{
    return part[0] != '\0' && strcmp(part, ".") != 0 && strcmp(part, "..") != 0;
}

/* Into the next directory, which is made where it is missing. */
static int descend(int *fd, const char *part, struct brig_error *err)
{
    int next = -1;
    if (mkdirat(*fd, part, 0777) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(part).text);
    int result = path_open_beneath(*fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &next, err);
    if (result < 0)
        return result;
    (void)close(*fd);
    *fd = next;
    return 0;
}

static int write_below(int directory, char *name, const void *bytes, size_t length,
                       struct brig_error *err)
{
    autoclose int at = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
    int result = at < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "open a directory") : 0;
    char *part = name;
    for (char *slash; result == 0 && (slash = strchr(part, '/')); part = slash + 1) {
        *slash = '\0';
        result = is_plain(part) ? descend(&at, part, err)
                                : brig_fail(err, BRIG_E_INVALID, 0, "it leads elsewhere");
    }
    if (result == 0 && !is_plain(part))
        result = brig_fail(err, BRIG_E_INVALID, 0, "it leads elsewhere");
    if (result == 0)
        result = path_open_beneath(at, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK,
                                   0666, &fd, err);
    if (result < 0)
        return result;
    int failed = write_all(fd, bytes, length);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "write") : 0;
}

int returned_write(const char *directory, const char *name, const void *bytes, size_t length,
                   struct brig_error *err)
{
    autofree char *copy = NULL;
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(directory).text);
    autoclose int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "'%s'", str_shown(directory).text);
    int result = str_copy(name, &copy, err);
    if (result == 0)
        result = write_below(fd, copy, bytes, length, err);
    return result < 0 ? brig_wrap(err, result, "the returned file '%s'", str_shown(name).text) : 0;
}
