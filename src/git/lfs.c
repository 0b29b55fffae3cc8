/* SPDX-License-Identifier: MIT */
/* Objects of Git LFS. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/sha256.h"
#include "git/transfer.h"

#define OBJECTS_MAX 1000000
#define PART_BYTES 65536

int lfs_open_beside(int objects)
{
    autoclose int git_dir = files_open_dir(objects, "..");
    autoclose int lfs = git_dir < 0 ? -1 : files_open_dir(git_dir, "lfs");
    return lfs < 0 ? -1 : files_open_dir(lfs, "objects");
}

/* Copies the bytes, unless `to` is -1. Returns 1, or 0 if their hash is not `name`. */
static int copy_bytes(int from, int to, const char *name, struct brig_error *err)
{
    unsigned char part[PART_BYTES];
    char text[SHA256_HEX_LENGTH + 1];
    struct sha256 hash;
    ssize_t got;
    sha256_begin(&hash);
    while ((got = read(from, part, sizeof part)) > 0) {
        sha256_add(&hash, part, (size_t)got);
        int failed = to < 0 ? 0 : write_all(to, part, (size_t)got);
        if (failed < 0)
            return brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write the LFS object %s", name);
    }
    if (got < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the LFS object %s", name);
    sha256_end(&hash, text);
    return strcmp(text, name) == 0;
}

static int make_directories(int common, const char *name, struct brig_error *err)
{
    char outer[32], inner[32];
    (void)snprintf(outer, sizeof outer, "lfs/objects/%.2s", name);
    (void)snprintf(inner, sizeof inner, "%s/%.2s", outer, name + 2);
    const char *const paths[] = {"lfs", "lfs/tmp", "lfs/objects", outer, inner};
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++)
        if (mkdirat(common, paths[i], 0777) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create '%s' in the git directory",
                             paths[i]);
    return 0;
}

/* No jail can write to the user's git directory, so paths in it may have several components. */
static int copy_object(int common, int from, const char *name, struct brig_error *err)
{
    autoclose int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    autoclose int target = -1;
    char path[128], temporary[128];
    struct stat info;
    (void)snprintf(path, sizeof path, "lfs/objects/%.2s/%.2s/%s", name, name + 2, name);
    (void)snprintf(temporary, sizeof temporary, "lfs/tmp/%s", name);
    if (source < 0 && errno != ENOENT && errno != ELOOP && errno != ENXIO)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the LFS object %s", name);
    if (source < 0 || fstat(source, &info) < 0 || !S_ISREG(info.st_mode) ||
        faccessat(common, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int status = copy_bytes(source, -1, name, err); /* check first: a wrong hash writes nothing */
    if (status <= 0)
        return status;
    status = make_directories(common, name, err);
    if (status < 0 || lseek(source, 0, SEEK_SET) < 0)
        return status;
    target = openat(common, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (target < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot create the LFS object %s", name);
    status = copy_bytes(source, target, name, err);
    if (status > 0 && (fsync(target) < 0 || renameat(common, temporary, common, path) < 0))
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot store the LFS object %s", name);
    if (status <= 0)
        (void)unlinkat(common, temporary, 0);
    return status < 0 ? status : 0;
}

static bool is_hex(const char *text, size_t length)
{
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* Copies the objects in a directory and in its subdirectories 01 and 01/23. */
static int copy_objects(int common, int at, const char *name, unsigned depth, size_t *count,
                        struct brig_error *err)
{
    autodir DIR *dir = files_list(at, name);
    int status = 0;
    for (const struct dirent *item; status == 0 && dir && (item = files_next(dir));) {
        if (depth < 2 && is_hex(item->d_name, 2))
            status = copy_objects(common, dirfd(dir), item->d_name, depth + 1, count, err);
        else if (++*count > OBJECTS_MAX)
            status = brig_fail(err, BRIG_E_INVALID, 0, "the jail has more than %d LFS objects",
                               OBJECTS_MAX);
        else if (is_hex(item->d_name, SHA256_HEX_LENGTH))
            status = copy_object(common, dirfd(dir), item->d_name, err);
    }
    return status;
}

int lfs_transfer(int private_dir, int common, struct brig_error *err)
{
    autoclose int from = files_open_dir(private_dir, "lfs");
    size_t count = 0;
    return from < 0 ? 0 : copy_objects(common, from, "objects", 0, &count, err);
}
