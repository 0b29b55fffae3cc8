/* SPDX-License-Identifier: MIT */
#include "guard/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"

int files_write(int dir, const char *name, const void *bytes, size_t length, struct brig_error *err)
{
    char temporary[32];
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "getrandom");
    (void)snprintf(temporary, sizeof temporary, "new-%016llx", (unsigned long long)number);
    autoclose int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int failed = fd < 0 ? -errno : write_all(fd, bytes, length);
    if (failed == 0 && renameat(dir, temporary, dir, name) < 0)
        failed = -errno;
    if (failed == 0)
        return 0;
    if (fd >= 0)
        (void)unlinkat(dir, temporary, 0);
    return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write '%s' in the jail's storage", name);
}

bool files_read(int dir, const char *name, struct str *text)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
        info.st_size > (off_t)STR_LENGTH_MAX / 2)
        return false;
    char *to = str_extend(text, (size_t)info.st_size);
    return info.st_size == 0 || (to && pread(fd, to, (size_t)info.st_size, 0) == info.st_size);
}
