/* SPDX-License-Identifier: MIT */
/* Checks what a jail has copied to the host, and moves it into place. */
#include "cli/copy_out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/message.h"
#include "home/tree.h"

#define DEPTH_MAX 256
#define TOLD_MAX 20 /* lines about what was left out */
#define TRIES 16
#define RENAME_FLAG_NOREPLACE 1

/* One walk through the stage. */
struct walk {
    const struct copy_out *copy;
    char path[PATH_LENGTH_MAX + 1]; /* of where it is, in the stage */
    size_t left;
    int (*visit)(struct walk *walk, int directory, const char *name, const struct stat *info,
                 struct brig_error *err);
};

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int open_directory(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- the stage ---- */

int copy_out_begin(const char *above, struct copy_out *ret_copy, struct brig_error *err)
{
    struct stat info, made_info;
    struct copy_out copy = {.above = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .stage = -1};
    autoclose int opened = copy.above;
    if (opened < 0 || fstat(opened, &info) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s'", str_shown(above).text);
    int made = -1;
    for (int i = 0; i < TRIES && made < 0; i++) {
        unsigned long long number = 0;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            break;
        (void)snprintf(copy.name, sizeof copy.name, ".brig-cp-%012llx", number & 0xffffffffffff);
        made = mkdirat(opened, copy.name, 0700);
        if (made < 0 && errno != EEXIST)
            break;
    }
    if (made < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to '%s'", str_shown(above).text);
    copy.stage = open_directory(opened, copy.name);
    /* What root copies for itself belongs to whoever has the directory. */
    if (copy.stage < 0 || fstat(copy.stage, &made_info) < 0 ||
        (made_info.st_uid == 0 && info.st_uid != 0 &&
         fchown(copy.stage, info.st_uid, info.st_gid) < 0)) {
        int failed = errno;
        (void)unlinkat(opened, copy.name, AT_REMOVEDIR);
        if (copy.stage >= 0)
            (void)close(copy.stage);
        return brig_fail(err, BRIG_E_SYSTEM, failed, "cannot use '%s/%s'", str_shown(above).text,
                         copy.name);
    }
    (void)take_fd(&opened);
    *ret_copy = copy;
    return 0;
}

/* ---- walking ---- */

__attribute__((format(printf, 2, 3))) static void leave_out(struct walk *walk, const char *format,
                                                            ...)
{
    char text[PATH_LENGTH_MAX + 256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (walk->left++ < TOLD_MAX)
        message_warning("not copied: '%s' %s", str_shown(walk->path).text, text);
}

/* Calls visit() for all entries; takes the fd over. */
static int walk_directory(struct walk *walk, int fd, int depth, struct brig_error *err)
{
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int failed = errno;
        if (fd >= 0)
            (void)close(fd);
        return brig_fail(err, BRIG_E_SYSTEM, failed, "cannot read what was copied, '%s'",
                         str_shown(walk->path).text);
    }
    size_t length = strlen(walk->path);
    int status = 0;
    for (const struct dirent *item; status == 0 && (item = readdir(dir));) {
        struct stat info;
        size_t size = strlen(item->d_name);
        if (is_dots(item->d_name) ||
            fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (depth >= DEPTH_MAX || length + size + 2 > sizeof walk->path)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "what was copied is too deep at '%s': at most %d directories",
                             str_shown(walk->path).text, DEPTH_MAX);
        (void)snprintf(walk->path + length, sizeof walk->path - length, "%s%s", length ? "/" : "",
                       item->d_name);
        if (S_ISDIR(info.st_mode))
            /* NOLINTNEXTLINE(misc-no-recursion): bounded */
            status = walk_directory(walk, open_directory(dirfd(dir), item->d_name), depth + 1, err);
        else
            status = walk->visit(walk, dirfd(dir), item->d_name, &info, err);
        walk->path[length] = '\0';
    }
    return status;
}

static int walk_stage(struct walk *walk, struct brig_error *err)
{
    return walk_directory(walk, open_directory(walk->copy->stage, "."), 0, err);
}

/* ---- what is left out ---- */

static int drop(struct walk *walk, int directory, const char *name, struct brig_error *err)
{
    return unlinkat(directory, name, 0) == 0
               ? 0
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s' of what was copied",
                           str_shown(walk->path).text);
}

static int visit_file(struct walk *walk, int directory, const char *name, const struct stat *info,
                      struct brig_error *err)
{
    if (S_ISLNK(info->st_mode))
        return 0;
    if (!S_ISREG(info->st_mode)) {
        leave_out(walk, "is a %s",
                  S_ISFIFO(info->st_mode)   ? "fifo"
                  : S_ISSOCK(info->st_mode) ? "socket"
                                            : "device");
        return drop(walk, directory, name, err);
    }
    if (!(info->st_mode & (S_ISUID | S_ISGID)))
        return 0;
    autoclose int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fchmod(fd, info->st_mode & 01777) == 0)
        return 0;
    leave_out(walk, "has a set-id mode");
    return drop(walk, directory, name, err);
}

/* A link may stay if it leads to something that was copied with it. Where that is decides the kernel,
 * which leaves the stage neither by "..", nor by an absolute link, nor by one on the way. */
static int visit_link(struct walk *walk, int directory, const char *name, const struct stat *info,
                      struct brig_error *err)
{
    char target[PATH_LENGTH_MAX + 1];
    struct stat found, stage;
    autoclose int fd = -1;
    if (!S_ISLNK(info->st_mode))
        return 0;
    int status = path_open_beneath(walk->copy->stage, walk->path, O_PATH, 0, &fd, NULL);
    if (status == 0 && fstat(fd, &found) == 0 && fstat(walk->copy->stage, &stage) == 0 &&
        (found.st_ino != stage.st_ino || found.st_dev != stage.st_dev))
        return 0;
    ssize_t length = readlinkat(directory, name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    leave_out(walk, "is a link to '%s', which is not part of the copy", str_shown(target).text);
    return drop(walk, directory, name, err);
}

static int check(struct walk *walk, struct brig_error *err)
{
    walk->visit = visit_file;
    int status = walk_stage(walk, err);
    if (status < 0)
        return status;
    walk->visit = visit_link;
    return walk_stage(walk, err);
}

/* ---- into place ---- */

/* Gives it the same name in another directory; -EEXIST if that is taken and must not be. */
static int rename_to(int from, const char *name, int to, bool replace)
{
    struct stat info;
    if (replace)
        return renameat(from, name, to, name) == 0 ? 0 : -errno;
    /* By number: musl has no function for it. */
    if (syscall(SYS_renameat2, from, name, to, name, RENAME_FLAG_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) /* the filesystem does not know the flag */
        return -errno;
    if (fstatat(to, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(from, name, to, name) == 0 ? 0 : -errno;
}

/* To move a directory elsewhere one must be able to write to it. */
static int move(int from, const char *name, int to, const struct stat *info, bool replace)
{
    int result = rename_to(from, name, to, replace);
    if (result != -EACCES || !S_ISDIR(info->st_mode))
        return result;
    autoclose int fd = open_directory(from, name);
    if (fd < 0 || fchmod(fd, (info->st_mode | 0700) & 07777) < 0)
        return -EACCES;
    result = rename_to(from, name, to, replace);
    (void)fchmod(fd, info->st_mode & 07777);
    return result;
}

static int place_all(struct walk *walk, int from, int to, int depth, struct brig_error *err);

/* The name is taken. */
static int merge(struct walk *walk, int from, const char *name, int to, const struct stat *info,
                 int depth, struct brig_error *err)
{
    struct stat there;
    if (fstatat(to, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at '%s'",
                         str_shown(walk->path).text);
    if (strcmp(name, ".git") == 0) {
        leave_out(walk, "is there already, and a repository's hooks and settings could come with "
                        "it. Copy it to another place, or remove that one first");
        return 0;
    }
    if (S_ISDIR(info->st_mode) && S_ISDIR(there.st_mode)) {
        autoclose int below = open_directory(to, name);
        int source = open_directory(from, name);
        if (below >= 0 && source >= 0)
            return place_all(walk, source, below, depth + 1, err); /* NOLINT(misc-no-recursion) */
        if (source >= 0)
            (void)close(source);
    } else if (!S_ISDIR(info->st_mode) && !S_ISDIR(there.st_mode)) {
        errno = -move(from, name, to, info, true);
        if (errno == 0)
            return 0;
    } else {
        errno = S_ISDIR(there.st_mode) ? EISDIR : ENOTDIR;
    }
    leave_out(walk, "cannot be put in the place of what is there: %s", strerror(errno));
    return 0;
}

/* Takes `from` over. The stage was walked once: it is not deeper than that walk allows. */
static int place_all(struct walk *walk, int from, int to, int depth, struct brig_error *err)
{
    autodir DIR *dir = fdopendir(from);
    if (!dir) {
        (void)close(from);
        return brig_fail_nomem(err);
    }
    size_t length = strlen(walk->path);
    int status = 0;
    for (const struct dirent *item; status == 0 && (item = readdir(dir));) {
        struct stat info;
        if (is_dots(item->d_name) ||
            fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        (void)snprintf(walk->path + length, sizeof walk->path - length, "%s%s", length ? "/" : "",
                       item->d_name);
        int result = move(dirfd(dir), item->d_name, to, &info, false);
        if (result == -EEXIST)
            /* NOLINTNEXTLINE(misc-no-recursion): bounded */
            status = merge(walk, dirfd(dir), item->d_name, to, &info, depth, err);
        else if (result < 0)
            leave_out(walk, "cannot be put into place: %s", strerror(-result));
        walk->path[length] = '\0';
    }
    return status;
}

int copy_out_end(struct copy_out *copy, bool place, size_t *ret_left, struct brig_error *err)
{
    autoclose int above = take_fd(&copy->above);
    autoclose int stage = copy->stage;
    struct walk walk = {.copy = copy};
    int status = place ? check(&walk, err) : 0;
    if (status == 0 && place)
        status = place_all(&walk, open_directory(stage, "."), above, 0, err);
    if (walk.left > TOLD_MAX)
        message_warning("not copied: %zu more", walk.left - TOLD_MAX);
    *ret_left = walk.left;
    int removed = tree_remove(above, copy->name, status < 0 ? NULL : err);
    copy->stage = -1;
    return status < 0 ? status : removed;
}
