/* SPDX-License-Identifier: MIT */
/* Turns what a run has changed into the steps of an operation.
 *
 * The steps are added in four passes over the list of changes: directories that must be entered become writable; what
 * was added is removed, the contents of a directory before the directory; what was changed or deleted is put back, a
 * directory before its contents; and restored directories get their modes and times. */
#include "changes/checkpoint/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/run_changes.h"
#include "changes/layer/layer.h"
#include "changes/layer/names_list.h"
#include "changes/layer/touched.h"
#include "changes/operation/operation_files.h"

#define LAYER_DIRECT "direct"
#define RUN_LOCK "lock"
#define SETTLED_MAX 64 /* a run that was killed is among the last operations */

/* A directory that the run has added and that is removed: everything in it must be known. */
struct added {
    char *path;
    size_t names, known; /* entries that exist, and those that the run has added */
};

struct restoring {
    const struct operation_undo *undo;
    struct operation *operation;
    struct run_contents contents;
    struct layer *layers[CHECKPOINT_ROOTS_MAX]; /* one for each root; NULL: not opened yet */
    struct undo_found found;
    struct touched touched;
    int64_t ended_ns; /* of the run */
    /* Of the current root: */
    struct layer *layer;
    struct manifest *changes;
    int64_t *positions; /* of each change that is undone */
    size_t count;
    struct added *added;
    size_t added_count;
    struct str opened; /* directories that the operation makes writable */
    int parent;        /* the directory that was looked at last */
    struct str parent_path;
};

/* ---- the files as they are ---- */

/* Opens the directory that contains a path, without following links. -1 if it does not exist. */
static int open_parent(struct restoring *r, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (r->parent >= 0 && r->parent_path.length == length &&
        memcmp(r->parent_path.data, path, length) == 0)
        return r->parent;
    close_fd(&r->parent);
    r->parent_path.length = 0;
    str_append_bytes(&r->parent_path, path, length);
    if (!r->parent_path.failed)
        r->parent = step_open_directory(r->layer->lower, r->parent_path.data);
    return r->parent;
}

/* The current state of a path; st_mode is 0 if there is no file. */
static struct stat look(struct restoring *r, const char *path)
{
    struct stat info = {0};
    const char *slash = strrchr(path, '/');
    int parent = open_parent(r, path);
    if (parent < 0 || fstatat(parent, slash ? slash + 1 : path, &info,
                              AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH)) < 0)
        info = (struct stat){0};
    return info;
}

/* Whether two states have the same type, mode, size and time of contents: a file that an undo has put back has its old
 * times, but is another one. A time in whole seconds proves nothing. */
static bool is_alike(const struct ident *a, const struct ident *b)
{
    return a->mode == b->mode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           ident_time(a->mtime_ns).tv_nsec != 0;
}

/* Whether a file is in a state that is recorded. */
static bool is_in_state(struct restoring *r, const struct manifest_entry *entry,
                        const struct stat *now)
{
    if (entry->ident.mode == 0 || now->st_mode == 0 || S_ISDIR(now->st_mode))
        return entry->ident.mode == now->st_mode;
    const struct ident ident = ident_of(now);
    return is_alike(&entry->ident, &ident) || touched_is_same(&r->touched, &entry->ident, now);
}

/* ---- which changes ---- */

/* Whether a change is one of those that were asked for: a path, something below it, or a missing directory above. */
static bool is_selected(const struct restoring *r, const struct run_change *change)
{
    const struct operation_undo *undo = r->undo;
    const char *path = change->before.path;
    bool missing = S_ISDIR(change->before.ident.mode) && !S_ISDIR(change->after.ident.mode);
    for (size_t i = 0; undo->paths && i < undo->path_count; i++) {
        const char *below = path_below(r->layer->root, undo->paths[i]);
        if (path_is_beneath(undo->paths[i], r->layer->root) ||
            (below && (path_is_beneath(below, path) || (missing && path_is_beneath(path, below)))))
            return true;
    }
    return !undo->paths;
}

static void report(struct restoring *r, const char *path, const char *reason)
{
    r->found.changed++;
    if (r->undo->report)
        r->undo->report(r->undo->context, r->layer->root, path, reason);
}

/* ---- directories that the run has added ---- */

/* Leaves the directories that do not contain the path; NULL: all. */
static void leave_added(struct restoring *r, const char *path)
{
    while (r->added_count > 0) {
        struct added *last = &r->added[r->added_count - 1];
        if (path && path_is_beneath(last->path, path))
            return;
        if (last->known < last->names && !r->undo->force)
            report(r, last->path, "there are new files in it");
        free(last->path);
        r->added_count--;
    }
}

static int enter_added(struct restoring *r, const char *path, struct brig_error *err)
{
    struct names_list names = {0};
    const char *slash = strrchr(path, '/');
    autoclose int fd = files_open_dir(open_parent(r, path), slash ? slash + 1 : path);
    int status = fd < 0 ? 0 : names_list_read(fd, &names, err);
    size_t count = names.count;
    names_list_done(&names);
    if (status < 0)
        return status;
    char *copy = array_grow(&r->added, r->added_count) ? strdup(path) : NULL;
    if (!copy)
        return brig_fail_nomem(err);
    r->added[r->added_count++] = (struct added){.path = copy, .names = count};
    return 0;
}

/* Counts an added entry in the added directory that contains it. */
static void count_known(struct restoring *r, const char *path)
{
    struct added *last = r->added_count > 0 ? &r->added[r->added_count - 1] : NULL;
    if (last && !strchr(path + strlen(last->path) + 1, '/'))
        last->known++;
}

/* ---- steps ---- */

static int set_mode(struct restoring *r, const char *path, mode_t from, mode_t to, unsigned flags,
                    struct brig_error *err)
{
    int tree = operation_tree(r->operation, r->layer, err);
    if (tree < 0 || (from & 07777) == (to & 07777))
        return tree < 0 ? tree : 0;
    struct step step = {.tree = (uint8_t)tree,
                        .lower = STEP_MODE,
                        .flags = flags,
                        .mode_before = from & 07777,
                        .mode_after = to & 07777,
                        .path = path};
    return operation_add(r->operation, &step, err);
}

/* First pass: an existing directory becomes writable, if its mode is restored or if it is emptied. */
static int open_up(struct restoring *r, const struct run_change *change, const struct stat *now,
                   struct brig_error *err)
{
    mode_t mode = change->before.ident.mode;
    if (!S_ISDIR(now->st_mode))
        return 0;
    if ((now->st_mode & S_IRWXU) != S_IRWXU)
        str_list_add(&r->opened, change->before.path);
    if (r->opened.failed)
        return brig_fail_nomem(err);
    if (S_ISDIR(mode))
        return set_mode(r, change->before.path, now->st_mode, mode | S_IRWXU, 0, err);
    return set_mode(r, change->before.path, now->st_mode, now->st_mode | S_IRWXU, STEP_HELPER, err);
}

/* Refuses an undo in a directory in which this user cannot write: it would leave some files as they are. */
static int check_writable(struct restoring *r, const char *path, struct brig_error *err)
{
    int parent = open_parent(r, path);
    const char *above = r->parent_path.data ? r->parent_path.data : "";
    if (parent < 0 || faccessat(AT_FDCWD, path_proc(parent).text, W_OK | X_OK, AT_EACCESS) == 0 ||
        errno != EACCES || str_list_has(&r->opened, above))
        return 0;
    autofree char *full = NULL;
    int status = str_make(&full, err, r->layer->root, *above ? "/" : "", above);
    return status < 0 ? status
                      : brig_fail(err, BRIG_E_STATE, 0,
                                  "nothing was undone: you cannot write in '%s'. Type: chmod "
                                  "u+rwx '%s'",
                                  str_shown(full).text, str_shown(full).text);
}

/* Second pass: what the run has added is removed, and kept in the operation. */
static int remove_added(struct restoring *r, const struct run_change *change,
                        const struct stat *now, struct brig_error *err)
{
    if (change->before.ident.mode != 0 || now->st_mode == 0)
        return 0;
    int status = check_writable(r, change->before.path, err);
    return status < 0 ? status
                      : operation_put(r->operation, r->layer, change->before.path, now, NULL, err);
}

static struct stat stat_of(const struct manifest_entry *entry)
{
    const struct timespec mtime = ident_time(entry->ident.mtime_ns);
    return (struct stat){.st_mode = entry->ident.mode,
                         .st_uid = entry->uid,
                         .st_gid = entry->gid,
                         .st_size = (off_t)entry->ident.size,
                         .st_atim = mtime,
                         .st_mtim = mtime};
}

struct filling {
    struct run_contents *contents;
    const char *content;
};

static int fill(void *context, int fd, struct brig_error *err)
{
    const struct filling *filling = context;
    return run_contents_write(filling->contents, filling->content, fd, err);
}

/* Third pass: what the run has changed or deleted is put back. An existing file keeps its extended attributes. */
static int put_back(struct restoring *r, const struct run_change *change, const struct stat *now,
                    struct brig_error *err)
{
    const struct manifest_entry *before = &change->before;
    const char *slash = strrchr(before->path, '/');
    mode_t mode = before->ident.mode;
    if (mode == 0 || (S_ISDIR(mode) && S_ISDIR(now->st_mode)))
        return 0;
    autostr struct str target = {0};
    const struct stat info = stat_of(before);
    struct filling filling = {&r->contents, before->content};
    bool replaces = S_ISREG(mode) && S_ISREG(now->st_mode);
    struct copy_source source = {.dir = -1,
                                 .name = slash ? slash + 1 : before->path,
                                 .info = &info,
                                 .xattrs_dir = replaces ? open_parent(r, before->path) : -1,
                                 .xattrs_name = slash ? slash + 1 : before->path,
                                 .fill = S_ISREG(mode) ? fill : NULL,
                                 .context = &filling,
                                 .flags = COPY_RISKY | COPY_WRITABLE};
    int status = check_writable(r, before->path, err);
    if (status == 0 && S_ISLNK(mode)) {
        status = run_contents_target(&r->contents, before->content, &target, err);
        source.target = target.data ? target.data : "";
    }
    return status < 0 ? status
                      : operation_put(r->operation, r->layer, before->path, now, &source, err);
}

/* Fourth pass: directories that were writable meanwhile get their modes, and all their times, unless something in them
 * has changed since the run. */
static int complete(struct restoring *r, const struct run_change *change, const struct stat *now,
                    struct brig_error *err)
{
    const struct manifest_entry *before = &change->before;
    mode_t mode = before->ident.mode;
    if (!S_ISDIR(mode))
        return 0;
    bool created = !S_ISDIR(now->st_mode);
    int status = set_mode(r, before->path, mode | S_IRWXU, mode, STEP_HELPER, err);
    struct step time = {.tree = (uint8_t)operation_tree(r->operation, r->layer, NULL),
                        .lower = STEP_TIME,
                        .flags = STEP_HELPER,
                        .before = created ? (struct ident){0} : ident_of(now),
                        .other = before->ident,
                        .path = before->path};
    return status == 0 && time.before.mtime_ns <= r->ended_ns
               ? operation_add(r->operation, &time, err)
               : status;
}

/* Whether it is the index of a repository that the run has made: `git status` writes it, with other times of files. What
 * somebody has staged there since is a new object. */
static bool is_added_index(const struct restoring *r, const struct run_change *change,
                           const struct stat *now)
{
    static const char index[] = "/.git/index";
    const char *path = change->before.path;
    size_t length = strlen(path);
    return r->added_count > 0 && change->before.ident.mode == 0 && S_ISREG(now->st_mode) &&
           S_ISREG(change->after.ident.mode) && length >= strlen(index) &&
           strcmp(path + length - strlen(index), index) == 0;
}

/* ---- passes ---- */

/* Decides about a change: 1 if it is undone. Files that have changed since are reported. */
static int judge(struct restoring *r, const struct run_change *change, struct brig_error *err)
{
    const char *path = change->before.path;
    leave_added(r, path);
    if (!is_selected(r, change)) {
        r->found.whole = false;
        return 0;
    }
    const struct stat now = look(r, path);
    if (now.st_mode != 0 && change->before.ident.mode == 0)
        count_known(r, path);
    if (is_in_state(r, &change->after, &now) || is_added_index(r, change, &now)) {
        bool removed = change->before.ident.mode == 0 && S_ISDIR(now.st_mode);
        int status = removed ? enter_added(r, path, err) : 0;
        return status < 0 ? status : 1;
    }
    if (is_in_state(r, &change->before, &now)) {
        r->found.already++;
        return 0;
    }
    if (r->undo->force)
        return 1;
    report(r, path, "it has changed since");
    return 0;
}

static int find_wanted(struct restoring *r, struct brig_error *err)
{
    struct run_change change;
    int status = 0;
    r->count = 0;
    for (;;) {
        status = run_changes_next(r->changes, &change, err);
        if (status <= 0)
            break;
        status = judge(r, &change, err);
        if (status < 0)
            break;
        if (status == 0)
            continue;
        if (!array_grow(&r->positions, r->count))
            return brig_fail_nomem(err);
        r->positions[r->count++] = change.position;
        r->found.count += !change.is_time;
    }
    leave_added(r, NULL);
    return status;
}

/* Tells what the checkpoint did not contain. */
static int report_lost(struct restoring *r, int run, unsigned number, struct brig_error *err)
{
    struct manifest *changes = NULL;
    struct run_change change;
    int status = run_changes_open(run, number, &changes, err);
    while (status >= 0 && (status = run_changes_next_lost(changes, &change, err)) > 0) {
        if (!is_selected(r, &change))
            continue;
        r->found.lost++;
        if (r->undo->report)
            r->undo->report(r->undo->context, r->layer->root, change.before.path,
                            run_change_loss(&change));
    }
    manifest_close(changes);
    return status;
}

typedef int (*restore_pass)(struct restoring *r, const struct run_change *change,
                            const struct stat *now, struct brig_error *err);

static int make_pass(struct restoring *r, restore_pass pass, bool backwards, struct brig_error *err)
{
    struct run_change change = {0};
    int status = 0;
    for (size_t i = 0; i < r->count && status >= 0; i++) {
        size_t at = backwards ? r->count - 1 - i : i;
        status = manifest_seek(r->changes, r->positions[at], err);
        if (status == 0)
            status = run_changes_next(r->changes, &change, err);
        if (status == 0)
            status = brig_fail(err, BRIG_E_SYSTEM, 0, "a list of files has changed meanwhile");
        if (status < 0)
            break;
        const struct stat now = look(r, change.before.path);
        status = pass(r, &change, &now, err);
    }
    return status < 0 ? status : 0;
}

static const struct {
    restore_pass pass;
    bool backwards;
} passes[] = {{open_up, false}, {remove_added, true}, {put_back, false}, {complete, true}};

static int restore_root(struct restoring *r, int run, unsigned number, const char *jail,
                        struct brig_error *err)
{
    int status = run_changes_open(run, number, &r->changes, err);
    if (status < 0)
        return status;
    struct layer *layer = r->layer = r->layers[number] = calloc(1, sizeof *layer);
    if (!layer)
        return brig_fail_nomem(err);
    (void)str_fill(layer->jail, sizeof layer->jail, jail);
    (void)str_fill(layer->name, sizeof layer->name, LAYER_DIRECT);
    (void)str_fill(layer->root, sizeof layer->root, manifest_header(r->changes, "root"));
    layer->record = -1;
    layer->lower = run_changes_open_root(r->changes, err);
    if (layer->lower < 0)
        return layer->lower;
    r->opened.length = 0;
    status = find_wanted(r, err);
    if (status == 0 && r->found.changed == 0)
        status = report_lost(r, run, number, err);
    for (size_t i = 0; i < ARRAY_LENGTH(passes) && status == 0 && r->found.changed == 0; i++)
        status = make_pass(r, passes[i].pass, passes[i].backwards, err);
    manifest_close(take_ptr(&r->changes));
    close_fd(&r->parent);
    return status;
}

/* ---- runs ---- */

int restore_open_run(int record, uint64_t id)
{
    char path[64];
    (void)snprintf(path, sizeof path, "operations/%s", str_number(id).text);
    return files_open_dir(record, path);
}

bool restore_can(int record, uint64_t id)
{
    autoclose int run = restore_open_run(record, id);
    return run >= 0 && run_changes_roots(run) > 0;
}

int restore_lock_run(int run)
{
    autoclose int fd = openat(run, RUN_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? take_fd(&fd) : -1;
}

/* Completes the record of a run that was killed. */
static int settle(int run, struct brig_error *err)
{
    struct run_changes_count count;
    if (!run_changes_pending(run))
        return 0;
    autoclose int lock = restore_lock_run(run);
    if (lock < 0)
        return brig_fail(err, BRIG_E_STATE, 0, "the run is still active");
    return run_changes_record(run, &count, NULL, err);
}

static int settle_each(void *context, int operations, uint64_t id, struct brig_error *err)
{
    unsigned *count = context;
    if (++*count > SETTLED_MAX)
        return 1;
    autoclose int run = files_open_dir(operations, str_number(id).text);
    int status = run < 0 ? 0 : settle(run, err);
    if (status == BRIG_E_STATE && err)
        *err = (struct brig_error){0};
    return status == BRIG_E_STATE ? 0 : status;
}

int restore_settle(int record, struct brig_error *err)
{
    unsigned count = 0;
    int status = operations_each_id(record, settle_each, &count, err);
    return status < 0 ? status : 0;
}

static int visit_root(int run, unsigned number, operation_step_visit visit, void *context,
                      struct brig_error *err)
{
    struct manifest *changes = NULL;
    struct run_change change;
    int status = run_changes_open(run, number, &changes, err);
    while (status == 0 && (status = run_changes_next(changes, &change, err)) > 0)
        status = change.is_time ? 0
                                : visit(context, manifest_header(changes, "root"),
                                        *change.before.path ? change.before.path : ".",
                                        change.before.ident.mode == 0  ? "add"
                                        : change.after.ident.mode == 0 ? "delete"
                                                                       : "replace",
                                        err);
    manifest_close(changes);
    return status;
}

int restore_steps(int record, uint64_t id, operation_step_visit visit, void *context,
                  struct brig_error *err)
{
    autoclose int run = restore_open_run(record, id);
    unsigned roots = run < 0 || run_changes_pending(run) ? 0 : run_changes_roots(run);
    int status = 0;
    for (unsigned i = 0; i < roots && status == 0; i++)
        status = visit_root(run, i, visit, context, err);
    return status;
}

static void restoring_done(struct restoring *r)
{
    operation_free(r->operation);
    run_contents_done(&r->contents);
    touched_done(&r->touched);
    manifest_close(r->changes);
    leave_added(r, NULL);
    for (size_t i = 0; i < CHECKPOINT_ROOTS_MAX; i++) {
        if (r->layers[i])
            own_close(&r->layers[i]->lower);
        free(r->layers[i]);
    }
    free(r->added);
    free(r->positions);
    own_close(&r->parent);
    str_done(&r->parent_path);
    str_done(&r->opened);
}

int restore_run(const struct layers *layers, int record, const struct operation_undo *undo,
                uint64_t *ret_id, struct brig_error *err)
{
    struct restoring r = {
        .undo = undo, .parent = -1, .found.whole = true, .touched.record = record};
    struct operation_info old;
    int status = operation_find(record, undo->id, &old, err);
    if (status < 0)
        return status;
    r.ended_ns = old.end_ns;
    autoclose int run = restore_open_run(record, undo->id);
    run_contents_init(&r.contents, record, undo->git.git);
    status = run < 0 ? 0 : settle(run, err);
    unsigned roots = run < 0 ? 0 : run_changes_roots(run);
    if (status == 0 && roots == 0)
        status = brig_fail(err, BRIG_E_STATE, 0, "operation %ju has changed nothing",
                           (uintmax_t)undo->id);
    if (status == 0)
        status = operation_begin(layers, record, OPERATION_UNDO, &r.operation, err);
    for (unsigned i = 0; i < roots && status == 0; i++)
        status = restore_root(&r, run, i, undo->jail, err);
    if (status == 0 && r.found.whole)
        status = operation_git_reverse(r.operation, undo->id, &undo->git, err);
    if (status == 0)
        status = undo_run(r.operation, undo, &old, &r.found, err);
    if (status == 0)
        *ret_id = operation_id(r.operation);
    restoring_done(&r);
    operation_info_done(&old);
    return status;
}
