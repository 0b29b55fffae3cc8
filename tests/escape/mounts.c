/* SPDX-License-Identifier: MIT */
/* Changing what the filesystem, the namespaces and the names are. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attempt.h"

/* glibc's <sys/mount.h> and the kernel's cannot be mixed. */
int mount(const char *, const char *, const char *, unsigned long, const void *);
int umount2(const char *, int);
#define DETACH 2

static int change_root(void)
{
    return judge("chroot", chroot("/"));
}

/* The old way out: a root below the working directory, then up. */
static int chroot_walk_out(void)
{
    (void)mkdir(arg_path("work", "pit"), 0777);
    int here = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (chroot(arg_path("work", "pit")) < 0)
        return judge("chroot", -1);
    return judge("fchdir", fchdir(here));
}

static int mount_tmpfs(void)
{
    return judge("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int mount_proc(void)
{
    return judge("mount", mount("proc", "/proc", "proc", 0, NULL));
}

static int mount_bind(void)
{
    return judge("mount", mount("/", arg("work"), NULL, MS_BIND | MS_REC, NULL));
}

static int remount_writable(void)
{
    /* Where /tmp is no mount of its own that is EINVAL, after the question of permission. */
    return judge_reached("remount", mount("none", "/tmp", NULL, MS_REMOUNT | MS_BIND, NULL));
}

/* The new interface to the same; it names nothing that is there, so that
 * nothing can happen. */
static int set_mount_attributes(void)
{
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};
    return judge_reached("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/nonexistent", 0,
                                                  &attr, sizeof(attr)));
}

static int uncover_mask(void)
{
    const char *mask = arg_path("work", "project/.env");
    (void)umount2(mask, DETACH);
    return judge_read(mask);
}

static int unmount(void)
{
    /* Of /proc first: in a user namespace of its own the twin has made one. */
    return judge("umount2", umount2("/proc", DETACH));
}

static int pivot(void)
{
    return judge_reached("pivot_root", syscall(SYS_pivot_root, "/nonexistent", "/nonexistent"));
}

static int open_filesystem(void)
{
    return judge("fsopen", syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
}

static int pick_filesystem(void)
{
    return judge_reached("fspick", syscall(SYS_fspick, AT_FDCWD, "/nonexistent", FSPICK_CLOEXEC));
}

static int clone_tree(void)
{
    return judge("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/",
                                      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
}

static int move_tree(void)
{
    return judge_reached("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/nonexistent", AT_FDCWD,
                                               "/nonexistent", 0));
}

static int unshare_mounts(void)
{
    return judge("unshare", unshare(CLONE_NEWNS));
}

static int unshare_rest(void)
{
    static const int flags[] = {CLONE_NEWNET, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWUTS,
                                CLONE_NEWCGROUP};
    int answer = REFUSED;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (judge("unshare", unshare(flags[i])) == THROUGH)
            answer = THROUGH;
    return answer;
}

static int join_namespace(const char *who)
{
    static const char *const names[] = {"mnt", "net", "ipc", "uts", "pid", "cgroup"};
    int answer = REFUSED;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", who, names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (judge(path, fd < 0 ? -1 : setns(fd, 0)) == THROUGH)
            answer = THROUGH;
    }
    return answer;
}

static int join_own_namespaces(void)
{
    return join_namespace("self");
}

static int join_namespaces_of_init(void)
{
    return join_namespace("1");
}

static int join_by_pidfd(void)
{
    long pidfd = syscall(SYS_pidfd_open, 1, 0);
    return judge("setns", pidfd < 0 ? -1 : setns((int)pidfd, CLONE_NEWNS | CLONE_NEWNET));
}

static int change_hostname(void)
{
    return judge_reached("sethostname", in_own_userns() ? sethostname("escaped", 7)
                                                        : syscall(SYS_sethostname, NULL, -1));
}

static int change_domain(void)
{
    return judge_reached("setdomainname", in_own_userns() ? setdomainname("escaped", 7)
                                                          : syscall(SYS_setdomainname, NULL, -1));
}

const struct attempt attempts_mounts[] = {
    {"chroot", change_root},
    {"chroot-walk-out", chroot_walk_out},
    {"mount-tmpfs", mount_tmpfs},
    {"mount-proc", mount_proc},
    {"mount-bind", mount_bind},
    {"remount-writable", remount_writable},
    {"set-mount-attributes", set_mount_attributes},
    {"uncover-mask", uncover_mask},
    {"unmount", unmount},
    {"pivot-root", pivot},
    {"open-filesystem", open_filesystem},
    {"pick-filesystem", pick_filesystem},
    {"clone-tree", clone_tree},
    {"move-tree", move_tree},
    {"unshare-mounts", unshare_mounts},
    {"unshare-rest", unshare_rest},
    {"join-own-namespaces", join_own_namespaces},
    {"join-namespaces-of-init", join_namespaces_of_init},
    {"join-by-pidfd", join_by_pidfd},
    {"change-hostname", change_hostname},
    {"change-domain", change_domain},
    {NULL, NULL},
};
