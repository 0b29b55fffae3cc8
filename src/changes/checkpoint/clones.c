/* SPDX-License-Identifier: MIT */
/* Makes and restores clones. */
#include "changes/checkpoint/clones.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/path.h"
#include "base/tree.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/operation/copy.h"

#define COPY_BYTES 65536

void clones_init(struct clones *clones, int checkpoints)
{
    *clones = (struct clones){.checkpoints = checkpoints, .directory = -1};
}

void clones_done(struct clones *clones)
{
    close_fd(&clones->directory);
}

/* Whether an open file is still in a state. */
static bool is_same(int fd, const struct stat *state)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return false;
    const struct ident now = ident_of(&info), before = ident_of(state);
    return ident_equal(&now, &before);
}

int clones_take(struct clones *clones, int dir, const char *name,
                char ret_content[MANIFEST_CONTENT_MAX], struct stat *ret_info)
{
    autoclose int from = copy_open(dir, name, false);
    if (from < 0 || fstat(from, ret_info) < 0)
        return errno;
    if (clones->directory < 0 &&
        files_make_dir(clones->checkpoints, CHECKPOINT_CLONES, &clones->directory, NULL) < 0)
        return EIO;
    char *made = ret_content + 1;
    ret_content[0] = '@';
    if (files_random_name("", made, MANIFEST_CONTENT_MAX - 1, NULL) < 0)
        return EIO;
    autoclose int to =
        openat(clones->directory, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed = to < 0 || ioctl(to, FICLONE, from) < 0 ? errno : 0;
    if (failed == 0 && !is_same(from, ret_info))
        failed = ESTALE;
    if (failed != 0 && to >= 0)
        (void)unlinkat(clones->directory, made, 0);
    return failed;
}

int clones_sync(const struct clones *clones, struct brig_error *err)
{
    return clones->directory < 0 || syncfs(clones->directory) == 0
               ? 0
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to brig's storage");
}

bool clones_can(struct clones *clones, int dir, const char *path)
{
    char content[MANIFEST_CONTENT_MAX];
    struct stat info;
    autoclose int fd = -1;
    const char *slash = strrchr(path, '/');
    autofree char *above = slash ? strndup(path, (size_t)(slash - path)) : NULL;
    if (above && path_open_beneath(dir, above, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, &fd, NULL) < 0)
        return false;
    int failed = clones_take(clones, above ? fd : dir, slash ? slash + 1 : path, content, &info);
    if (failed == 0)
        (void)unlinkat(clones->directory, content + 1, 0);
    return failed == 0;
}

/* ---- removing ---- */

#define KEPT CHECKPOINT_CLONES ".kept"

int clones_keep_begin(int checkpoints, int *ret_kept, struct brig_error *err)
{
    int status = tree_remove(checkpoints, KEPT, err); /* left by a kill */
    return status < 0 ? status : files_make_dir(checkpoints, KEPT, ret_kept, err);
}

int clones_keep(int clones, int kept, const char *content, struct brig_error *err)
{
    const char *name = content + 1;
    return linkat(clones, name, kept, name, 0) == 0 || errno == EEXIST || errno == ENOENT
               ? 0
               : brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to brig's storage");
}

int clones_keep_end(int checkpoints, struct brig_error *err)
{
    if (renameat2(checkpoints, KEPT, checkpoints, CHECKPOINT_CLONES, RENAME_EXCHANGE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to brig's storage");
    return tree_remove(checkpoints, KEPT, err);
}

/* ---- restoring ---- */

int clones_write(int record, const char *content, int to, struct brig_error *err)
{
    autofree char *path = NULL;
    autofree char *buffer = malloc(COPY_BYTES);
    int status = str_make(&path, err, CHECKPOINT_DIRECTORY "/" CHECKPOINT_CLONES "/", content + 1);
    if (status < 0 || !buffer)
        return status < 0 ? status : brig_fail_nomem(err);
    autoclose int from = -1;
    status = path_open_beneath(record, path, O_RDONLY | O_NOFOLLOW, 0, &from, err);
    if (status < 0 || ioctl(to, FICLONE, from) == 0)
        return status;
    ssize_t got;
    int written = 0;
    while (written == 0 && (got = read(from, buffer, COPY_BYTES)) > 0)
        written = write_all(to, buffer, (size_t)got);
    return written < 0 || got < 0 ? brig_fail(err, BRIG_E_SYSTEM, written < 0 ? -written : errno,
                                              "cannot restore a file from its clone")
                                  : 0;
}
