/* SPDX-License-Identifier: MIT */
/* Host trees prepared by root: clone, id-map, detach. */
#include "jail/view/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/process.h"
#include "base/str.h"
#include "jail/sys.h"

#define PROPAGATION_PRIVATE (1U << 18) /* MS_PRIVATE */

/* The map of an id-mapped mount is taken from a user namespace: this process only provides one. */
static pid_t lend_namespace(void)
{
    long parent = SYS(getpid);
    long pid = SYS(clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        (void)SYS(prctl, 1 /* PR_SET_PDEATHSIG */, SIGKILL, 0, 0, 0);
        if (SYS(getppid) != parent) /* the parent died before PR_SET_PDEATHSIG was set */
            (void)SYS(exit_group, 0);
        for (;;)
            (void)SYS(ppoll, 0, 0, 0, 0, 0);
    }
    return (pid_t)pid;
}

/* Maps every id to itself, except that the owner becomes the jail's id, and the jail's id is
 * unmapped. */
static int write_map(pid_t pid, const char *which, unsigned owner, unsigned jail)
{
    char path[64], text[256];
    unsigned low = owner < jail ? owner : jail, high = owner < jail ? jail : owner;
    size_t used = 0;
    if (low > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, "0 0 %u\n", low);
    if (high > low + 1)
        used += (size_t)snprintf(text + used, sizeof text - used, "%u %u %u\n", low + 1, low + 1,
                                 high - low - 1);
    used += (size_t)snprintf(text + used, sizeof text - used, "%u %u %u\n", high + 1, high + 1,
                             0xfffffffeU - high);
    used += (size_t)snprintf(text + used, sizeof text - used, "%u %u 1\n", owner, jail);
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, which);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, used) != (ssize_t)used)
        return -errno;
    return 0;
}

static int open_namespace(const struct stat *info, uid_t host_uid, gid_t host_gid)
{
    pid_t pid = lend_namespace();
    if (pid < 0)
        return (int)pid;
    int result = write_map(pid, "uid_map", info->st_uid, host_uid);
    if (result == 0)
        result = write_map(pid, "gid_map", info->st_gid, host_gid);
    if (result == 0) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
        result = open(path, O_RDONLY | O_CLOEXEC);
        if (result < 0)
            result = -errno;
    }
    (void)kill(pid, SIGKILL);
    (void)process_wait(pid);
    return result;
}

/* If the system refuses a call even to root, a lower rung may still work: BRIG_E_UNSUPPORTED. */
static int refused(struct brig_error *err, int sys_errno, const char *what, const char *path)
{
    bool unsupported = sys_errno == EPERM || sys_errno == ENOSYS || sys_errno == ENOSPC;
    int code = unsupported ? BRIG_E_UNSUPPORTED : BRIG_E_SETUP;
    (void)brig_fail(err, code, sys_errno, "%s '%s'", what, path);
    return unsupported ? brig_advise(err, code, "Run `brig doctor`") : code;
}

/* Returns the path of a tree for a message: the resolved path, if the caller names it by a
 * descriptor. */
static const char *shown_path(const char *path, char found[static PATH_MAX])
{
    if (!str_starts_with(path, "/proc/self/fd/"))
        return path;
    ssize_t length = readlink(path, found, PATH_MAX - 1);
    if (length <= 0)
        return path;
    found[length] = '\0';
    return found;
}

static int refused_map(struct brig_error *err, int sys_errno, const char *path, uid_t owner)
{
    char found[PATH_MAX];
    (void)brig_fail(err, BRIG_E_SETUP, sys_errno, "cannot id-map '%s'", shown_path(path, found));
    return brig_advise(
        err, BRIG_E_SETUP,
        owner == 0 ? "Its filesystem, or one mounted below it, may not support id-mapped mounts, "
                     "which root needs; use a directory on another one, or run as an ordinary user"
                   : "Its filesystem may not support id-mapped mounts; run brig as the "
                     "directory's owner instead of as root");
}

int prepared_tree(const char *path, const struct stat *info, uid_t host_uid, gid_t host_gid,
                  uint64_t attributes, struct brig_error *err)
{
    autoclose int source = open(path, O_PATH | O_CLOEXEC);
    struct stat now;
    if (source < 0 || fstat(source, &now) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s'", path);
    if (now.st_dev != info->st_dev || now.st_ino != info->st_ino)
        return brig_fail(err, BRIG_E_SETUP, ESTALE, "'%s' changed while it was being granted",
                         path);
    long tree = SYS(open_tree, source, "",
                    AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return refused(err, (int)-tree, "cannot clone the mount of", path);
    autoclose int owned = (int)tree;
    int space = open_namespace(info, host_uid, host_gid);
    if (space < 0)
        return refused(err, -space, "cannot make an id map for", path);
    autoclose int space_owned = space;
    /* A clone of a shared mount (systemd shares all mounts) is in the same peer group: mounts made
     * by the jail below it would appear on the host. */
    struct mount_attr attr = {.attr_set = attributes | MOUNT_ATTR_IDMAP,
                              .propagation = PROPAGATION_PRIVATE,
                              .userns_fd = (uint64_t)space_owned};
    long result = SYS(mount_setattr, owned, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr);
    if (result < 0)
        return refused_map(err, (int)-result, path, info->st_uid);
    return take_fd(&owned);
}
