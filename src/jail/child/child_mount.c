/* SPDX-License-Identifier: MIT */
/* The build steps for the jail's filesystem, with the fd-based mount calls. */
#include <linux/fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/stat.h>

#include "jail/child/child.h"
#include "jail/sys.h"

enum {
    ERR_ENOENT = 2,
    ERR_EACCES = 13,
    ERR_EEXIST = 17,
    ERR_ENOSYS = 38,
    ERR_ESTALE = 116,
    MODE_REGULAR = 0100000,
    MODE_DIRECTORY = 0040000,
    MODE_TYPE = 0170000,
    MOUNT_NOSUID = 2,
    MOUNT_NODEV = 4,
    MOUNT_PRIVATE = 1 << 18,
    MOUNT_DETACH = 2,
    REPLACED_TIMES = 100, /* how often a file may be replaced by another while we mount over it */
};

bool child_is_mount_step(const struct plan_step *step)
{
    return step->op >= PLAN_PRIVATE && step->op <= PLAN_DETACH;
}

static uint64_t attr_bits(unsigned flags)
{
    uint64_t bits = 0;
    bits |= flags & PLAN_ATTR_RDONLY ? MOUNT_ATTR_RDONLY : 0;
    bits |= flags & PLAN_ATTR_NOSUID ? MOUNT_ATTR_NOSUID : 0;
    bits |= flags & PLAN_ATTR_NODEV ? MOUNT_ATTR_NODEV : 0;
    bits |= flags & PLAN_ATTR_NOEXEC ? MOUNT_ATTR_NOEXEC : 0;
    return bits;
}

static int set_attr(int fd, const char *path, unsigned flags, uint64_t propagation)
{
    struct mount_attr attr = {.attr_set = attr_bits(flags), .propagation = propagation};
    unsigned at = AT_EMPTY_PATH | (flags & PLAN_ATTR_RECURSIVE ? AT_RECURSIVE : 0);
    return (int)SYS(mount_setattr, fd, path, at, &attr, sizeof attr);
}

/* Creates a detached filesystem; options are "key=value" strings or plain words, each ended by a
 * NUL, and an empty string ends the list. */
static int new_filesystem(const char *type, const char *options, unsigned flags)
{
    long context = SYS(fsopen, type, FSOPEN_CLOEXEC);
    if (context < 0)
        return (int)context;
    long result = 0;
    while (options && *options && result >= 0) {
        char key[32];
        size_t length = 0;
        while (options[length] && options[length] != '=' && length < sizeof key - 1) {
            key[length] = options[length];
            length++;
        }
        key[length] = 0;
        const char *value = options[length] == '=' ? options + length + 1 : 0;
        result =
            SYS(fsconfig, context, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, value, 0);
        while (*options)
            options++;
        options++;
    }
    if (result >= 0)
        result = SYS(fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
    if (result >= 0)
        result = SYS(fsmount, context, FSMOUNT_CLOEXEC, attr_bits(flags));
    (void)SYS(close, context);
    return (int)result;
}

/* Mounts an overlay and detaches it. mount(2) has room for the names of all layers, fsconfig(2) has
 * 256 bytes; and the layers have to be mounted before kernel 6.15. */
static int new_overlay(int filesystem, const struct plan_step *step)
{
    long result = SYS(fchdir, filesystem);
    if (result >= 0)
        result =
            SYS(mount, "overlay", step->path, "overlay", MOUNT_NOSUID | MOUNT_NODEV, step->data);
    if (result >= 0)
        result = SYS(open_tree, AT_FDCWD, step->path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return (int)result;
}

/* Checks that a tree is the one the parent saw; returns 0 or -errno. */
static int check_identity(int fd, const struct plan_step *step)
{
    struct statx stat;
    long result = SYS(statx, fd, "", AT_EMPTY_PATH, STATX_INO, &stat);
    if (result < 0)
        return (int)result;
    unsigned major = stat.stx_dev_major, minor = stat.stx_dev_minor;
    dev_t dev = ((dev_t)(major & 0xfffff000U) << 32) | ((dev_t)(major & 0xfffU) << 8) |
                ((dev_t)(minor & 0xffffff00U) << 12) | (minor & 0xffU);
    return dev == step->dev && stat.stx_ino == step->ino ? 0 : -ERR_ESTALE;
}

/* Clones a host path in this mount namespace and checks that it is the one the parent saw. */
static int clone_host_tree(const struct plan_step *step)
{
    long tree =
        SYS(open_tree, AT_FDCWD, step->path, AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return (int)tree;
    int result = step->check_identity ? check_identity((int)tree, step) : 0;
    if (result >= 0 && step->flags)
        result = set_attr((int)tree, "", step->flags, 0);
    if (result >= 0)
        return (int)tree;
    (void)SYS(close, tree);
    return result;
}

static int attach_root(int tree)
{
    return (int)SYS(move_mount, tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
}

/* Opens a path below a directory without following symlinks; if the last name is a symlink, the
 * link itself is opened. */
static long open_beneath(int directory, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    long fd = SYS(openat2, directory, path, &how, sizeof how);
    if (fd != -ERR_ENOSYS)
        return fd;
    long at = SYS(fcntl, directory, F_DUPFD_CLOEXEC, 0);
    while (*path && at >= 0) { /* name by name: a symlink has no entries, so the next name fails */
        char name[256];
        size_t length = 0;
        while (path[length] && path[length] != '/' && length < sizeof name - 1) {
            name[length] = path[length];
            length++;
        }
        name[length] = 0;
        path += length;
        while (*path == '/')
            path++;
        long next = SYS(openat, at, name, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);
        (void)SYS(close, at);
        at = next;
    }
    return at;
}

/* Opens a path below the jail's root; symlinks cannot lead out of it. */
static long open_in_root(int root, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    if (!path[1])
        path = "/.";
    long fd = SYS(openat2, root, path + 1, &how, sizeof how);
    /* Without openat2 no symlink is followed: it might lead out. */
    return fd == -ERR_ENOSYS ? open_beneath(root, path + 1) : fd;
}

/* Opens a step's path in the jail. Below a directory that a jail can write to (data), no symlink is
 * followed: an earlier run may have planted it. */
static long open_target(int root, const struct plan_step *step)
{
    const char *writable = step->data;
    long target = open_in_root(root, writable ? writable : step->path);
    if (target < 0 || !writable || !step->path[step->length])
        return target;
    long below = open_beneath((int)target, step->path + step->length + 1);
    (void)SYS(close, target);
    return below;
}

static bool is_one_name(const char *path)
{
    while (*path && *path != '/')
        path++;
    return !*path;
}

/* Clones a part of an attached slot. With check_identity the part is in a tree that a jail can
 * change, so no symlink in its path may be followed. A path of one name has no such symlink. */
static int clone_subtree(const struct plan *plan, const struct plan_step *step)
{
    unsigned recursive = step->flags & PLAN_ATTR_RECURSIVE ? AT_RECURSIVE : 0;
    int from = plan->slots[step->from];
    if (!step->check_identity)
        return (int)SYS(open_tree, from, step->path,
                        AT_EMPTY_PATH | recursive | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (!step->data && is_one_name(step->path))
        return (int)SYS(open_tree, from, step->path,
                        AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | recursive | OPEN_TREE_CLONE |
                            OPEN_TREE_CLOEXEC);
    long fd = step->data ? open_target(from, step) : open_beneath(from, step->path);
    if (fd < 0)
        return (int)fd;
    long result =
        SYS(open_tree, fd, "", AT_EMPTY_PATH | recursive | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    (void)SYS(close, fd);
    return (int)result;
}

static int attach(const struct plan *plan, const struct plan_step *step)
{
    int root = plan->slots[step->from];
    if (step->flags & PLAN_ATTACH_NAME) /* a symlink of this name is not followed */
        return (int)SYS(move_mount, plan->slots[step->slot], "", root, step->path + step->length,
                        MOVE_MOUNT_F_EMPTY_PATH);
    if (step->mode) /* a filesystem made by brig has no planted symlinks */
        return (int)SYS(move_mount, plan->slots[step->slot], "", root, step->path + 1,
                        MOVE_MOUNT_F_EMPTY_PATH);
    long result = -ERR_ENOENT; /* which move_mount() returns, too, if the target was replaced */
    for (int i = 0; i < REPLACED_TIMES && result == -ERR_ENOENT; i++) {
        long target = open_target(root, step);
        if (target < 0)
            return (int)target;
        result = SYS(move_mount, plan->slots[step->slot], "", target, "",
                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
        (void)SYS(close, target);
    }
    /* One that is replaced all the time is there: without its mask the jail must not start. */
    return result == -ERR_ENOENT ? -ERR_ESTALE : (int)result;
}

/* Creates a file to mount on. */
static int make_mount_point(int dir, const char *name, unsigned mode)
{
    long made = SYS(mknodat, dir, name, MODE_REGULAR | mode, 0);
    return made == -ERR_EEXIST ? 0 : (int)made;
}

static int bind_device(const struct plan *plan, const struct plan_step *step)
{
    int dir = plan->slots[step->slot];
    const char *name = step->path + step->length;
    long tree = SYS(open_tree, AT_FDCWD, step->path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0)
        return tree == -ERR_ENOENT || tree == -ERR_EACCES ? 0 : (int)tree;
    long result = make_mount_point(dir, name, step->mode);
    if (result >= 0)
        result = SYS(move_mount, tree, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH);
    return (int)result; /* the exec closes it, like all others */
}

static bool is_directory(int fd)
{
    struct statx stat;
    return SYS(statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &stat) >= 0 &&
           (stat.stx_mode & MODE_TYPE) == MODE_DIRECTORY;
}

/* Opens the path of a Landlock rule. In a running jail a directory of the path may have been
 * replaced: another file found there needs no rule. */
static int open_place(const struct plan *plan, const struct plan_step *step)
{
    long fd = open_target(plan->slots[step->from], step);
    bool usable = fd >= 0 && (!step->mode || is_directory((int)fd));
    if (fd >= 0 && !usable)
        (void)SYS(close, fd);
    plan->slots[step->slot] = usable ? (int)fd : -ERR_ENOENT;
    return 0;
}

/* Earlier steps create all parent directories, so the path needs no walk. */
static int make_file(int dir, const struct plan_step *step)
{
    if (step->length == 0)
        return make_mount_point(dir, step->path, step->mode);
    long fd = SYS(openat, dir, step->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
                  step->mode);
    if (fd < 0)
        return (int)fd;
    const char *data = step->data;
    size_t left = step->length;
    long result = 0;
    while (left > 0 && (result = SYS(write, fd, data, left)) > 0) {
        data += result;
        left -= (size_t)result;
    }
    (void)SYS(close, fd);
    return result < 0 ? (int)result : 0;
}

static int make_directory(int dir, const struct plan_step *step)
{
    long result = SYS(mkdirat, dir, step->path, step->mode);
    return result == -ERR_EEXIST ? 0 : (int)result;
}

/* Opens a directory below another and creates it if missing; never follows a symlink. */
static long enter_directory(int dir, const char *name)
{
    long result = SYS(mkdirat, dir, name, 0755);
    if (result < 0 && result != -ERR_EEXIST)
        return result;
    return SYS(openat, dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static int make_path(int dir, const struct plan_step *step)
{
    long at = SYS(fcntl, dir, F_DUPFD_CLOEXEC, 0);
    for (const char *path = step->path; *path && at >= 0;) {
        char name[256];
        size_t length = 0;
        while (path[length] && path[length] != '/' && length < sizeof name - 1) {
            name[length] = path[length];
            length++;
        }
        name[length] = 0;
        path += length + (path[length] == '/');
        if (!*path && !step->mode) {
            long made = SYS(mknodat, at, name, MODE_REGULAR | 0644, 0);
            (void)SYS(close, at);
            return made == -ERR_EEXIST ? 0 : (int)made;
        }
        long next = enter_directory((int)at, name);
        (void)SYS(close, at);
        at = next;
    }
    if (at >= 0)
        (void)SYS(close, at);
    return at < 0 ? (int)at : 0;
}

/* The new root becomes /; the old root is mounted on top of it and is the working directory. */
static int pivot(const struct plan *plan, const struct plan_step *step)
{
    long result = SYS(fchdir, plan->slots[step->slot]);
    if (result >= 0)
        result = SYS(pivot_root, ".", ".");
    return (int)result;
}

/* Unmounts the old root, which is the working directory. */
static int detach(void)
{
    long result = SYS(umount2, ".", MOUNT_DETACH);
    if (result >= 0)
        result = SYS(chdir, "/");
    return (int)result;
}

/* After a soft step that failed, the slot holds no descriptor: what attaches it fails, too. */
static int keep(const struct plan *plan, int slot, int fd)
{
    plan->slots[slot] = fd;
    return fd < 0 ? fd : 0;
}

int child_mount_step(const struct plan *plan, const struct plan_step *step)
{
    if (step->op == PLAN_PRIVATE)
        return set_attr(AT_FDCWD, "/", PLAN_ATTR_RECURSIVE, MOUNT_PRIVATE);
    if (step->op == PLAN_TMPFS)
        return keep(plan, step->slot, new_filesystem("tmpfs", step->path, step->flags));
    if (step->op == PLAN_PROC)
        return keep(plan, step->slot, new_filesystem("proc", step->path, step->flags));
    if (step->op == PLAN_DEVPTS)
        return keep(plan, step->slot, new_filesystem("devpts", step->path, step->flags));
    if (step->op == PLAN_MQUEUE)
        return keep(plan, step->slot, new_filesystem("mqueue", step->path, step->flags));
    if (step->op == PLAN_OVERLAY)
        return keep(plan, step->slot, new_overlay(plan->slots[step->from], step));
    if (step->op == PLAN_TREE)
        return keep(plan, step->slot, clone_host_tree(step));
    if (step->op == PLAN_PREPARED)
        return keep(plan, step->slot, step->fd);
    if (step->op == PLAN_SUBTREE)
        return keep(plan, step->slot, clone_subtree(plan, step));
    if (step->op == PLAN_ATTR)
        return set_attr(plan->slots[step->slot], "", step->flags, 0);
    if (step->op == PLAN_ROOT)
        return attach_root(plan->slots[step->slot]);
    if (step->op == PLAN_DEVICE)
        return bind_device(plan, step);
    if (step->op == PLAN_MKDIR)
        return make_directory(plan->slots[step->slot], step);
    if (step->op == PLAN_MKFILE)
        return make_file(plan->slots[step->slot], step);
    if (step->op == PLAN_MKPATH)
        return make_path(plan->slots[step->slot], step);
    if (step->op == PLAN_SYMLINK) {
        long result = SYS(symlinkat, step->data, plan->slots[step->slot], step->path);
        return result == -ERR_EEXIST ? 0 : (int)result;
    }
    if (step->op == PLAN_ATTACH)
        return attach(plan, step);
    if (step->op == PLAN_OPEN_ROOT)
        return keep(plan, step->slot, (int)SYS(openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0));
    if (step->op == PLAN_OPEN)
        return open_place(plan, step);
    if (step->op == PLAN_PIVOT)
        return pivot(plan, step);
    if (step->op == PLAN_DETACH)
        return detach();
    return -ERR_ENOENT;
}
