/* SPDX-License-Identifier: MIT */
/* Walking trees that a jail has written. */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"

#define SIZE_DEPTH_MAX 128
/* Directories below this depth are first moved to the top, so that neither the stack nor the
 * descriptors run out. */
#define REMOVE_DEPTH_MAX 64
#define BLOCK 512
#define MOVED_NAME 64

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int open_directory(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Takes ownership of fd. */
static uint64_t size_of(int fd, dev_t device, int depth)
{
    autodir DIR *dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return 0;
    }
    uint64_t bytes = 0;
    const struct dirent *item;
    while ((item = readdir(dir))) {
        struct stat info;
        if (is_dots(item->d_name) ||
            fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            (S_ISDIR(info.st_mode) && info.st_dev != device)) /* files of an overlay may differ */
            continue;
        bytes += (uint64_t)info.st_blocks * BLOCK;
        int below = S_ISDIR(info.st_mode) && depth < SIZE_DEPTH_MAX
                        ? open_directory(dirfd(dir), item->d_name)
                        : -1;
        if (below >= 0)
            bytes += size_of(below, device, depth + 1); /* NOLINT(misc-no-recursion): bounded */
    }
    return bytes;
}

uint64_t tree_size(int directory)
{
    struct stat info;
    int fd = open_directory(directory, ".");
    return fd < 0 || fstat(directory, &info) < 0 ? 0 : size_of(fd, info.st_dev, 0);
}

bool tree_is_empty(int directory, const char *name)
{
    int fd = open_directory(directory, name);
    autodir DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    while (list && (item = readdir(list)))
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            return false;
    return list != NULL;
}

/* ---- removing ---- */

struct removal {
    int top; /* directories that are too deep are moved here */
    dev_t device;
    unsigned moved;
};

static int remove_below(struct removal *removal, int above, const char *name, int depth);

static void name_moved(char name[MOVED_NAME], unsigned number)
{
    (void)snprintf(name, MOVED_NAME, ".brig-removing-%d-%u", getpid(), number);
}

/* The moved directory is removed after the current walk has closed its descriptors. */
static int move_up(struct removal *removal, int above, const char *name)
{
    char place[MOVED_NAME];
    name_moved(place, removal->moved);
    if (renameat(above, name, removal->top, place) < 0)
        return -errno;
    removal->moved++;
    return 0;
}

static int empty_directory(struct removal *removal, int fd, int depth)
{
    autodir DIR *dir = fdopendir(fd);
    if (!dir) {
        int failed = errno;
        (void)close(fd);
        return -failed;
    }
    int result = 0;
    const struct dirent *item;
    while (result == 0 && (item = readdir(dir)))
        if (!is_dots(item->d_name))
            result = remove_below(removal, dirfd(dir), item->d_name, depth + 1);
    return result;
}

/* Opens a directory even if its mode denies it, as that of an overlay's work directory does: we own
 * it, so we can chmod it. */
static int open_anyhow(int above, const char *name)
{
    int fd = open_directory(above, name);
    if (fd >= 0 || errno != EACCES)
        return fd;
    autoclose int place = openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* Through the fd: a name could be a link by now. */
    return place < 0 || chmod(path_proc(place).text, 0700) < 0 ? -1 : open_directory(above, name);
}

static int remove_below(struct removal *removal, int above, const char *name, int depth)
{
    struct stat info;
    if (fstatat(above, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(info.st_mode))
        return unlinkat(above, name, 0) < 0 && errno != ENOENT ? -errno : 0;
    if (info.st_dev != removal->device)
        return -EXDEV;
    if (unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (depth > REMOVE_DEPTH_MAX)
        return move_up(removal, above, name);
    int fd = open_anyhow(above, name);
    if (fd < 0)
        return -errno;
    if ((info.st_mode & S_IRWXU) != S_IRWXU && fchmod(fd, 0700) < 0) {
        (void)close(fd);
        return -EACCES;
    }
    int result = empty_directory(removal, fd, depth);
    return result < 0 || unlinkat(above, name, AT_REMOVEDIR) == 0 ? result : -errno;
}

int tree_remove(int directory, const char *name, struct brig_error *err)
{
    struct stat info;
    if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    struct removal removal = {.top = directory, .device = info.st_dev};
    int result = remove_below(&removal, directory, name, 0);
    for (unsigned i = 0; i < removal.moved && result == 0; i++) {
        char place[MOVED_NAME];
        name_moved(place, i);
        result = remove_below(&removal, directory, place, 0);
    }
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot remove '%s'", name) : 0;
}

int tree_empty(int directory, struct brig_error *err)
{
    int fd = open_directory(directory, ".");
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int status = 0;
    const struct dirent *item;
    while (dir && status == 0 && (item = readdir(dir)))
        if (!is_dots(item->d_name))
            status = tree_remove(directory, item->d_name, err);
    return status;
}
