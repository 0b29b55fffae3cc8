/* SPDX-License-Identifier: MIT */
/* Removes checkpoints that no run can be restored from any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/manifest.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/clones.h"
#include "changes/checkpoint/store.h"

#define STAMP "collected" /* a file: when that was done */

struct collecting {
    struct str ids;    /* of the objects that a manifest names, one in each line */
    int clones, kept;  /* directories, -1: there are no clones */
    int64_t before_ns; /* older lists of what runs have changed are removed */
};

/* Notes what a manifest needs. */
static int read_needs(struct collecting *c, int dir, const char *name, struct brig_error *err)
{
    struct manifest *manifest = NULL;
    int status = manifest_open(dir, name, &manifest, err);
    while (status >= 0 && (status = manifest_next(manifest, err)) > 0) {
        const char *content = manifest_entry(manifest)->content;
        if (*content == '@' && c->clones >= 0)
            status = clones_keep(c->clones, c->kept, content, err);
        else if (*content && *content != '@')
            str_concat(&c->ids, content, "\n");
    }
    manifest_close(manifest);
    return status;
}

/* Removes the list of a run that is too old. That of the first root goes first: without it there is no checkpoint. */
static bool drop_old(const struct collecting *c, int dir, const char *name)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        clock_ns(info.st_mtim) >= c->before_ns)
        return false;
    (void)unlinkat(dir, "0" CHECKPOINT_AFTER, 0);
    (void)unlinkat(dir, name, 0);
    return true;
}

/* Whether a file of an operation is a list of a run. Of one with both, the second tells what undo needs. */
static bool is_needed(const struct collecting *c, int dir, const char *name)
{
    char after[CHECKPOINT_NAME_MAX];
    if (str_ends_with(name, CHECKPOINT_AFTER))
        return !drop_old(c, dir, name);
    if (!str_ends_with(name, CHECKPOINT_BEFORE))
        return false;
    checkpoint_name((unsigned)strtoul(name, NULL, 10), CHECKPOINT_AFTER, after);
    if (!files_exists(dir, after))
        return true;
    (void)unlinkat(dir, name, 0); /* of an earlier version, or of a run that was killed */
    return false;
}

/* Reads the manifests in one directory: those of a run, or of a root. */
static int read_directory(struct collecting *c, int above, const char *name, bool is_root,
                          struct brig_error *err)
{
    autoclose int dir = files_open_dir(above, name);
    autodir DIR *list = dir < 0 ? NULL : files_list(dir, ".");
    int status = 0;
    for (const struct dirent *item; list && status == 0 && (item = files_next(list));)
        if (is_root ? strcmp(item->d_name, "manifest") == 0 : is_needed(c, dir, item->d_name))
            status = read_needs(c, dir, item->d_name, err);
    return status;
}

/* Whether a root does not exist any more. */
static bool is_gone(int above, const char *name)
{
    struct manifest *manifest = NULL;
    autoclose int dir = files_open_dir(above, name);
    struct stat info;
    if (dir < 0 || manifest_open(dir, "manifest", &manifest, NULL) < 0)
        return false;
    const char *root = manifest_header(manifest, "root");
    bool gone = *root && stat(root, &info) < 0 && errno == ENOENT;
    manifest_close(manifest);
    return gone;
}

static int read_all(struct collecting *c, int above, bool are_roots, struct brig_error *err)
{
    autodir DIR *list = above < 0 ? NULL : files_list(above, ".");
    int status = 0;
    for (const struct dirent *item; list && status == 0 && (item = files_next(list));) {
        if (are_roots && is_gone(above, item->d_name))
            status = tree_remove(above, item->d_name, err);
        else
            status = read_directory(c, above, item->d_name, are_roots, err);
    }
    return status;
}

static int collect(struct collecting *c, int record, int all, const struct git *git,
                   struct brig_error *err)
{
    struct store store = {.directory = -1};
    autoclose int operations = files_open_dir(record, "operations");
    int status = c->clones < 0 ? 0 : clones_keep_begin(all, &c->kept, err);
    if (status == 0)
        status = read_all(c, all, true, err);
    if (status == 0)
        status = read_all(c, operations, false, err);
    if (status == 0 && c->clones >= 0)
        status = clones_keep_end(all, err);
    if (status == 0)
        status = store_open(record, git, false, &store, err);
    if (status == 0)
        status = store_keep(&store, &c->ids, err);
    store_done(&store);
    return status == BRIG_E_NOT_FOUND ? 0 : status;
}

/* With the lock of the checkpoints. */
static int collect_all(int record, int all, const struct git *git, struct brig_error *err)
{
    const int64_t kept_ns = (int64_t)CHECKPOINT_KEPT_DAYS * 24 * 3600 * CLOCK_SECOND_NS;
    struct collecting c = {.clones = files_open_dir(all, CHECKPOINT_CLONES),
                           .kept = -1,
                           .before_ns = clock_wall_ns() - kept_ns};
    int status = collect(&c, record, all, git, err);
    close_fd(&c.clones);
    close_fd(&c.kept);
    str_done(&c.ids);
    return status < 0 ? status : files_write(all, STAMP, "", 0, err);
}

int checkpoint_collect(int record, const struct git *git, struct brig_error *err)
{
    autoclose int all = files_open_dir(record, CHECKPOINT_DIRECTORY);
    if (all < 0)
        return 0;
    autoclose int lock = checkpoint_lock(all, true, err);
    return lock < 0 ? lock : collect_all(record, all, git, err);
}

/* ---- after a run ---- */

/* Whether the last time was long ago. The first run only notes the time. */
static bool is_due(int all)
{
    const int64_t pause_ns = (int64_t)CHECKPOINT_COLLECT_HOURS * 3600 * CLOCK_SECOND_NS;
    struct stat info;
    if (fstatat(all, STAMP, &info, AT_SYMLINK_NOFOLLOW) == 0)
        return clock_ns(info.st_mtim) < clock_wall_ns() - pause_ns;
    (void)files_write(all, STAMP, "", 0, NULL);
    return false;
}

int checkpoint_tidy(int record, const struct git *git, struct brig_error *err)
{
    struct store store = {.directory = -1};
    autoclose int all = files_open_dir(record, CHECKPOINT_DIRECTORY);
    autoclose int lock = all < 0 ? -1 : checkpoint_lock(all, false, NULL);
    if (lock < 0)
        return 0;
    int status = store_open(record, git, false, &store, err);
    if (status == 0 && is_due(all) && tree_size(store.directory) <= CHECKPOINT_COLLECT_BYTES)
        status = collect_all(record, all, git, err);
    if (status == 0)
        status = store_tidy(&store, err);
    store_done(&store);
    return status;
}
