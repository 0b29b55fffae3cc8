/* SPDX-License-Identifier: MIT */
/* Operations on user's files that are on another filesystem than the jail's storage: files cannot be renamed
 * between the two. While the operation is under way, its objects are in a directory of the root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/operation/operation_files.h"

#define REMOTE_NAME_MAX 128
#define MOVING ".moving"

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

int operation_open_remote(struct operation *operation, struct step_tree *tree, bool make,
                          struct brig_error *err)
{
    char name[REMOTE_NAME_MAX];
    struct stat root;
    if (!tree->found.mode && fstat(tree->lower, &root) == 0)
        tree->found = ident_of(&root);
    if (tree->remote >= 0 || can_rename(operation->steps.objects, tree->lower))
        return 0;
    remote_name(operation, name);
    if (make && mkdirat(tree->lower, name, 0700) < 0 && errno != EEXIST)
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
    char name[REMOTE_NAME_MAX];
    remote_name(operation, name);
    for (size_t i = 0; i < operation->steps.tree_count; i++)
        (void)tree_remove(operation->steps.trees[i].lower, name, NULL);
}

/* Copies an object under a temporary name, renames it, and removes the original. */
static int move_object(int from, int to, const char *name, struct brig_error *err)
{
    struct stat info;
    if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT
                   ? 0
                   : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read an operation's files");
    const struct copy_source source = {.dir = from,
                                       .name = name,
                                       .info = &info,
                                       .xattrs_dir = -1,
                                       .flags = COPY_RISKY | COPY_SYNC};
    (void)unlinkat(to, MOVING, 0);
    (void)unlinkat(to, MOVING, AT_REMOVEDIR);
    int status = copy_object(&source, to, MOVING, NULL, err);
    if (status < 0)
        return status;
    if (renameat(to, MOVING, to, name) < 0 ||
        unlinkat(from, name, S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot move an operation's files");
    return 0;
}

int operation_export(struct operation *operation, struct brig_error *err)
{
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    int status = 0;
    for (size_t i = 0; i < operation->steps.tree_count && status == 0; i++)
        status = operation_open_remote(operation, &operation->steps.trees[i], true, err);
    if (status == 0)
        status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        const struct step_tree *tree = &operation->steps.trees[step.tree];
        char name[STEP_NAME_MAX];
        status = 0;
        if (step.lower != STEP_SWAP || tree->remote < 0)
            continue;
        step_object_name(name, step.number, "");
        status = move_object(operation->steps.objects, tree->remote, name, err);
        step_object_name(name, step.number, STEP_OLD);
        if (status == 0)
            status = move_object(operation->steps.objects, tree->remote, name, err);
    }
    return status;
}

static int import_tree(struct operation *operation, struct step_tree *tree, struct brig_error *err)
{
    char name[REMOTE_NAME_MAX];
    int status = 0;
    autodir DIR *dir = files_list(tree->remote, ".");
    for (const struct dirent *item; dir && status == 0 && (item = readdir(dir));) {
        if (item->d_name[0] < '0' || item->d_name[0] > '9')
            continue;
        status = move_object(tree->remote, operation->steps.objects, item->d_name, err);
    }
    if (status < 0)
        return status;
    remote_name(operation, name);
    close_fd(&tree->remote);
    return tree_remove(tree->lower, name, err);
}

int operation_import(struct operation *operation, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < operation->steps.tree_count && status == 0; i++)
        if (operation->steps.trees[i].remote >= 0)
            status = import_tree(operation, &operation->steps.trees[i], err);
    return status;
}
