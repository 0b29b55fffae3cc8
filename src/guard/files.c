/* SPDX-License-Identifier: MIT */
#include "guard/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"

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

/* ---- copying ---- */

/*  */

#define COPYING_DEPTH_MAX 64
#define COPYING_FILES_MAX 1000000
#define ALL_BYTES_MAX ((off_t)1 << 30) /* of what copying_all() copies */

/* A part of a file: copied by the kernel, or through a pipe of the kernel. */
static int copy_range(int from, int to, off_t at, off_t end)
{
    if (lseek(to, at, SEEK_SET) < 0)
        return -errno;
    while (at < end) {
        ssize_t done = copy_file_range(from, &at, to, NULL, (size_t)(end - at), 0);
        if (done < 0 &&
            (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS))
            done = sendfile(to, from, &at, (size_t)(end - at));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        if (done == 0) /* it became shorter meanwhile */
            return 0;
    }
    return 0;
}

/* All of one file: cloned, or part by part, without its holes. */
static int copy_bytes(int from, int to, off_t size)
{
    if (size == 0 || ioctl(to, FICLONE, from) == 0)
        return 0;
    if (ftruncate(to, size) < 0)
        return -errno;
    for (off_t at = 0; at < size;) {
        off_t begin = lseek(from, at, SEEK_DATA);
        if (begin < 0 && errno == ENXIO) /* the rest is a hole */
            return 0;
        off_t end = begin < 0 ? -1 : lseek(from, begin, SEEK_HOLE);
        if (end < 0)
            return -errno;
        int failed = copy_range(from, to, begin, end < size ? end : size);
        if (failed < 0)
            return failed;
        at = end;
    }
    return 0;
}

int copying_file(int from, const char *name, int to, const char *to_name, struct brig_error *err)
{
    autoclose int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (source < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENXIO || errno == ENODEV
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
    if (fstat(source, &info) < 0 || !S_ISREG(info.st_mode))
        return 0;
    autoclose int target =
        openat(to, to_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
               (info.st_mode & 0755) | 0600);
    int failed = target < 0 ? -errno : copy_bytes(source, target, info.st_size);
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot copy '%s'", str_shown(name).text);
    return 1;
}

struct level {
    DIR *from;
    int to;
};

static void close_levels(struct level *levels, size_t *depth, size_t until)
{
    while (*depth > until) {
        (*depth)--;
        (void)closedir(levels[*depth].from);
        (void)close(levels[*depth].to);
    }
}

/* Opens a directory, makes its copy and puts both on the stack; 0 if there is none of this name. */
static int enter(struct level *levels, size_t *depth, int from, const char *name, int to,
                 const char *to_name, struct brig_error *err)
{
    autoclose int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
    if (*depth == COPYING_DEPTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is too deep to be copied (limit %d levels)",
                         str_shown(name).text, COPYING_DEPTH_MAX);
    if (mkdirat(to, to_name, 0755) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s'", str_shown(name).text);
    autoclose int made = openat(to, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = made < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", str_shown(name).text);
    (void)take_fd(&fd);
    levels[(*depth)++] = (struct level){.from = dir, .to = take_fd(&made)};
    return 1;
}

/* 1, or 0 if it is not a link. */
static int copy_link(int from, const char *name, int to, const char *to_name,
                     struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    ssize_t length = readlinkat(from, name, target, sizeof target - 1);
    if (length <= 0)
        return 0;
    target[length] = '\0';
    return symlinkat(target, to, to_name) == 0
               ? 1
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy the link '%s'",
                           str_shown(name).text);
}

/* With `left_out` links are copied, and what is neither copied nor excepted is counted. */
static int copy_tree(int from, const char *name, int to, const char *to_name, const char *except,
                     size_t *left_out, struct brig_error *err)
{
    struct level levels[COPYING_DEPTH_MAX];
    size_t depth = 0, files = 0;
    off_t bytes = 0;
    struct stat info;
    int status = enter(levels, &depth, from, name, to, to_name, err);
    int found = status;
    while (status >= 0 && depth > 0) {
        struct level *top = &levels[depth - 1];
        const struct dirent *item = readdir(top->from);
        if (!item) {
            close_levels(levels, &depth, depth - 1);
            continue;
        }
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
            (except && str_ends_with(item->d_name, except)))
            continue;
        if (fstatat(dirfd(top->from), item->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode))
            bytes += info.st_size;
        if (left_out && bytes > ALL_BYTES_MAX)
            status = brig_fail(err, BRIG_E_INVALID, EFBIG, "'%s' is too large", name);
        else if (++files > COPYING_FILES_MAX)
            status = brig_fail(err, BRIG_E_INVALID, 0, "'%s' has more than %d files", name,
                               COPYING_FILES_MAX);
        else
            status = 0;
        if (status == 0 && (item->d_type == DT_DIR || item->d_type == DT_UNKNOWN))
            status =
                enter(levels, &depth, dirfd(top->from), item->d_name, top->to, item->d_name, err);
        if (status == 0 && (item->d_type == DT_REG || item->d_type == DT_UNKNOWN))
            status = copying_file(dirfd(top->from), item->d_name, top->to, item->d_name, err);
        if (status == 0 && left_out) {
            status = copy_link(dirfd(top->from), item->d_name, top->to, item->d_name, err);
            *left_out += status == 0;
        }
    }
    close_levels(levels, &depth, 0);
    return status < 0 ? status : found;
}

int copying_tree(int from, const char *name, int to, const char *to_name, const char *except,
                 struct brig_error *err)
{
    return copy_tree(from, name, to, to_name, except, NULL, err);
}

int copying_all(int from, const char *name, int to, const char *to_name, size_t *ret_left_out,
                struct brig_error *err)
{
    struct stat info;
    *ret_left_out = 0;
    if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_size > ALL_BYTES_MAX)
        return brig_fail(err, BRIG_E_INVALID, EFBIG, "'%s' is too large", str_shown(name).text);
    int status = copy_link(from, name, to, to_name, err);
    if (status == 0)
        status = copying_file(from, name, to, to_name, err);
    return status != 0 ? status : copy_tree(from, name, to, to_name, NULL, ret_left_out, err);
}
