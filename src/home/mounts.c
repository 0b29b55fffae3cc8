/* SPDX-License-Identifier: MIT */
/* The mounts of a holder.
 *
 * A new mount namespace has a copy of every mount of the host, which would keep a disk busy after
 * it was unmounted outside. So the holder binds the two directories that it needs from the copy,
 * the home and the storage, into a tmpfs and detaches the copy after its first answer. The tmpfs is
 * its working directory: the paths of its mounts are relative. Its root directory is the host's, in
 * the original mount namespace: there it sees the current mounts, and keeps nothing busy except its
 * open files.
 *
 * Until it is detached, the copy has the tmpfs mounted on the directory of sysfs: that directory
 * always exists, no home is below it, and a holder needs nothing in it. */
#include "home/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/mountinfo.h"
#include "base/path.h"
#include "base/tree.h"
#include "home/disk.h"
#include "home/fuse.h"
#include "home/storage.h"
#include "jail/probe/probe.h"
#include "jail/sys.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 0x00000004
#endif
#ifndef MOVE_MOUNT_T_EMPTY_PATH
#define MOVE_MOUNT_T_EMPTY_PATH 0x00000040
#endif

#define BASE_IN_COPY "/sys"
#define ALONE "alone" /* our root directory when the host's is gone; contains /proc */
#define MASKS "masks"
#define LOWER "lower"
#define STORE "store"
#define BELOW "below-" /* followed by a number */
#define PATH_SIZE (PATH_LENGTH_MAX + 1)
#define NOTHING "nothing"
#define EMPTY "empty"
#define PROPAGATION_PRIVATE (1U << 18) /* MS_PRIVATE */
#define PROPAGATION_SLAVE (1U << 19)   /* MS_SLAVE */
#define PROPAGATION_SHARED (1U << 20)  /* MS_SHARED */

static const char *const parts[] = {
    [MOUNTS_OVERLAY] = "overlay",         [MOUNTS_PRIVATE_HOME] = "home",
    [MOUNTS_TMP] = MOUNTS_PRIVATE "/tmp", [MOUNTS_SHM] = MOUNTS_PRIVATE "/shm",
    [MOUNTS_RUN] = MOUNTS_PRIVATE "/run",
};

static struct {
    bool used; /* there is something to unmount */
    bool fuse; /* mounted by fuse-overlayfs, not by the kernel */
} overlay;

static struct {
    int base;  /* our tmpfs */
    int host;  /* the root directory in the original mount namespace; -1: it is gone */
    int copy;  /* the same in our copy; -1: detached */
    bool deaf; /* the copy has disks whose unmounting does not propagate to it */
} trees = {-1, -1, -1, false};

static int write_text(const char *path, const char *text)
{
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ? -errno : 0;
}

static int map_ids(uid_t uid, gid_t gid, struct brig_error *err)
{
    char text[64];
    int result = write_text("/proc/self/setgroups", "deny");
    (void)snprintf(text, sizeof text, "%u %u 1\n", uid, uid);
    if (result == 0)
        result = write_text("/proc/self/uid_map", text);
    (void)snprintf(text, sizeof text, "%u %u 1\n", gid, gid);
    if (result == 0)
        result = write_text("/proc/self/gid_map", text);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result, "cannot map the holder's ids") : 0;
}

/* Adds the filesystem's messages about a failed mount to the error. */
static void append_log(int context, struct brig_error *err)
{
    char line[256];
    ssize_t length;
    while ((length = read(context, line, sizeof line - 1)) > 2) {
        line[length] = 0;
        (void)brig_advise(err, err->code, "The kernel says: %s", line + 2); /* "e " */
    }
}

struct option {
    const char *key, *value; /* NULL: a flag */
};

/* Creates a filesystem as a detached mount. */
static int new_filesystem(const char *type, const struct option *options, size_t count,
                          struct brig_error *err)
{
    autoclose int context = (int)SYS(fsopen, type, FSOPEN_CLOEXEC);
    long result = context;
    for (size_t i = 0; i < count && result >= 0; i++)
        result = SYS(fsconfig, context, options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
                     options[i].key, options[i].value, 0);
    if (result >= 0)
        result = SYS(fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
    if (result >= 0)
        result = SYS(fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (result >= 0)
        return (int)result;
    (void)brig_fail(err, BRIG_E_SETUP, (int)-result, "cannot mount a filesystem of type '%s'",
                    type);
    if (context >= 0 && err)
        append_log(context, err);
    return BRIG_E_SETUP;
}

static int attach(int mount, const char *path, struct brig_error *err)
{
    long result = SYS(move_mount, mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, (int)-result, "cannot mount at '%s'", path)
                      : 0;
}

/* Makes a mount shared: later mounts on it propagate to the clones in runs. */
static int share(const char *place, struct brig_error *err)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                              .propagation = PROPAGATION_SHARED};
    long result = SYS(mount_setattr, AT_FDCWD, place, 0, &attr, sizeof attr);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, (int)-result, "cannot share '%s'", place) : 0;
}

/* Changes the root directory, and stays in our tmpfs. */
static int enter_root(int root)
{
    int result = fchdir(root) < 0 || chroot(".") < 0 ? -errno : 0;
    return fchdir(trees.base) < 0 ? -errno : result;
}

struct place {
    const char *path;
    mode_t mode;
};

static int make_directories(const struct place *places, size_t count, struct brig_error *err)
{
    mode_t mask = umask(0);
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        if (mkdir(places[i].path, places[i].mode) < 0)
            status = brig_fail(err, BRIG_E_SETUP, errno, "cannot make '%s'", places[i].path);
    (void)umask(mask);
    return status;
}

static int make_places(struct brig_error *err)
{
    static const struct place directories[] = {
        {MASKS, 0755},          {LOWER, 0700}, {STORE, 0700}, {"overlay", 0700},    {"home", 0700},
        {MOUNTS_PRIVATE, 0700}, {EMPTY, 0555}, {ALONE, 0755}, {ALONE "/proc", 0555}};
    int status = make_directories(directories, ARRAY_LENGTH(directories), err);
    if (status < 0)
        return status;
    autoclose int nothing = open(NOTHING, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    if (nothing < 0 || fchmod(nothing, 0444) < 0 ||
        mknod(MOUNTS_WHITEOUT, S_IFCHR, makedev(0, 0)) < 0 ||
        mknod(MOUNTS_STARTUP_WHITEOUT, S_IFCHR, makedev(0, 0)) < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot make the whiteout of the masks");
    return 0;
}

static const struct option tmpfs_options[] = {{"mode", "0700"}};

/* The tmpfs of the jail's private directories. It is separate from the holder's: a run that fills
 * it must not keep masks from being created. */
static int make_private(struct brig_error *err)
{
    static const struct place directories[] = {{MOUNTS_PRIVATE "/tmp", 01777},
                                               {MOUNTS_PRIVATE "/shm", 01777},
                                               {MOUNTS_PRIVATE "/run", 0700}};
    autoclose int mount = new_filesystem("tmpfs", tmpfs_options, 1, err);
    int status = mount < 0 ? mount : attach(mount, MOUNTS_PRIVATE, err);
    return status < 0 ? status : make_directories(directories, ARRAY_LENGTH(directories), err);
}

/* Mounts our tmpfs in the copy, and changes the root to the host's tree. */
static int make_base(struct brig_error *err)
{
    autoclose int base = new_filesystem("tmpfs", tmpfs_options, 1, err);
    int status = base < 0 ? base : attach(base, BASE_IN_COPY, err);
    if (status < 0)
        return status;
    trees.copy = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    trees.base = open(BASE_IN_COPY, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int result = trees.copy < 0 || trees.base < 0 ? -errno : enter_root(trees.host);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, -result, "cannot enter the host's tree") : 0;
}

int mounts_begin(struct brig_error *err)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    trees.host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (trees.host < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '/'");
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        char remedy[512];
        (void)brig_fail(err, BRIG_E_UNSUPPORTED, errno,
                        "cannot make namespaces for the jail's home");
        probe_userns_remedy(remedy, sizeof remedy);
        return brig_advise(err, BRIG_E_UNSUPPORTED, "%s", remedy);
    }
    int status = map_ids(uid, gid, err);
    if (status < 0)
        return status;
    /* Slave: our mounts do not propagate to the host, but unmounts of shared host mounts propagate
     * here. */
    struct mount_attr attr = {.propagation = PROPAGATION_SLAVE};
    long result = SYS(mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, (int)-result, "cannot make the mounts private");
    status = make_base(err);
    if (status == 0)
        status = make_places(err);
    if (status == 0)
        status = make_private(err);
    return status < 0 ? status : share(MOUNTS_PRIVATE, err);
}

void mounts_drop_overlay(void)
{
    if (!overlay.used)
        return;
    (void)SYS(umount2, parts[MOUNTS_OVERLAY], 2 /* MNT_DETACH */);
    fuse_wait();
    (void)tree_remove(trees.base, MASKS, NULL);
    (void)mkdir(MASKS, 0755);
    overlay.fuse = overlay.used = false;
}

void mounts_end(void)
{
    static const char *const places[] = {"overlay", LOWER, STORE, "home"};
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
        (void)SYS(umount2, places[i], 2 /* MNT_DETACH */);
    fuse_wait();
}

bool mounts_has_below(int directory, pid_t pid, char *ret_mount, size_t size)
{
    char path[PATH_SIZE];
    __attribute__((cleanup(mountinfo_done))) struct mountinfo_table table = {0};
    if (!path_of_fd(directory, path))
        return false;
    (void)mountinfo_read(pid, &table);
    for (size_t i = 0; i < table.count; i++) {
        const char *point = table.mounts[i].point;
        if (!path_is_beneath(path, point) || strcmp(path, point) == 0)
            continue;
        (void)snprintf(ret_mount, size, "%s", point);
        return true;
    }
    return false;
}

/* The directories below the changes, as an option of the overlay: "A:B:masks:lower". */
#define LOWER_TEXT_MAX (32 * (STORAGE_BELOW_MAX + 2))

static void lower_text(const char *prefix, size_t below, char ret_text[LOWER_TEXT_MAX])
{
    int length = 0;
    for (size_t i = 0; i < below; i++)
        length += snprintf(ret_text + length, LOWER_TEXT_MAX - (size_t)length,
                           "%s" BELOW "%zu:", prefix, i);
    (void)snprintf(ret_text + length, LOWER_TEXT_MAX - (size_t)length, "%s" MASKS ":%s" LOWER,
                   prefix, prefix);
}

static int new_overlay(const char *lower, int changes, int work, const char *label,
                       struct brig_error *err)
{
    const struct path_proc upper = path_proc(changes), scratch = path_proc(work);
    const struct option options[] = {
        {"source", label},         {"lowerdir", lower}, {"upperdir", upper.text},
        {"workdir", scratch.text}, {"userxattr", NULL}, {"index", "off"},
    };
    autoclose int mount = new_filesystem("overlay", options, ARRAY_LENGTH(options), err);
    int status = mount < 0 ? mount : attach(mount, parts[MOUNTS_OVERLAY], err);
    return status < 0 ? status : share(parts[MOUNTS_OVERLAY], err);
}

/* ---- directories of the host ---- */

static bool is_same(int left, int right)
{
    struct stat one, other;
    return fstat(left, &one) == 0 && fstat(right, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* Opens a directory of the host where it can be mounted from: in the copy or, once that is
 * detached, in the storage. */
static int open_own(int directory, struct brig_error *err)
{
    char path[PATH_SIZE];
    if (!path_of_fd(directory, path))
        return brig_fail(err, BRIG_E_SETUP, 0, "the jail's holder cannot find a directory");
    /* The path has no symbolic links; if one is created now, the comparison of inodes fails. */
    const char *name = trees.copy >= 0 ? path + 1 : strrchr(path, '/') + 1;
    autoclose int store = trees.copy >= 0 ? -1 : open(STORE, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoclose int owned = openat(trees.copy >= 0 ? trees.copy : store, name,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int failed = owned < 0 ? errno : ESTALE;
    if (owned >= 0 && is_same(directory, owned))
        return take_fd(&owned);
    return brig_fail(err, trees.copy >= 0 ? BRIG_E_SETUP : BRIG_E_STATE, failed,
                     "the jail's holder cannot mount '%s'. End what runs in the jail first", path);
}

static int clone_tree(int directory, unsigned flags, struct brig_error *err)
{
    long tree =
        SYS(open_tree, directory, "", AT_EMPTY_PATH | flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return tree < 0 ? brig_fail(err, BRIG_E_SETUP, (int)-tree, "cannot clone a directory")
                    : (int)tree;
}

static int attach_instead(int mount, const char *place, struct brig_error *err)
{
    (void)SYS(umount2, place, 2 /* MNT_DETACH */);
    return attach(mount, place, err);
}

/* Binds a directory of the host, without mounts below it, current or future; unless it is bound
 * already and the copy is detached. */
static int keep(int directory, const char *place, struct brig_error *err)
{
    autoclose int kept = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (trees.copy < 0 && kept >= 0 && is_same(directory, kept))
        return 0;
    autoclose int own = open_own(directory, err);
    autoclose int tree = own < 0 ? own : clone_tree(own, 0, err);
    if (tree < 0)
        return tree;
    struct mount_attr attr = {.propagation = PROPAGATION_PRIVATE};
    long result = SYS(mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr);
    return result < 0
               ? brig_fail(err, BRIG_E_SETUP, (int)-result, "cannot make '%s' private", place)
               : attach_instead(tree, place, err);
}

int mounts_keep_home(int home, struct brig_error *err)
{
    return keep(home, LOWER, err);
}

int mounts_keep_store(int store, struct brig_error *err)
{
    return keep(store, STORE, err);
}

/* ---- detaching the copy of the host's mounts ---- */

static const struct mountinfo *find_mount(const struct mountinfo_table *table, int id)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->mounts[i].id == id)
            return &table->mounts[i];
    return NULL;
}

/* Whether the copy has a disk whose unmounting on the host does not propagate to it. */
static bool has_unheard_disk(void)
{
    __attribute__((cleanup(mountinfo_done))) struct mountinfo_table table = {0};
    int entered = enter_root(trees.copy); /* the table lists mounts below the root directory only */
    (void)mountinfo_read(0, &table);
    if (enter_root(trees.host) < 0 || entered < 0)
        return true;
    for (size_t i = 0; i < table.count; i++) {
        const struct mountinfo *on = find_mount(&table, table.mounts[i].parent);
        bool ours = on && strcmp(on->point, BASE_IN_COPY) == 0;
        if (table.mounts[i].device_major != 0 && on && !on->follows && !ours)
            return true;
    }
    return false;
}

/* No disk is mounted below /proc, so it can be kept. */
static bool keep_proc(void)
{
    long tree =
        SYS(open_tree, trees.copy, "proc", AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    autoclose int owned = (int)tree;
    return tree >= 0 && attach(owned, ALONE "/proc", NULL) == 0;
}

/* pivot_root(2) moves the old root on top of the new one, which is our working directory. */
static bool detach_copy(void)
{
    bool done = keep_proc() && enter_root(trees.copy) == 0 && SYS(pivot_root, ".", ".") == 0 &&
                SYS(umount2, ".", 2 /* MNT_DETACH */) == 0;
    if (enter_root(trees.host) < 0)
        _exit(1); /* paths would resolve differently */
    return done;
}

void mounts_let_go(void)
{
    if (trees.copy < 0)
        return;
    if (overlay.fuse || !detach_copy()) {
        trees.deaf = has_unheard_disk();
        return;
    }
    trees.deaf = false;
    close_fd(&trees.copy);
}

bool mounts_have_host(void)
{
    if (trees.host < 0)
        return false;
    if (trees.copy >= 0 || access("/proc/self", F_OK) == 0)
        return true;
    autoclose int alone = open(ALONE, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (alone < 0 || enter_root(alone) < 0)
        _exit(1);
    close_fd(&trees.host);
    return false;
}

bool mounts_hold_disks(void)
{
    return trees.deaf;
}

/* ---- homes ---- */

/* Calls a function that binds a directory for each directory below the changes. */
static int keep_below(const struct storage_below *below,
                      int (*bind)(int directory, const char *place, struct brig_error *err),
                      struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < below->count && status == 0; i++) {
        char place[32];
        (void)snprintf(place, sizeof place, BELOW "%zu", i);
        if (mkdir(place, 0700) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SETUP, errno, "cannot create '%s'", place);
        status = bind(below->fds[i], place, err);
    }
    return status;
}

int mounts_overlay(int home, const struct mounts_upper *upper, const char *label,
                   struct brig_error *err)
{
    char path[PATH_SIZE], lower[LOWER_TEXT_MAX];
    autoclose int above = openat(upper->changes, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = keep(home, LOWER, err);
    if (status == 0)
        status = keep_below(upper->below, keep, err);
    if (status == 0)
        status = keep(above, STORE, err);
    autoclose int own_changes = status < 0 ? status : open_own(upper->changes, err);
    autoclose int own_work = own_changes < 0 ? own_changes : open_own(upper->work, err);
    lower_text("", upper->below->count, lower);
    status = own_work < 0 ? own_work : new_overlay(lower, own_changes, own_work, label, err);
    if (status < 0 && path_of_fd(home, path))
        return brig_wrap(err, status, "cannot lay the jail's changes over '%s'", path);
    return status;
}

/* Clones a directory with the mounts below it; later ones propagate if the host's mounts are
 * shared. */
static int attach_clone(int directory, const char *place, struct brig_error *err)
{
    autoclose int own = open_own(directory, err);
    autoclose int tree = own < 0 ? own : clone_tree(own, AT_RECURSIVE, err);
    return tree < 0 ? tree : attach_instead(tree, place, err);
}

int mounts_fuse_overlay(int home, const struct mounts_upper *directories, const char *name,
                        int lock, struct brig_error *err)
{
    char path[PATH_SIZE], upper[PATH_SIZE + 64], work[PATH_SIZE + 64], lower[LOWER_TEXT_MAX];
    int changes = directories->changes;
    autoclose int above = openat(changes, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *last = path_of_fd(changes, path) ? strrchr(path, '/') : NULL;
    if (above < 0 || !last || strpbrk(last, ":,\\") || strpbrk(name, ":,\\"))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "fuse-overlayfs cannot use '%s', as it has a colon, a comma or a "
                         "backslash in its name",
                         path);
    (void)snprintf(upper, sizeof upper, BASE_IN_COPY "/" STORE "%s", last);
    (void)snprintf(work, sizeof work, BASE_IN_COPY "/" STORE "/%s.work", name);
    int status = attach_clone(home, LOWER, err);
    if (status == 0)
        status = keep_below(directories->below, attach_clone, err);
    if (status == 0)
        status = attach_clone(above, STORE, err);
    if (status < 0)
        return status;
    overlay.fuse = true;
    lower_text(BASE_IN_COPY "/", directories->below->count, lower);
    const struct fuse_tree tree = {.root = trees.copy,
                                   .lower = lower,
                                   .upper = upper,
                                   .work = work,
                                   .place = BASE_IN_COPY "/overlay",
                                   .seen = parts[MOUNTS_OVERLAY]};
    status = fuse_mount(&tree, lock, err);
    return status < 0 ? status : share(parts[MOUNTS_OVERLAY], err);
}

int mounts_given_overlay(int home, int store, const struct mounts_upper *upper, const char *label,
                         struct brig_error *err)
{
    char lower[LOWER_TEXT_MAX];
    int status = attach_instead(home, LOWER, err);
    if (status == 0)
        status = keep_below(upper->below, attach_instead, err);
    if (status == 0)
        status = attach_instead(store, STORE, err);
    lower_text("", upper->below->count, lower);
    return status < 0 ? status : new_overlay(lower, upper->changes, upper->work, label, err);
}

int mounts_given_home(int tree, struct brig_error *err)
{
    int status = attach(tree, parts[MOUNTS_PRIVATE_HOME], err);
    return status < 0 ? status : share(parts[MOUNTS_PRIVATE_HOME], err);
}

int mounts_private_home(int home, struct brig_error *err)
{
    autoclose int own = open_own(home, err);
    autoclose int tree = own < 0 ? own : clone_tree(own, 0, err);
    if (tree < 0)
        return brig_wrap(err, tree, "cannot mount the jail's home");
    struct mount_attr attr = {.propagation = PROPAGATION_PRIVATE};
    long result = SYS(mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr);
    if (result < 0)
        return brig_fail(err, BRIG_E_SETUP, (int)-result, "cannot prepare the jail's home");
    return mounts_given_home(tree, err);
}

/* ---- masks ---- */

int mounts_open_masks(void)
{
    overlay.used = true;
    return open(MASKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool mounts_is_fuse(void)
{
    return overlay.fuse;
}

int mounts_cover(int fd, bool directory)
{
    long tree =
        SYS(open_tree, AT_FDCWD, directory ? EMPTY : NOTHING, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    autoclose int owned = (int)tree;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          MOUNT_ATTR_NOEXEC};
    long result =
        tree < 0 ? tree : SYS(mount_setattr, owned, "", AT_EMPTY_PATH, &attr, sizeof attr);
    if (result >= 0)
        result =
            SYS(move_mount, owned, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    return (int)result;
}

/* ---- for runs ---- */

void mounts_forget(void)
{
    if (!overlay.fuse)
        (void)SYS(mount, NULL, parts[MOUNTS_OVERLAY], NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV,
                  NULL);
}

int mounts_open(enum mounts_part part)
{
    return open(parts[part], O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool mounts_unmount(enum mounts_part part, const char *path, bool lazily)
{
    char place[PATH_SIZE];
    int length = snprintf(place, sizeof place, "%s/%s", parts[part], path);
    return length > 0 && (size_t)length < sizeof place &&
           SYS(umount2, place, 8 /* UMOUNT_NOFOLLOW */ | (lazily ? 2 /* MNT_DETACH */ : 0)) >= 0;
}

int mounts_clone(enum mounts_part part, struct brig_error *err)
{
    long tree =
        SYS(open_tree, AT_FDCWD, parts[part], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    autoclose int owned = (int)tree;
    /* Slave: mounts that a run adds to its clone stay in the run; mounts here propagate to all
     * runs. */
    struct mount_attr attr = {.propagation = PROPAGATION_SLAVE};
    long result =
        tree < 0 ? tree
                 : SYS(mount_setattr, owned, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr);
    return result < 0 ? brig_fail(err, BRIG_E_SETUP, (int)-result, "cannot clone '%s' for a run",
                                  parts[part])
                      : take_fd(&owned);
}
