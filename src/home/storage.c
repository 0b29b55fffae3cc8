/* SPDX-License-Identifier: MIT */
/* Finds, creates and checks the directories of a jail. */
#include "home/storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "home/client.h"
#include "jail/sys.h"

#define NAME_SIZE 128

static int check_owner(int fd, const char *path, uid_t owner, struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot look at '%s'", path);
    if (info.st_uid != owner)
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "cannot keep jails in '%s': it belongs to uid %u. Choose a directory of "
                         "yours with --storage",
                         path, info.st_uid);
    if (info.st_mode & (S_IWGRP | S_IWOTH))
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "other users can write to '%s'. Try: chmod go-w '%s'", path, path);
    return 0;
}

int storage_open(const char *path, uid_t owner, struct brig_error *err)
{
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        int status = path_make_directories(path, strlen(path), 0700, err);
        if (status < 0)
            return status;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the storage directory '%s'", path);
    int status = check_owner(fd, path, owner, err);
    return status < 0 ? status : take_fd(&fd);
}

/* Restores the mode of a part: it is the home of a jail, where a run may have removed the owner's
 * permissions or granted them to others. */
static void mend_mode(int fd)
{
    struct stat info;
    mode_t mode =
        fstat(fd, &info) == 0 ? (info.st_mode & 07777 & ~(S_IWGRP | S_IWOTH)) | S_IRWXU : 0;
    if (mode != 0 && info.st_uid == geteuid() && mode != (info.st_mode & 07777))
        (void)fchmod(fd, mode);
}

int storage_part(int storage, const char *name, const char *kind, bool *ret_created,
                 struct brig_error *err)
{
    char part[NAME_SIZE];
    (void)snprintf(part, sizeof part, "%s.%s", name, kind);
    *ret_created = mkdirat(storage, part, 0700) == 0;
    if (!*ret_created && errno != EEXIST)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot make '%s' in the storage directory",
                         part);
    autoclose int fd = openat(storage, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        int failed = errno;
        (void)brig_fail(err, BRIG_E_SETUP, failed, "cannot open '%s' in the storage directory",
                        part);
        return failed == ENOENT
                   ? brig_advise(err, BRIG_E_SETUP,
                                 "It is a symbolic link to a directory that does not exist")
                   : BRIG_E_SETUP;
    }
    mend_mode(fd);
    int status = check_owner(fd, part, geteuid(), err);
    return status < 0 ? status : take_fd(&fd);
}

int storage_work(int changes, const char *name, struct brig_error *err)
{
    char part[NAME_SIZE];
    (void)snprintf(part, sizeof part, "%s.work", name);
    autoclose int above = openat(changes, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the directory above '%s.changes'",
                         name);
    if (mkdirat(above, part, 0700) < 0 && errno != EEXIST)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot make '%s' beside '%s.changes'", part,
                         name);
    autoclose int fd = openat(above, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s' beside '%s.changes'", part,
                         name);
    int status = check_owner(fd, part, geteuid(), err);
    return status < 0 ? status : take_fd(&fd);
}

void storage_below_done(struct storage_below *below)
{
    for (size_t i = 0; i < below->count; i++)
        (void)close(below->fds[i]);
    below->count = 0;
}

/* Whether a line is the path of a frozen directory: ".frozen/NUMBER", also above the storage of a reviewed
 * directory. */
static bool is_frozen(const char *line)
{
    if (str_starts_with(line, "../"))
        line += strlen("../");
    if (!str_starts_with(line, STORAGE_FROZEN "/"))
        return false;
    line += strlen(STORAGE_FROZEN "/");
    return *line && strspn(line, "0123456789") == strlen(line);
}

/* Completes a fork that was killed: NAME.below.new is the new list if its first directory has the changes, which a
 * single rename moves there. */
static void complete_below(int storage, const char *name, const char *part)
{
    char fresh[NAME_SIZE], line[64];
    (void)snprintf(fresh, sizeof fresh, "%s." STORAGE_BELOW ".new", name);
    autoclose int fd = openat(storage, fresh, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (length <= 0)
        return;
    line[length] = '\0';
    line[strcspn(line, "\n")] = '\0';
    /* rmdir fails if it is not empty. */
    if (is_frozen(line) && unlinkat(storage, line, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY)
        (void)renameat(storage, fresh, storage, part);
    else
        (void)unlinkat(storage, fresh, 0);
}

int storage_open_below(int storage, const char *name, struct storage_below *ret_below,
                       struct brig_error *err)
{
    char part[NAME_SIZE], text[STORAGE_BELOW_MAX * 64], *rest = text;
    ret_below->count = 0;
    (void)snprintf(part, sizeof part, "%s." STORAGE_BELOW, name);
    complete_below(storage, name, part);
    autoclose int fd = openat(storage, part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = '\0';
    for (char *line; length >= 0 && (line = strsep(&rest, "\n")) && *line;) {
        int frozen = ret_below->count < STORAGE_BELOW_MAX && is_frozen(line)
                         ? openat(storage, line, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                         : -1;
        if (frozen >= 0)
            ret_below->fds[ret_below->count++] = frozen;
        else
            length = -1;
    }
    if (length >= 0)
        return 0;
    storage_below_done(ret_below);
    return brig_fail(err, BRIG_E_STATE, 0,
                     "the jail '%s' was forked, and a directory that '%s' names is missing", name,
                     part);
}

int storage_remove_work(int changes, const char *name, struct brig_error *err)
{
    char part[NAME_SIZE];
    (void)snprintf(part, sizeof part, "%s.work", name);
    autoclose int above = openat(changes, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the directory above '%s.changes'",
                         name);
    return tree_remove(above, part, err);
}

int storage_check_upper(int changes, const char *name, struct brig_error *err)
{
    const char *attribute = "user.brig.probe";
    if (fsetxattr(changes, attribute, "y", 1, 0) == 0) {
        (void)fremovexattr(changes, attribute);
        return 0;
    }
    (void)brig_fail(err, BRIG_E_UNSUPPORTED, errno,
                    "'%s.changes' is on a filesystem without extended attributes for users, which "
                    "copy-on-write needs",
                    name);
    return brig_advise(err, BRIG_E_UNSUPPORTED,
                       "Keep it on a local disk: --storage DIR, or make '%s.changes' a symbolic "
                       "link to a directory there",
                       name);
}

/* ---- incompatible changes ---- */

/* An attribute of the work directory: the top of the upper directory is the jail's home, whose
 * attributes a run can set. */
#define MARK "user.brig.layers"
#define MARK_FUSE "fuse"
#define ASIDE_MAX 1000

/* Whether the top directory has attributes that our overlays never set. */
static bool has_foreign_attributes(int changes)
{
    static const char *const names[] = {
        "user.overlay.opaque",    "user.overlay.redirect",    "user.overlay.metacopy",
        "trusted.overlay.opaque", "trusted.overlay.redirect", "trusted.overlay.metacopy",
        "trusted.overlay.impure", "trusted.overlay.origin",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (fgetxattr(changes, names[i], NULL, 0) >= 0)
            return true;
    return false;
}

/* Whiteouts of an overlay mounted by root belong to root; its other marks are visible only to
 * root. */
static bool has_foreign_whiteouts(int changes)
{
    int fd = openat(changes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *item;
    while (dir && (item = readdir(dir))) {
        struct stat info;
        if ((item->d_type == DT_CHR || item->d_type == DT_UNKNOWN) &&
            fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISCHR(info.st_mode) && info.st_rdev == 0 && info.st_uid != geteuid())
            return true;
    }
    return false;
}

bool storage_is_fuse(int work)
{
    char mark[16];
    ssize_t length = fgetxattr(work, MARK, mark, sizeof mark);
    return length == (ssize_t)strlen(MARK_FUSE) && memcmp(mark, MARK_FUSE, (size_t)length) == 0;
}

int storage_misfits(int changes, int work, enum storage_layers layers, const char **ret_reason)
{
    if (storage_is_fuse(work) && layers == STORAGE_KERNEL)
        *ret_reason =
            "they were made by fuse-overlayfs, while something was mounted below the home";
    else if (has_foreign_attributes(changes) || has_foreign_whiteouts(changes))
        *ret_reason = "another program, or root, has made them, with marks that do not hold here";
    else
        return 0;
    return 1;
}

void storage_mark(int work, enum storage_layers layers)
{
    if (layers == STORAGE_FUSE)
        (void)fsetxattr(work, MARK, MARK_FUSE, strlen(MARK_FUSE), 0);
    else
        (void)fremovexattr(work, MARK);
}

int storage_set_aside(int changes, char ret_name[STORAGE_NAME_MAX], struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1] = "", aside[STORAGE_NAME_MAX + 32];
    const char *last = path_of_fd(changes, path) ? strrchr(path, '/') : NULL;
    autoclose int above = openat(changes, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int number = 1, result = -ENOENT;
    for (; above >= 0 && last && number < ASIDE_MAX && result < 0; number++) {
        (void)snprintf(aside, sizeof aside, "%s.aside-%d", last + 1, number);
        result = (int)SYS(renameat2, above, last + 1, above, aside, RENAME_NOREPLACE);
        if (result < 0 && result != -EEXIST)
            break;
    }
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot set '%s' aside", path);
    if (mkdirat(above, last + 1, 0700) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot create '%s' again", path);
    int fd = openat(above, last + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s'", path);
    (void)snprintf(ret_name, STORAGE_NAME_MAX, "%.*s/%s", (int)(last - path), path, aside);
    return fd;
}

int storage_key(const char *storage, const char *name, char ret_key[STORAGE_KEY_MAX],
                struct brig_error *err)
{
    struct stat info;
    if (stat(storage, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot look at the storage directory '%s'",
                         storage);
    (void)snprintf(ret_key, STORAGE_KEY_MAX, "%llx-%llx-%s", (unsigned long long)info.st_dev,
                   (unsigned long long)info.st_ino, name);
    return 0;
}

/* ---- sockets ---- */

/* The directories for the sockets of holders. They do not depend on the environment, so that root
 * acting for a user finds the same one as the user. */

/* The runtime directory of a logged-in user; a directory of root's, for isolated jails; one in
 * /tmp, whose name another user could take first; and one in the storage, which no other user can
 * reach. */
bool sockets_name(unsigned which, uid_t uid, const char *storage, char path[PATH_LENGTH_MAX + 1])
{
    static const struct {
        const char *before, *after; /* around the uid */
    } places[] = {{"/run/user/", "/brig"}, {"/run/brig-", ""}, {"/tmp/brig-", ""}};
    if (which < ARRAY_LENGTH(places))
        return str_fill(path, PATH_LENGTH_MAX + 1, places[which].before, str_number(uid).text,
                        places[which].after);
    return which < SOCKETS_PLACES && storage && *storage &&
           str_fill(path, PATH_LENGTH_MAX + 1, storage, "/.sockets");
}

static int open_place(const char *path, uid_t uid, bool wait)
{
    struct stat info;
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (wait && fd >= 0)
        (void)giving_await(fd, uid);
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_uid != uid ||
        (info.st_mode & (S_IWGRP | S_IWOTH)))
        return -1;
    return take_fd(&fd);
}

int sockets_open(unsigned which, uid_t uid, const char *storage)
{
    char path[PATH_LENGTH_MAX + 1];
    return sockets_name(which, uid, storage, path) ? open_place(path, uid, false) : -1;
}

/* Root chowns a new directory by its fd: the name could lead to another file by now. */
static void make_place(const char *path, uid_t uid)
{
    if (mkdir(path, 0700) < 0 || geteuid() == uid)
        return;
    autoclose int fd = open_place(path, geteuid(), false);
    if (fd >= 0 && fchown(fd, uid, (gid_t)-1) < 0)
        (void)rmdir(path);
}

int sockets_make(uid_t uid, const char *storage, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1] = "";
    for (unsigned i = 0; i < SOCKETS_PLACES; i++) {
        if (!sockets_name(i, uid, storage, path))
            continue;
        int fd = open_place(path, uid, false);
        if (fd >= 0)
            return fd;
        make_place(path, uid);
        fd = open_place(path, uid, true);
        if (fd >= 0)
            return fd;
    }
    return brig_fail(err, BRIG_E_SETUP, 0,
                     "cannot use '/tmp/brig-%u' for the sockets of jails: it does not belong to "
                     "you alone. Remove it",
                     uid);
}

int sockets_address(int directory, const char *key, struct sockaddr_un *ret_address,
                    struct brig_error *err)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return str_fill(ret_address->sun_path, sizeof ret_address->sun_path, "/proc/self/fd/",
                    str_number((unsigned)directory).text, "/", key, ".sock")
               ? 0
               : brig_fail(err, BRIG_E_INVALID, 0, "the jail's name is too long");
}
