/* SPDX-License-Identifier: MIT */
/* Directories of a jail: found, made, checked. */
#include "home/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "home/tree.h"

#define NAME_SIZE 128

static int make_directories(const char *path, struct brig_error *err)
{
    autofree char *copy = strdup(path);
    if (!copy)
        return brig_fail_nomem(err);
    for (char *at = copy + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char kept = *at;
        *at = 0;
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot make the directory '%s'", copy);
        *at = kept;
        if (!kept)
            return 0;
    }
}

static int check_owner(int fd, const char *path, uid_t owner, struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot look at '%s'", path);
    if (info.st_uid != owner)
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "'%s' belongs to uid %u, not to you: jails are kept only in what is your "
                         "own. Choose another place with --storage",
                         path, info.st_uid);
    if (info.st_mode & (S_IWGRP | S_IWOTH))
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "'%s' can be written to by others. Try: chmod go-w '%s'", path, path);
    return 0;
}

int storage_open(const char *path, uid_t owner, struct brig_error *err)
{
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        int status = make_directories(path, err);
        if (status < 0)
            return status;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open the storage directory '%s'", path);
    int status = check_owner(fd, path, owner, err);
    return status < 0 ? status : take_fd(&fd);
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
                   ? brig_advise(err, BRIG_E_SETUP, "It is a link to what is not there")
                   : BRIG_E_SETUP;
    }
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
