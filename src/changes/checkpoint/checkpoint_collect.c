/* SPDX-License-Identifier: MIT */
/* Removes checkpoints that no run can be restored from any more. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/clones.h"
#include "changes/checkpoint/manifest.h"
#include "changes/checkpoint/store.h"

struct collecting {
    struct str refs;   /* that a manifest names */
    struct str unused; /* refs: the input of git update-ref */
    int clones, kept;  /* directories, -1: there are no clones */
};

/* Notes what a manifest needs. */
static int read_needs(struct collecting *c, int dir, const char *name, struct brig_error *err)
{
    struct manifest_reader *reader = NULL;
    struct manifest_entry entry;
    int status = manifest_open(dir, name, &reader, err);
    const char *ref = status < 0 ? "" : manifest_header(reader, "ref");
    if (*ref && !str_list_has(&c->refs, ref))
        str_list_add(&c->refs, ref);
    while (status >= 0 && (status = manifest_next(reader, &entry, err)) > 0)
        if (entry.content[0] == '@' && c->clones >= 0)
            status = clones_keep(c->clones, c->kept, entry.content, err);
    manifest_close(reader);
    return status;
}

/* Reads the manifests in one directory: those of a run, or of a root. */
static int read_directory(struct collecting *c, int above, const char *name, bool is_root,
                          struct brig_error *err)
{
    autoclose int dir = files_open_dir(above, name);
    autodir DIR *list = dir < 0 ? NULL : files_list(dir, ".");
    int status = 0;
    for (const struct dirent *item; list && status == 0 && (item = files_next(list));)
        if (is_root ? strcmp(item->d_name, "manifest") == 0
                    : str_ends_with(item->d_name, CHECKPOINT_BEFORE))
            status = read_needs(c, dir, item->d_name, err);
    return status;
}

/* Whether a root does not exist any more. */
static bool is_gone(int above, const char *name)
{
    struct manifest_reader *reader = NULL;
    autoclose int dir = files_open_dir(above, name);
    struct stat info;
    if (dir < 0 || manifest_open(dir, "manifest", &reader, NULL) < 0)
        return false;
    const char *root = manifest_header(reader, "root");
    bool gone = *root && stat(root, &info) < 0 && errno == ENOENT;
    manifest_close(reader);
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

static bool judge_ref(void *data, const char *text, size_t length)
{
    struct collecting *c = data;
    (void)length;
    text += *text == '\n'; /* for-each-ref writes one after each line */
    if (*text && !str_list_has(&c->refs, text))
        str_concat(&c->unused, "delete ", text, "\n");
    return !c->unused.failed;
}

static int call_git(const struct store *store, const char *const *words, struct collecting *c,
                    bool lists, struct brig_error *err)
{
    const struct git_call call = {.words = words,
                                  .git_dir = store->directory,
                                  .input = lists ? NULL : &c->unused,
                                  .each = lists ? judge_ref : NULL,
                                  .data = c,
                                  .own_settings = true};
    int status = git_run(store->git, &call, err);
    return status > 0 ? brig_fail(err, BRIG_E_SYSTEM, 0,
                                  "git %s failed in the store of checkpoints", words[0])
                      : status;
}

/* Removes the refs that nothing names, and the objects that only they have kept. */
static int drop_objects(struct collecting *c, const struct store *store, struct brig_error *err)
{
    static const char *const list[] = {"for-each-ref", "--format=%(refname)%00", NULL};
    static const char *const drop[] = {"update-ref", "--stdin", NULL};
    static const char *const repack[] = {"repack", "-a", "-d", "-q", NULL};
    static const char *const prune[] = {"prune", "--expire=now", NULL};
    int status = call_git(store, list, c, true, err);
    if (status < 0 || c->unused.length == 0)
        return status;
    status = call_git(store, drop, c, false, err);
    if (status == 0)
        status = call_git(store, repack, c, false, err);
    return status < 0 ? status : call_git(store, prune, c, false, err);
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
    if (status == 0 && c->refs.failed)
        status = brig_fail_nomem(err);
    if (status == 0 && c->clones >= 0)
        status = clones_keep_end(all, err);
    if (status == 0)
        status = store_open(record, git, false, &store, err);
    if (status == 0)
        status = drop_objects(c, &store, err);
    store_done(&store);
    return status == BRIG_E_NOT_FOUND ? 0 : status;
}

int checkpoint_collect(int record, const struct git *git, struct brig_error *err)
{
    struct collecting c = {.clones = -1, .kept = -1};
    autoclose int all = files_open_dir(record, CHECKPOINT_DIRECTORY);
    if (all < 0)
        return 0;
    autoclose int lock = checkpoint_lock(all, true, err);
    if (lock < 0)
        return lock;
    c.clones = files_open_dir(all, CHECKPOINT_CLONES);
    int status = collect(&c, record, all, git, err);
    close_fd(&c.clones);
    close_fd(&c.kept);
    str_done(&c.refs);
    str_done(&c.unused);
    return status;
}
