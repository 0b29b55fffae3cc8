/* SPDX-License-Identifier: MIT */
/* Operations on user's files that are on another filesystem than the jail's storage: files cannot be renamed
 * between the two. While the operation is under way, its objects are in a directory of the root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/layer/walk.h"
#include "changes/operation/operation_files.h"

#define REMOTE_NAME_MAX 128
#define MOVING ".moving"
#define RESERVED "reserved"
#define SLACK_BYTES ((off_t)1 << 20) /* for the lists of the operation */
#define PAGE_BYTES 4096
#define BLOCK_BYTES 512 /* unit of st_blocks */

static void remote_name(const struct operation *operation, char name[static REMOTE_NAME_MAX])
{
    (void)snprintf(name, REMOTE_NAME_MAX, ".brig-%s-%ju", operation->jail,
                   (uintmax_t)operation->info.id);
}

/* Whether files can be renamed from one directory to the other: the same filesystem, the same mount, and no project
 * quota of the target that the files do not have. */
static bool can_rename(int from, int to)
{
    struct statx one, other;
    struct fsxattr source = {0}, target = {0};
    if (statx(from, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &one) < 0 ||
        statx(to, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &other) < 0)
        return false;
    if (one.stx_dev_major != other.stx_dev_major || one.stx_dev_minor != other.stx_dev_minor ||
        one.stx_mnt_id != other.stx_mnt_id)
        return false;
    if (ioctl(to, FS_IOC_FSGETXATTR, &target) < 0 || ioctl(from, FS_IOC_FSGETXATTR, &source) < 0)
        return true;
    return !(target.fsx_xflags & FS_XFLAG_PROJINHERIT) || target.fsx_projid == source.fsx_projid;
}

/* A directory of objects is not to be noticed by the time of the root. */
static void keep_time(const struct step_tree *tree, const struct stat *root)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, root->st_mtim};
    (void)utimensat(AT_FDCWD, path_proc(tree->lower).text, times, 0);
}

static int remove_remote(const struct operation *operation, const struct step_tree *tree,
                         struct brig_error *err)
{
    char name[REMOTE_NAME_MAX];
    struct stat root;
    remote_name(operation, name);
    if (fstat(tree->lower, &root) < 0 || !files_exists(tree->lower, name))
        return 0;
    int status = tree_remove(tree->lower, name, err);
    keep_time(tree, &root);
    return status;
}

int operation_open_remote(struct operation *operation, struct step_tree *tree, bool make,
                          struct brig_error *err)
{
    char name[REMOTE_NAME_MAX];
    if (tree->remote >= 0 || can_rename(operation->steps.objects, tree->lower))
        return 0;
    remote_name(operation, name);
    struct stat root;
    bool made = make && fstat(tree->lower, &root) == 0 && mkdirat(tree->lower, name, 0700) == 0;
    if (made)
        keep_time(tree, &root);
    else if (make && errno != EEXIST)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to '%s'",
                         str_shown(tree->root).text);
    struct stat info;
    autoclose int fd = files_open_dir(tree->lower, name);
    if (fd < 0)
        return make ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s/%s'",
                                str_shown(tree->root).text, name)
                    : 0;
    if (fstat(fd, &info) < 0 || info.st_uid != geteuid())
        return brig_fail(err, BRIG_E_STATE, 0, "'%s/%s' belongs to another user",
                         str_shown(tree->root).text, name);
    tree->remote = take_fd(&fd);
    return 0;
}

void operation_drop_remote(const struct operation *operation)
{
    for (size_t i = 0; i < operation->steps.tree_count; i++)
        (void)remove_remote(operation, &operation->steps.trees[i], NULL);
}

/* ---- moving objects ---- */

/* Objects that are names of one file stay so: the name of the first of them at the other place. */
struct moved_link {
    ino_t inode;
    char name[STEP_NAME_MAX];
};

struct moving {
    int from, to;
    int reserved; /* the file that keeps space for them free; -1 */
    struct moved_link *links;
    size_t count;
};

static const char *find_moved(const struct moving *moving, ino_t inode)
{
    for (size_t i = 0; i < moving->count; i++)
        if (moving->links[i].inode == inode)
            return moving->links[i].name;
    return NULL;
}

static int copy_moved(struct moving *moving, const char *name, const struct stat *info,
                      struct brig_error *err)
{
    const struct copy_source source = {.dir = moving->from,
                                       .name = name,
                                       .info = info,
                                       .xattrs_dir = -1,
                                       .flags = COPY_RISKY | COPY_SYNC};
    const char *first = info->st_nlink > 1 ? find_moved(moving, info->st_ino) : NULL;
    if (first && linkat(moving->to, first, moving->to, MOVING, 0) == 0)
        return 0;
    int status = copy_object(&source, moving->to, MOVING, NULL, err);
    if (status < 0 || S_ISDIR(info->st_mode) || info->st_nlink == 1)
        return status;
    if (!array_grow(&moving->links, moving->count))
        return brig_fail_nomem(err);
    struct moved_link *link = &moving->links[moving->count++];
    link->inode = info->st_ino;
    (void)str_fill(link->name, sizeof link->name, name);
    return 0;
}

/* Gives the space for a file free. */
static void use_reserved(const struct moving *moving, const struct stat *info)
{
    struct stat reserved;
    off_t bytes = operation_space_of(info);
    if (moving->reserved >= 0 && fstat(moving->reserved, &reserved) == 0)
        (void)!ftruncate(moving->reserved, reserved.st_size > bytes ? reserved.st_size - bytes : 0);
}

/* Copies an object under a temporary name, and renames it, unless it is there already. The original stays: the number of its names tells what belongs
 * together, also after a kill. */
static int move_object(struct moving *moving, const char *name, struct brig_error *err)
{
    struct stat info;
    if (files_exists(moving->to, name))
        return 0;
    if (fstatat(moving->from, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read an operation's files");
    (void)unlinkat(moving->to, MOVING, 0);
    (void)unlinkat(moving->to, MOVING, AT_REMOVEDIR);
    use_reserved(moving, &info);
    int status = copy_moved(moving, name, &info, err);
    if (status == 0 && renameat(moving->to, MOVING, moving->to, name) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot move an operation's files");
    return status;
}

/* ---- to the filesystem of the root ---- */

/* Names under which a step has replaced a file. */
struct replaced {
    struct ident ident;
    char name[STEP_NAME_MAX];
};

/* Files that had other names outside when they were replaced. */
struct relinking {
    const char *own; /* the directory of objects */
    int to;
    struct replaced *items;
    size_t count;
};

static bool is_unchanged(const struct ident *ident, const struct stat *now)
{
    const struct ident found = ident_of(now);
    return ident->inode == found.inode && ident->mode == found.mode && ident->size == found.size &&
           ident->mtime_ns == found.mtime_ns;
}

/* Gives the object another name of the very file, if it has not changed since. */
static int relink(void *context, const struct walk_entry *entry, struct brig_error *err)
{
    struct relinking *relinking = context;
    (void)err;
    if (strcmp(entry->path, relinking->own) == 0)
        return TREE_SKIP;
    for (size_t i = 0; S_ISREG(entry->info.st_mode) && i < relinking->count; i++)
        if (is_unchanged(&relinking->items[i].ident, &entry->info))
            (void)linkat(entry->dir, entry->name, relinking->to, relinking->items[i].name, 0);
    return 0;
}

/* A file that a step has replaced while it had other names outside is put back as one more name of it. */
static int relink_tree(struct operation *operation, uint8_t number, struct brig_error *err)
{
    const struct step_tree *tree = &operation->steps.trees[number];
    autojournal struct journal journal = {.fd = -1};
    char own[REMOTE_NAME_MAX];
    struct relinking relinking = {.own = own, .to = tree->remote};
    struct step step;
    char name[STEP_NAME_MAX];
    remote_name(operation, own);
    int status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        status = 0;
        if (step.tree != number || step.lower != STEP_SWAP || !(step.flags & STEP_LINKED))
            continue;
        step_object_name(name, step.number, step.flags & STEP_REVERSED ? "" : STEP_OLD);
        if (!files_exists(operation->steps.objects, name)) /* it is exported already, or in place */
            continue;
        if (!array_grow(&relinking.items, relinking.count)) {
            status = brig_fail_nomem(err);
            break;
        }
        struct replaced *item = &relinking.items[relinking.count++];
        item->ident = step.before;
        memcpy(item->name, name, sizeof item->name);
    }
    if (status == 0 && relinking.count > 0)
        status = tree_walk(tree->lower, "", relink, &relinking, err);
    free(relinking.items);
    return status < 0 ? status : 0;
}

/* Goes through the objects of the user's files: copies each, or removes the original of each. */
static int export_objects(struct operation *operation, uint8_t number, struct moving *moving,
                          bool removes, struct brig_error *err)
{
    static const char *const ends[] = {"", STEP_OLD};
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    int status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        bool counts = step.tree == number && step.lower == STEP_SWAP;
        status = 0;
        for (size_t i = 0; counts && status == 0 && i < ARRAY_LENGTH(ends); i++) {
            char name[STEP_NAME_MAX];
            step_object_name(name, step.number, ends[i]);
            if (!removes)
                status = move_object(moving, name, err);
            else if (unlinkat(moving->from, name, 0) < 0 && errno == EISDIR)
                (void)unlinkat(moving->from, name, AT_REMOVEDIR);
        }
    }
    return status;
}

static int export_tree(struct operation *operation, uint8_t number, struct brig_error *err)
{
    struct moving moving = {.from = operation->steps.objects,
                            .to = operation->steps.trees[number].remote,
                            .reserved = -1};
    int status = relink_tree(operation, number, err);
    if (status == 0)
        status = export_objects(operation, number, &moving, false, err);
    if (status == 0)
        status = export_objects(operation, number, &moving, true, err);
    free(moving.links);
    return status;
}

int operation_export(struct operation *operation, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < operation->steps.tree_count && status == 0; i++) {
        status = operation_open_remote(operation, &operation->steps.trees[i], true, err);
        if (status == 0 && operation->steps.trees[i].remote >= 0)
            status = export_tree(operation, (uint8_t)i, err);
    }
    return status;
}

/* ---- back into the operation ---- */

static int import_tree(struct operation *operation, struct step_tree *tree, struct brig_error *err)
{
    int status = 0;
    autodir DIR *dir = files_list(tree->remote, ".");
    autoclose int reserved =
        openat(operation->steps.objects, RESERVED, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    struct moving moving = {
        .from = tree->remote, .to = operation->steps.objects, .reserved = reserved};
    for (const struct dirent *item; dir && status == 0 && (item = readdir(dir));)
        if (item->d_name[0] >= '0' && item->d_name[0] <= '9')
            status = move_object(&moving, item->d_name, err);
    free(moving.links);
    if (status < 0)
        return status;
    close_fd(&tree->remote);
    return remove_remote(operation, tree, err);
}

int operation_import(struct operation *operation, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < operation->steps.tree_count && status == 0; i++)
        if (operation->steps.trees[i].remote >= 0)
            status = import_tree(operation, &operation->steps.trees[i], err);
    if (status == 0)
        operation_unreserve(operation);
    return status;
}

/* ---- space for what comes back ---- */

off_t operation_space_of(const struct stat *info)
{
    return (off_t)info->st_blocks * BLOCK_BYTES + PAGE_BYTES; /* and an entry and a node */
}

/* Whether a filesystem that cannot reserve space has as much. */
static bool has_space(int dir, off_t bytes)
{
    struct statvfs info;
    return fstatvfs(dir, &info) < 0 || (off_t)(info.f_bavail * info.f_frsize) >= bytes;
}

void operation_unreserve(const struct operation *operation)
{
    (void)unlinkat(operation->steps.objects, RESERVED, 0);
}

int operation_reserve(struct operation *operation, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int objects = operation->steps.objects;
    if (operation->replaced_bytes == 0)
        return 0;
    off_t bytes = operation->replaced_bytes + SLACK_BYTES;
    autoclose int fd =
        openat(objects, RESERVED, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = fd < 0 || fallocate(fd, 0, 0, bytes) < 0 ? errno : 0;
    if (failed == EOPNOTSUPP || failed == ENOSYS || failed == EINVAL)
        failed = has_space(objects, bytes) ? 0 : ENOSPC;
    if (failed == 0)
        return 0;
    operation_unreserve(operation);
    return brig_fail(err, BRIG_E_SYSTEM, failed,
                     "nothing was changed: the files that are replaced are kept in '%s', and need "
                     "%ju MiB there. Make room (brig gc), or name fewer files",
                     path_of_fd(operation->dir, path) ? str_shown(path).text : "",
                     (uintmax_t)(bytes >> 20) + 1);
}
