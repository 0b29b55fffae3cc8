/* SPDX-License-Identifier: MIT */
/* The filesystem of a jail's private directories, and its limits. */
#include "home/private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/sys.h"

#define NUMBER_TEXT 24
/* Inodes of the directories that are there from the start. */
#define OWN_INODES 4

static const struct {
    const char *name;
    mode_t mode;
} directories[] = {{"tmp", 01777}, {"shm", 01777}, {"run", 0700}};

static int make_directories(int root)
{
    mode_t mask = umask(0);
    int result = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(directories) && result == 0; i++)
        result = mkdirat(root, directories[i].name, directories[i].mode) < 0 ? -errno : 0;
    (void)umask(mask);
    return result;
}

int private_begin(const char *place, struct brig_error *err)
{
    autoclose int context = (int)SYS(fsopen, "tmpfs", FSOPEN_CLOEXEC);
    long result = context;
    if (result >= 0)
        result = SYS(fsconfig, context, FSCONFIG_SET_STRING, "mode", "0700", 0);
    if (result >= 0)
        result = SYS(fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
    if (result >= 0)
        result = SYS(fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    autoclose int mount = (int)result;
    if (result >= 0)
        result = SYS(move_mount, mount, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH);
    if (result >= 0)
        result = make_directories(mount);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, (int)-result,
                                  "cannot make the jail's private directories")
                      : 0;
}

static long set_number(int context, const char *key, uint64_t value)
{
    char text[NUMBER_TEXT];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return SYS(fsconfig, context, FSCONFIG_SET_STRING, key, text, 0);
}

/* As if it were mounted without options: half of the memory, and an inode for each page of it. */
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
