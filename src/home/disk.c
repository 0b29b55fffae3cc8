/* SPDX-License-Identifier: MIT */
/* The limit on what a jail writes, for what it has on disk. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "home/home.h"
#include "home/quota.h"

#define PART_MAX (HOME_NAME_MAX + 16)

/* An overlay's upper and work directory, or the jail's home. */
struct directories {
    int fds[2];
    size_t count;
};

static void directories_done(struct directories *directories)
{
    for (size_t i = 0; i < directories->count; i++)
        (void)close(directories->fds[i]);
}

/* Of what a link leads to, only what the jail's user owns is the jail's. */
static bool add_directory(struct directories *directories, int above, const char *name,
                          const char *kind, int flags, const struct home_spec *spec)
{
    char part[PART_MAX];
    struct stat info;
    (void)snprintf(part, sizeof part, "%s.%s", name, kind);
    autoclose int fd = openat(above, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (fd < 0 || fstat(fd, &info) < 0 || (info.st_uid != spec->uid && info.st_uid != spec->owner))
        return false;
    directories->fds[directories->count++] = take_fd(&fd);
    return true;
}

/* They are as home_join() has made them. */
static bool open_directories(const struct home_spec *spec, struct directories *directories)
{
    autoclose int storage = open(spec->storage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (storage < 0)
        return false;
    if (spec->kind != POLICY_HOME_OVERLAY)
        return add_directory(directories, storage, spec->name, "home", 0, spec);
    if (!add_directory(directories, storage, spec->name, "changes", 0, spec))
        return false;
    autoclose int above = openat(directories->fds[0], "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return above >= 0 && add_directory(directories, above, spec->name, "work", O_NOFOLLOW, spec);
}

/* Root looks up names as who they belong to: an overlay's that is a stranger's, as root. */
static bool open_as_owner(const struct home_spec *spec, struct directories *directories)
{
    bool for_another = geteuid() == 0 && spec->uid == spec->owner;
    if (for_another)
        (void)setfsuid(spec->owner);
    bool opened = open_directories(spec, directories);
    if (for_another)
        (void)setfsuid(geteuid());
    return opened;
}

static bool limit_home(const struct home_spec *spec, const struct home_mounts *mounts)
{
    __attribute__((cleanup(directories_done))) struct directories directories = {.count = 0};
    if (!open_as_owner(spec, &directories))
        return false;
    int first = directories.fds[0];
    bool ours = quota_is_ours(first), wanted = mounts->disk_bytes || mounts->disk_inodes;
    if (geteuid() == 0 && (ours || (wanted && !mounts->crowded)))
        (void)quota_limit(directories.fds, directories.count, mounts->disk_bytes,
                          mounts->disk_inodes);
    for (size_t i = 0; i < directories.count; i++)
        if (!quota_holds(directories.fds[i], spec->disk_bytes, spec->disk_inodes))
            return false;
    return true;
}

void home_limit_disk(const struct home_spec *spec, const struct home_mounts *mounts,
                     char ret_lack[POLICY_LACK_MAX])
{
    bool wanted = spec->disk_bytes || spec->disk_inodes;
    ret_lack[0] = 0;
    if (!wanted && geteuid() != 0)
        return;
    bool held = limit_home(spec, mounts); /* or lifted, if nothing is wanted */
    if (wanted && mounts->disk_errno != 0)
        (void)snprintf(ret_lack, POLICY_LACK_MAX,
                       "more is in the jail's /tmp already; remove files there, or `brig stop`");
    else if (wanted && !held)
        (void)snprintf(ret_lack, POLICY_LACK_MAX, "the jail's home is on disk, and %s",
                       geteuid() == 0 && mounts->crowded
                           ? "other runs are in the jail"
                           : "only root can limit it, where the filesystem has prjquota");
}
