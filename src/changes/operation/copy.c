/* SPDX-License-Identifier: MIT */
/* Exact copies of single files. */
#include "changes/operation/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"

#define PART_BYTES 65536  /* bytes copied at a time without the help of the kernel */
#define SMALL_BYTES 16384 /* smaller files are read and written at once */
#define BLOCK 512         /* unit of st_blocks */
#define XATTR_PREFIX_ACL "system.posix_acl_"
#define XATTR_CAPABILITY "security.capability"

/* Files are reached by their descriptors or, if they are open with O_PATH only (EBADF), through /proc, which is
 * slower. */

static ssize_t list_names(int fd, char *names, size_t size)
{
    ssize_t length = flistxattr(fd, names, size);
    return length < 0 && errno == EBADF ? listxattr(path_proc(fd).text, names, size) : length;
}

static ssize_t get_value(int fd, const char *name, char *value, size_t size)
{
    ssize_t length = fgetxattr(fd, name, value, size);
    return length < 0 && errno == EBADF ? getxattr(path_proc(fd).text, name, value, size) : length;
}

static int set_value(int fd, const char *name, const char *value, size_t size)
{
    int result = fsetxattr(fd, name, value, size, 0);
    return result < 0 && errno == EBADF ? setxattr(path_proc(fd).text, name, value, size, 0)
                                        : result;
}

static int remove_value(int fd, const char *name)
{
    int result = fremovexattr(fd, name);
    return result < 0 && errno == EBADF ? removexattr(path_proc(fd).text, name) : result;
}

static int set_mode(int fd, mode_t mode)
{
    int result = fchmod(fd, mode);
    return result < 0 && errno == EBADF ? chmod(path_proc(fd).text, mode) : result;
}

static int set_times(int fd, const struct timespec times[2])
{
    int result = futimens(fd, times);
    return result < 0 && errno == EBADF ? utimensat(AT_FDCWD, path_proc(fd).text, times, 0)
                                        : result;
}

static int set_owner(int fd, uid_t uid, gid_t gid)
{
    return fchownat(fd, "", uid, gid, AT_EMPTY_PATH);
}

/* ---- extended attributes ---- */

static bool is_overlay_xattr(const char *name)
{
    return str_starts_with(name, "user.overlay.") || str_starts_with(name, "trusted.overlay.") ||
           str_starts_with(name, "user.fuseoverlayfs.") ||
           str_starts_with(name, "user.containers.");
}

static bool is_copied(const char *name, unsigned flags)
{
    if (is_overlay_xattr(name))
        return false;
    if (strcmp(name, XATTR_CAPABILITY) == 0)
        return flags & COPY_RISKY;
    return str_starts_with(name, "user.") || str_starts_with(name, XATTR_PREFIX_ACL) ||
           str_starts_with(name, "trusted.");
}

bool copy_counts_xattr(const char *name)
{
    return is_copied(name, COPY_RISKY) && !str_starts_with(name, "trusted.");
}

struct xattr_names {
    char *text; /* each with a NUL */
    size_t length;
};

static void xattr_names_done(struct xattr_names *names)
{
    free(names->text);
}

/* No names if the file or its filesystem has no attributes. */
static int list_xattrs(int fd, struct xattr_names *ret_names)
{
    *ret_names = (struct xattr_names){0};
    ssize_t size = list_names(fd, NULL, 0);
    if (size <= 0)
        return size < 0 && errno != ENOTSUP && errno != EACCES ? -errno : 0;
    char *text = malloc((size_t)size);
    ssize_t got = text ? list_names(fd, text, (size_t)size) : -1;
    if (got < 0) {
        free(text);
        return -(text ? errno : ENOMEM);
    }
    *ret_names = (struct xattr_names){text, (size_t)got};
    return 0;
}

/* The value for the caller to free; NULL with errno. */
static char *read_xattr(int fd, const char *name, size_t *ret_length)
{
    ssize_t size = get_value(fd, name, NULL, 0);
    char *value = size < 0 ? NULL : malloc((size_t)size + 1);
    if (!value)
        return NULL;
    size = get_value(fd, name, value, (size_t)size);
    if (size < 0) {
        free(value);
        return NULL;
    }
    *ret_length = (size_t)size;
    return value;
}

/* An ordinary user may not set some attributes, and some filesystems have none. */
static bool is_tolerable(int failed)
{
    return failed == EPERM || failed == ENOTSUP || failed == ENODATA || failed == EACCES;
}

static int copy_xattr(int from, int to, const char *name)
{
    size_t length = 0;
    autofree char *value = read_xattr(from, name, &length);
    if (!value)
        return is_tolerable(errno) ? 0 : -errno;
    return set_value(to, name, value, length) == 0 || is_tolerable(errno) ? 0 : -errno;
}

static int copy_xattrs(int from, int to, unsigned flags)
{
    __attribute__((cleanup(xattr_names_done))) struct xattr_names names;
    int result = list_xattrs(from, &names);
    for (size_t at = 0; at < names.length && result == 0; at += strlen(names.text + at) + 1)
        if (is_copied(names.text + at, flags))
            result = copy_xattr(from, to, names.text + at);
    return result;
}

/* Removes the attributes of `to` that `from` does not have. */
static int drop_other_xattrs(int from, int to)
{
    __attribute__((cleanup(xattr_names_done))) struct xattr_names names;
    int result = list_xattrs(to, &names);
    for (size_t at = 0; at < names.length && result == 0; at += strlen(names.text + at) + 1) {
        const char *name = names.text + at;
        if (is_copied(name, COPY_RISKY) && get_value(from, name, NULL, 0) < 0 && errno == ENODATA &&
            remove_value(to, name) < 0 && !is_tolerable(errno))
            result = -errno;
    }
    return result;
}

/* ---- metadata ---- */

static mode_t mode_of(const struct stat *info, unsigned flags)
{
    mode_t mode = info->st_mode & 07777;
    if (!S_ISDIR(info->st_mode) && !(flags & COPY_RISKY))
        mode &= (mode_t) ~(S_ISUID | S_ISGID);
    if (S_ISDIR(info->st_mode) && (flags & COPY_WRITABLE))
        mode |= S_IRWXU;
    return mode;
}

/* The owner first: that clears set-id bits and capabilities. */
static int set_metadata(int from, const struct stat *info, int to, unsigned flags)
{
    struct stat now;
    if (fstat(to, &now) < 0)
        return -errno;
    if ((now.st_uid != info->st_uid || now.st_gid != info->st_gid) &&
        set_owner(to, info->st_uid, info->st_gid) < 0) {
        if (errno != EPERM && errno != EINVAL)
            return -errno;
        (void)set_owner(to, (uid_t)-1, info->st_gid); /* a group of the caller is allowed */
    }
    int result = from >= 0 ? copy_xattrs(from, to, flags) : 0;
    if (result < 0)
        return result;
    if (set_mode(to, mode_of(info, flags)) < 0)
        return -errno;
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    return set_times(to, times) < 0 ? -errno : 0;
}

int copy_metadata(int from, const struct stat *info, int to, unsigned flags, struct brig_error *err)
{
    int result = drop_other_xattrs(from, to);
    if (result == 0)
        result = set_metadata(from, info, to, flags);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot set mode and attributes")
                      : 0;
}

/* ---- contents ---- */

/* Without the help of the kernel. Reads at `at`, because the file may have holes before it. */
static int copy_bytes(int from, int to, off_t at, off_t end)
{
    char part[PART_BYTES];
    while (at < end) {
        size_t wanted = end - at < PART_BYTES ? (size_t)(end - at) : PART_BYTES;
        ssize_t got = pread(from, part, wanted, at);
        if (got <= 0)
            return got < 0 ? -errno : -ESTALE; /* it has become shorter */
        for (ssize_t done = 0; done < got;) {
            ssize_t written = pwrite(to, part + done, (size_t)(got - done), at + done);
            if (written < 0)
                return -errno;
            done += written;
        }
        at += got;
    }
    return 0;
}

static int copy_range(int from, int to, off_t at, off_t end)
{
    while (at < end) {
        loff_t in = at, out = at;
        ssize_t done = copy_file_range(from, &in, to, &out, (size_t)(end - at), 0);
        if (done < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP ||
                         errno == ENOSYS || errno == EBADF || errno == EPERM))
            return copy_bytes(from, to, at, end);
        if (done <= 0)
            return done < 0 ? -errno : -ESTALE;
        at += done;
    }
    return 0;
}

/* Copies the parts that have data; the others stay holes. */
static int copy_sparse(int from, int to, off_t size)
{
    off_t at = 0;
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break; /* a hole up to the end */
        off_t hole = data < 0 ? size : lseek(from, data, SEEK_HOLE);
        int result =
            copy_range(from, to, data < 0 ? at : data, hole < 0 || hole > size ? size : hole);
        if (result < 0)
            return result;
        at = hole < 0 ? size : hole;
    }
    return ftruncate(to, size) < 0 ? -errno : 0;
}

static int copy_contents(int from, int to, const struct stat *info)
{
    if (info->st_size == 0)
        return 0;
    bool dense = (off_t)info->st_blocks * BLOCK >= info->st_size;
    if (dense && info->st_size <= SMALL_BYTES)
        return copy_bytes(from, to, 0, info->st_size);
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    return dense ? copy_range(from, to, 0, info->st_size) : copy_sparse(from, to, info->st_size);
}

/* ---- objects ---- */

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

int copy_open(int dir, const char *name, bool of_jail)
{
    struct stat info;
    autoclose int place = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0 || fstat(place, &info) < 0)
        return -1;
    if (!S_ISREG(info.st_mode)) {
        errno = ESTALE;
        return -1;
    }
    const struct path_proc path = path_proc(place);
    int fd = open(path.text, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES || !of_jail || info.st_uid != geteuid() ||
        chmod(path.text, (info.st_mode & 07777) | S_IRUSR) < 0)
        return fd;
    fd = open(path.text, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int failed = errno;
    (void)chmod(path.text, info.st_mode & 07777);
    errno = failed;
    return fd;
}

static int fill_contents(const struct copy_source *source, int from, int to, struct brig_error *err)
{
    struct stat before, after;
    if (source->fill)
        return source->fill(source->context, to, err);
    int result = fstat(from, &before) < 0 ? -errno : 0;
    if (result == 0 && (!S_ISREG(before.st_mode) || before.st_ino != source->info->st_ino))
        result = -ESTALE;
    if (result == 0)
        result = copy_contents(from, to, &before);
    if (result == 0 && (fstat(from, &after) < 0 || !is_unchanged(&before, &after)))
        result = -ESTALE;
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot copy '%s'",
                                  str_shown(source->name).text)
                      : 0;
}

/* Opens the file that the extended attributes come from; -1 if there are none. */
static int open_xattrs(const struct copy_source *source)
{
    if (source->xattrs_dir >= 0)
        return openat(source->xattrs_dir, source->xattrs_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return source->dir < 0 ? -1
                           : openat(source->dir, source->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static int finish_object(const struct copy_source *source, int original, int copy,
                         struct brig_error *err)
{
    bool shared = original >= 0 && source->xattrs_dir < 0;
    autoclose int xattrs = shared ? -1 : open_xattrs(source);
    int result = set_metadata(shared ? original : xattrs, source->info, copy, source->flags);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result,
                                  "cannot set mode and attributes of the copy of '%s'",
                                  str_shown(source->name).text)
                      : 0;
}

static int copy_regular(const struct copy_source *source, int to_dir, const char *to_name,
                        struct brig_error *err)
{
    autoclose int from =
        source->dir >= 0 && !source->fill ? copy_open(source->dir, source->name, true) : -1;
    if (from < 0 && !source->fill)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'",
                         str_shown(source->name).text);
    autoclose int to =
        openat(to_dir, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a copy of '%s'",
                         str_shown(source->name).text);
    int status = fill_contents(source, from, to, err);
    if (status == 0)
        status = finish_object(source, from, to, err);
    if (status == 0 && (source->flags & COPY_SYNC) && fsync(to) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write the copy of '%s'",
                           str_shown(source->name).text);
    return status;
}

static int copy_directory(const struct copy_source *source, int to_dir, const char *to_name,
                          struct brig_error *err)
{
    if (mkdirat(to_dir, to_name, 0700) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a copy of '%s'",
                         str_shown(source->name).text);
    autoclose int copy = openat(to_dir, to_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return finish_object(source, -1, copy, err);
}

/* Links, FIFOs and devices: they have no contents, and no attributes that are copied. */
static int make_special(const struct copy_source *source, int to_dir, const char *to_name)
{
    const struct stat *info = source->info;
    if (S_ISLNK(info->st_mode)) {
        char target[PATH_LENGTH_MAX + 1];
        ssize_t length =
            source->target ? 0 : readlinkat(source->dir, source->name, target, sizeof target);
        if (length < 0 || length == (ssize_t)sizeof target)
            return length < 0 ? -errno : -ENAMETOOLONG;
        target[length] = '\0';
        if (symlinkat(source->target ? source->target : target, to_dir, to_name) < 0)
            return -errno;
    } else if (mknodat(to_dir, to_name, info->st_mode & (S_IFMT | 0777), info->st_rdev) < 0) {
        return -errno;
    }
    if (fchownat(to_dir, to_name, info->st_uid, info->st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
        errno != EPERM && errno != EINVAL)
        return -errno;
    if (!S_ISLNK(info->st_mode) && fchmodat(to_dir, to_name, mode_of(info, source->flags), 0) < 0)
        return -errno;
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    return utimensat(to_dir, to_name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_special(const struct copy_source *source, int to_dir, const char *to_name,
                        struct brig_error *err)
{
    int result = make_special(source, to_dir, to_name);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot make a copy of '%s'",
                                  str_shown(source->name).text)
                      : 0;
}

int copy_object(const struct copy_source *source, int to_dir, const char *to_name,
                struct stat *ret_info, struct brig_error *err)
{
    struct stat info;
    int status = S_ISREG(source->info->st_mode)   ? copy_regular(source, to_dir, to_name, err)
                 : S_ISDIR(source->info->st_mode) ? copy_directory(source, to_dir, to_name, err)
                                                  : copy_special(source, to_dir, to_name, err);
    if (status == 0 && fstatat(to_dir, to_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the copy of '%s'",
                           str_shown(source->name).text);
    if (status < 0) {
        (void)unlinkat(to_dir, to_name, S_ISDIR(source->info->st_mode) ? AT_REMOVEDIR : 0);
        return status;
    }
    if (ret_info)
        *ret_info = info;
    return 0;
}
