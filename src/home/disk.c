/* SPDX-License-Identifier: MIT */
/* The disk limits of a jail, for its directories on disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "home/disk.h"
#include "home/home.h"
#include "jail/sys.h"

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

/* A link may lead anywhere: only a directory that the jail's user owns counts. */
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

/* Opens the directories that home_join() has created. */
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

/* Root looks up names with the ids of their owner; for the overlay of an isolated uid it stays
 * root. */
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
    bool held = limit_home(spec, mounts); /* lifts the limit if none is wanted */
    if (wanted && mounts->disk_errno != 0)
        (void)snprintf(ret_lack, POLICY_LACK_MAX,
                       "more is in the jail's /tmp already; remove files there, or `brig stop`");
    else if (wanted && !held)
        (void)snprintf(ret_lack, POLICY_LACK_MAX, "the jail's home is on disk, and %s",
                       geteuid() == 0 && mounts->crowded
                           ? "other runs are in the jail"
                           : "only root can limit it, where the filesystem has prjquota");
}

/* ---- quota ---- */

/* Project quotas of ext4, XFS and similar filesystems. A project is a number in the inode that new
 * files inherit from their directory. The kernel does not let a process in a user namespace change
 * it, so a jail cannot move files out of its project. */

#ifndef __NR_quotactl_fd
#define __NR_quotactl_fd 443
#endif

#define DEPTH_MAX 128
/* Our project numbers: far from those that administrators choose, and derived from the inode number
 * of the first directory. */
#define PROJECT_BASE 0x40000000U
#define PROJECT_MASK 0x3fffffffU

static uint32_t project_of(int directory)
{
    struct stat info;
    return fstat(directory, &info) < 0 ? 0 : PROJECT_BASE | ((uint32_t)info.st_ino & PROJECT_MASK);
}

static uint32_t current_project(int fd)
{
    struct fsxattr attributes;
    return ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0 ? 0 : attributes.fsx_projid;
}

bool quota_is_ours(int directory)
{
    uint32_t project = project_of(directory);
    return project != 0 && current_project(directory) == project;
}

/* Parameters of a walk: the project, and the owners whose files are put into it. */
struct tagging {
    uint32_t project;
    uid_t owner;
};

static int put_into(int fd, const struct tagging *tagging)
{
    struct stat info;
    struct fsxattr attributes;
    if (fstat(fd, &info) < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &attributes) < 0)
        return -errno;
    uint32_t wanted = attributes.fsx_xflags | (S_ISDIR(info.st_mode) ? FS_XFLAG_PROJINHERIT : 0U);
    if (info.st_uid != tagging->owner ||
        (attributes.fsx_projid == tagging->project && attributes.fsx_xflags == wanted))
        return 0;
    attributes.fsx_projid = tagging->project;
    attributes.fsx_xflags = wanted;
    return ioctl(fd, FS_IOC_FSSETXATTR, &attributes) < 0 ? -errno : 0;
}

static int put_below(int fd, const struct tagging *tagging, int depth);

/* Symbolic links and devices cannot be opened for this, and have almost no size. */
static int put_entry(int above, const char *name, const struct tagging *tagging, int depth)
{
    struct stat info;
    if (fstatat(above, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        return 0;
    int fd = openat(above, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (S_ISDIR(info.st_mode))
        return put_below(fd, tagging, depth + 1);
    int result = put_into(fd, tagging);
    (void)close(fd);
    return result;
}

/* Takes ownership of fd. The directory comes last: if it is in the project, everything below it
 * is. */
static int put_below(int fd, const struct tagging *tagging, int depth)
{
    int result = 0;
    autodir DIR *dir = depth > DEPTH_MAX ? NULL : fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return depth > DEPTH_MAX ? -ENAMETOOLONG : -ENOMEM;
    }
    const struct dirent *item;
    while (result == 0 && (item = readdir(dir)))
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            /* NOLINTNEXTLINE(misc-no-recursion): bounded */
            result = put_entry(dirfd(dir), item->d_name, tagging, depth);
    return result < 0 ? result : put_into(dirfd(dir), tagging);
}

static int set_quota(int directory, uint32_t project, uint64_t bytes, uint64_t inodes)
{
    struct if_dqblk quota = {
        .dqb_bhardlimit = (bytes + QIF_DQBLKSIZE - 1) / QIF_DQBLKSIZE,
        .dqb_ihardlimit = inodes,
        .dqb_valid = QIF_LIMITS,
    };
    long result = SYS(quotactl_fd, directory, QCMD(Q_SETQUOTA, PRJQUOTA), project, &quota);
    return result < 0 ? (int)result : 0;
}

int quota_limit(const int *directories, size_t count, uint64_t bytes, uint64_t inodes)
{
    uint32_t project = project_of(directories[0]), now = current_project(directories[0]);
    if (project == 0 || (now != 0 && now != project))
        return -ENOTSUP;
    struct stat info;
    int result = fstat(directories[0], &info) < 0
                     ? -errno
                     : set_quota(directories[0], project, bytes, inodes);
    if (result < 0)
        return -ENOTSUP;
    const struct tagging tagging = {.project = project, .owner = info.st_uid};
    for (size_t i = count; i-- > 0 && result == 0;) {
        if (current_project(directories[i]) == project)
            continue; /* everything below it is in the project, too */
        int fd = openat(directories[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        result = fd < 0 ? -errno : put_below(fd, &tagging, 0);
    }
    return result;
}

/* For such a directory, statfs() returns the limits of the project instead of the size of the
 * filesystem. */
bool quota_holds(int directory, uint64_t bytes, uint64_t inodes)
{
    struct statfs info;
    struct fsxattr attributes;
    if (ioctl(directory, FS_IOC_FSGETXATTR, &attributes) < 0 ||
        !(attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) || fstatfs(directory, &info) < 0)
        return false;
    uint64_t block = (uint64_t)info.f_bsize;
    return (bytes == 0 || (uint64_t)info.f_blocks <= (bytes + block - 1) / block) &&
           (inodes == 0 || (uint64_t)info.f_files <= inodes);
}

/* ---- private ---- */

/* The tmpfs of a jail's private directories, and its limits. */

#define NUMBER_TEXT 24
/* Inodes of the initial directories. */
#define OWN_INODES 4

static long set_number(int context, const char *key, uint64_t value)
{
    char text[NUMBER_TEXT];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return SYS(fsconfig, context, FSCONFIG_SET_STRING, key, text, 0);
}

/* The limits of a tmpfs mounted without options: half of the memory, and an inode for each page of
 * it. */
static struct private_limits default_limits(void)
{
    struct sysinfo info;
    if (sysinfo(&info) < 0)
        return (struct private_limits){0};
    uint64_t bytes = (uint64_t)info.totalram * info.mem_unit / 2;
    return (struct private_limits){bytes, bytes / (uint64_t)sysconf(_SC_PAGESIZE)};
}

int private_limit(const char *place, const struct private_limits *limits)
{
    struct private_limits most = default_limits();
    autoclose int context = (int)SYS(fspick, AT_FDCWD, place, FSPICK_CLOEXEC);
    long result = context;
    if (result >= 0)
        result = set_number(context, "size", limits->bytes ? limits->bytes : most.bytes);
    if (result >= 0)
        result = set_number(context, "nr_inodes",
                            limits->inodes ? limits->inodes + OWN_INODES : most.inodes);
    if (result >= 0)
        result = SYS(fsconfig, context, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0);
    return result < 0 ? (int)result : 0;
}

static uint64_t least(uint64_t left, uint64_t right)
{
    if (left == 0 || right == 0)
        return left + right;
    return left < right ? left : right;
}

struct private_limits private_least(struct private_limits left, struct private_limits right)
{
    return (struct private_limits){least(left.bytes, right.bytes),
                                   least(left.inodes, right.inodes)};
}
