/* SPDX-License-Identifier: MIT */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"

bool files_exists(int dir, const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int files_open_dir(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

DIR *files_list(int at, const char *name)
{
    autoclose int fd = files_open_dir(at, name);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir)
        (void)take_fd(&fd);
    return dir;
}

const struct dirent *files_next(DIR *dir)
{
    const struct dirent *item;
    while ((item = readdir(dir)) &&
           (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0))
        ;
    return item;
}

bool files_is_empty_dir(int dir)
{
    autodir DIR *list = files_list(dir, ".");
    return list && !files_next(list);
}

bool files_is_mount_point(int dir)
{
    return files_is_empty_dir(dir) && flock(dir, LOCK_EX | LOCK_NB) < 0;
}

int files_make_dir(int at, const char *name, int *ret_fd, struct brig_error *err)
{
    int fd = mkdirat(at, name, 0755) < 0 && errno != EEXIST ? -1 : files_open_dir(at, name);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno,
                         "cannot make the directory '%s' in the jail's storage", name);
    *ret_fd = fd;
    return 0;
}

static bool files_identify_with(int dir, const char *name, unsigned asked,
                                char ret_id[FILES_ID_MAX])
{
    struct statx info;
    if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_INO | asked, &info) < 0)
        return false;
    uintmax_t first =
        asked & info.stx_mask & STATX_BTIME
            ? (uintmax_t)info.stx_btime.tv_sec * CLOCK_SECOND_NS + info.stx_btime.tv_nsec
            : makedev(info.stx_dev_major, info.stx_dev_minor);
    (void)snprintf(ret_id, FILES_ID_MAX, "%jx-%jx", first, (uintmax_t)info.stx_ino);
    return true;
}

bool files_identify(int dir, const char *name, char ret_id[FILES_ID_MAX])
{
    return files_identify_with(dir, name, STATX_BTIME, ret_id);
}

bool files_has_id(int fd, const char *id)
{
    char now[FILES_ID_MAX], old[FILES_ID_MAX];
    return files_identify(fd, "", now) && files_identify_with(fd, "", 0, old) &&
           (strcmp(now, id) == 0 || strcmp(old, id) == 0);
}

void files_rename_id(int dir, const char *prefix, int fd)
{
    char now[FILES_ID_MAX], old[FILES_ID_MAX];
    autostr struct str from = {0}, to = {0};
    if (!files_identify(fd, "", now) || !files_identify_with(fd, "", 0, old))
        return;
    str_concat(&from, prefix, old);
    str_concat(&to, prefix, now);
    if (!from.failed && !to.failed)
        (void)renameat2(dir, from.data, dir, to.data, RENAME_NOREPLACE);
}

int files_random_name(const char *prefix, char *ret_name, size_t size, struct brig_error *err)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "getrandom");
    (void)snprintf(ret_name, size, "%s%016jx", prefix, (uintmax_t)number);
    return 0;
}

void files_sync(int dir, const char *name)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
}

static int files_replace(int dir, const char *name, const void *bytes, size_t length, bool durable,
                         struct brig_error *err)
{
    char temporary[32];
    int status = files_random_name("new-", temporary, sizeof temporary, err);
    if (status < 0)
        return status;
    autoclose int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int failed = fd < 0 ? -errno : write_all(fd, bytes, length);
    if (failed == 0 && durable && fsync(fd) < 0)
        failed = -errno;
    if (failed == 0 && renameat(dir, temporary, dir, name) < 0)
        failed = -errno;
    if (failed == 0 && durable)
        files_sync(dir, ".");
    if (failed == 0)
        return 0;
    if (fd >= 0)
        (void)unlinkat(dir, temporary, 0);
    return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write '%s' in the jail's storage", name);
}

int files_write(int dir, const char *name, const void *bytes, size_t length, struct brig_error *err)
{
    return files_replace(dir, name, bytes, length, false, err);
}

int files_write_durable(int dir, const char *name, const void *bytes, size_t length,
                        struct brig_error *err)
{
    return files_replace(dir, name, bytes, length, true, err);
}

bool files_read(int dir, const char *name, struct str *text)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
        info.st_size > (off_t)STR_LENGTH_MAX / 2)
        return false;
    char *to = str_extend(text, (size_t)info.st_size);
    return info.st_size == 0 || (to && pread(fd, to, (size_t)info.st_size, 0) == info.st_size);
}

int files_in_memory(const void *bytes, size_t length, struct brig_error *err)
{
    autoclose int fd = memfd_create("brig", MFD_CLOEXEC);
    int failed = fd < 0 ? -errno : write_all(fd, bytes, length);
    if (failed == 0 && lseek(fd, 0, SEEK_SET) < 0)
        failed = -errno;
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot make a file in memory")
                      : take_fd(&fd);
}

int files_make_path(int top, const char *path)
{
    autoclose int at = files_open_dir(top, ".");
    while (at >= 0 && *path) {
        char name[NAME_MAX + 1];
        size_t length = strcspn(path, "/");
        if (length == 0 || length > NAME_MAX)
            return -1;
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        (void)mkdirat(at, name, 0777);
        int next = files_open_dir(at, name);
        (void)close(at);
        at = next;
        path += length + (path[length] == '/');
    }
    return at < 0 ? -1 : 0;
}

/* ---- cached answers of git ---- */

void files_add_state(struct str *states, const char *path)
{
    struct stat info = {0};
    bool there = stat(path, &info) == 0;
    str_list_add(states, path);
    str_appendf(states, "%d-%jx-%jx-%jx-%jx.%lx", there, (uintmax_t)info.st_dev,
                (uintmax_t)info.st_ino, (uintmax_t)info.st_size, (uintmax_t)info.st_ctim.tv_sec,
                info.st_ctim.tv_nsec);
    str_append_bytes(states, "", 1);
}

/* The file contains the states, an empty text and the answer. */
bool files_read_answer(int cache, const char *name, struct str *ret_answer)
{
    autostr struct str text = {0}, now = {0};
    if (cache < 0 || !files_read(cache, name, &text))
        return false;
    const char *at = NULL;
    while ((at = str_list_next(&text, at)) && *at) {
        files_add_state(&now, at);
        if (!(at = str_list_next(&text, at))) /* the file was truncated, as after a crash */
            return false;
    }
    if (!at || now.failed || now.length == 0 || at != text.data + now.length ||
        memcmp(now.data, text.data, now.length) != 0)
        return false;
    str_append_bytes(ret_answer, text.data + now.length + 1, text.length - now.length - 1);
    return true;
}

void files_write_answer(int cache, const char *name, const struct str *states,
                        const struct str *answer)
{
    autostr struct str text = {0};
    str_append_bytes(&text, states->data, states->length);
    str_append_bytes(&text, "", 1);
    str_append_bytes(&text, answer->data, answer->length);
    if (cache >= 0 && !states->failed && !answer->failed && !text.failed)
        (void)files_write(cache, name, text.data, text.length, NULL);
}

/* ---- copying ---- */

#define COPYING_DEPTH_MAX 64
#define COPYING_FILES_MAX 1000000

/* Copies a part of a file in the kernel. */
static int copy_range(int from, int to, off_t at, off_t end)
{
    if (lseek(to, at, SEEK_SET) < 0)
        return -errno;
    while (at < end) {
        ssize_t done = sendfile(to, from, &at, (size_t)(end - at));
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done == 0) /* the file was truncated meanwhile */
            return 0;
    }
    return 0;
}

/* Copies a file: cloned, or part by part, without its holes. */
static int copy_bytes(int from, int to, off_t size)
{
    if (size == 0 || ioctl(to, FICLONE, from) == 0)
        return 0;
    if (ftruncate(to, size) < 0)
        return -errno;
    for (off_t at = 0; at < size;) {
        off_t begin = lseek(from, at, SEEK_DATA);
        if (begin < 0 && errno == ENXIO) /* only a hole is left */
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

struct copying {
    const char *except;
    size_t files;
};

static int copy_directory(struct copying *c, int from, const char *name, int to,
                          const char *to_name, int depth, struct brig_error *err);

static int copy_entry(struct copying *c, int from, const struct dirent *item, int to, int depth,
                      struct brig_error *err)
{
    const char *name = item->d_name;
    int status = 0;
    if (++c->files > COPYING_FILES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' has more than %d files",
                         str_shown(name).text, COPYING_FILES_MAX);
    if (item->d_type == DT_DIR || item->d_type == DT_UNKNOWN)
        status = copy_directory(c, from, name, to, name, depth + 1, err);
    if (status == 0 && (item->d_type == DT_REG || item->d_type == DT_UNKNOWN))
        status = copying_file(from, name, to, name, err);
    return status;
}

static int copy_directory(struct copying *c, int from, const char *name, int to,
                          const char *to_name, int depth, struct brig_error *err)
{
    autodir DIR *dir = files_list(from, name);
    if (!dir)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
    if (depth == COPYING_DEPTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is too deep to be copied (limit %d levels)",
                         str_shown(name).text, COPYING_DEPTH_MAX);
    if (mkdirat(to, to_name, 0755) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s'", str_shown(name).text);
    autoclose int made = files_open_dir(to, to_name);
    if (made < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", str_shown(name).text);
    int status = 0;
    for (const struct dirent *item; status >= 0 && (item = files_next(dir));)
        if (!c->except || !str_ends_with(item->d_name, c->except))
            status = copy_entry(c, dirfd(dir), item, made, depth, err);
    return status < 0 ? status : 1;
}

int copying_tree(int from, const char *name, int to, const char *to_name, const char *except,
                 struct brig_error *err)
{
    return copy_directory(&(struct copying){.except = except}, from, name, to, to_name, 0, err);
}
