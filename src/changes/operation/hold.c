/* SPDX-License-Identifier: MIT */
#include "changes/operation/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/checkpoint/restore.h"
#include "changes/layer/names_list.h"
#include "changes/operation/hold_old.h"
#include "changes/operation/operation_files.h"
#include "held/held.h"
#include "held/names.h"

#define HOLD_PREFIX "hold-"
#define TREE_NAME "held" /* as the name of a layer */
#define BYTES_MAX ((uint64_t)1 << 30)
#define FILES_MAX 1000000
#define DEPTH_MAX 128

/* ---- the copy ---- */

struct copying {
    struct operation *operation;
    bool links; /* hard links do for copies: no jail has seen these files */
    uint64_t files, bytes;
    int depth;
    char path[PATH_LENGTH_MAX + 1];
};

/* The type of a special file; NULL for a file, a directory or a link. */
static const char *kind_without_content(mode_t mode)
{
    return S_ISFIFO(mode)                   ? "a FIFO"
           : S_ISSOCK(mode)                 ? "a socket"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                            : NULL;
}

/* The step that has deleted the file, and the name of the object. */
static int add_step(struct copying *c, const struct stat *info, char ret_name[static STEP_NAME_MAX],
                    struct brig_error *err)
{
    struct step step = {.lower = STEP_SWAP, .before = ident_of(info), .path = c->path};
    int status = operation_add(c->operation, &step, err);
    step_object_name(ret_name, step.number, STEP_OLD);
    return status;
}

static int copy_file(struct copying *c, int dir, const char *name, const struct stat *info,
                     struct brig_error *err)
{
    char object[STEP_NAME_MAX];
    int objects = c->operation->steps.objects;
    int status = add_step(c, info, object, err);
    if (status < 0 || (c->links && linkat(dir, name, objects, object, 0) == 0))
        return status;
    const struct copy_source source = {
        .dir = dir,
        .name = name,
        .info = info,
        .xattrs_dir = -1,
        .flags = c->operation->staged++ < OPERATION_SYNC_MAX ? COPY_SYNC : 0};
    return copy_object(&source, objects, object, NULL, err);
}

static int copy_entry(struct copying *c, int dir, const char *name, struct brig_error *err);

/* Also one that the jail has made unreadable. */
static int open_directory(int dir, const char *name, const struct stat *info)
{
    if (faccessat(dir, name, R_OK | X_OK, AT_EACCESS) < 0)
        (void)!fchmodat(dir, name, (info->st_mode & 07777) | S_IRWXU, AT_SYMLINK_NOFOLLOW);
    return files_open_dir(dir, name);
}

static int copy_names(struct copying *c, int directory, struct brig_error *err)
{
    struct names_list names = {0};
    size_t length = strlen(c->path);
    int status = names_list_read(directory, &names, err);
    if (status == 0 && ++c->depth > DEPTH_MAX)
        status = brig_fail(err, BRIG_E_INVALID, 0, "'%s' is too deep to be held back (limit %d)",
                           str_shown(c->path).text, DEPTH_MAX);
    for (size_t i = 0; i < names.count && status == 0; i++) {
        bool fits = str_fill(c->path + length, sizeof c->path - length, "/", names.items[i]);
        status = fits ? copy_entry(c, directory, names.items[i], err)
                      : brig_fail(err, BRIG_E_INVALID, ENAMETOOLONG, "'%s'",
                                  str_shown(names.items[i]).text);
    }
    c->path[length] = '\0';
    c->depth--;
    names_list_done(&names);
    return status;
}

/* A step for its metadata, which is the last one of an undo; those of what is in it; and one for itself. */
static int copy_directory(struct copying *c, int dir, const char *name, const struct stat *info,
                          struct brig_error *err)
{
    char object[STEP_NAME_MAX];
    struct operation *operation = c->operation;
    struct stat plain = *info;
    plain.st_mode = S_IFDIR | S_IRWXU;
    const struct copy_source now = {.dir = dir, .name = name, .info = info, .xattrs_dir = -1};
    const struct copy_source open = {.dir = -1, .name = name, .info = &plain, .xattrs_dir = -1};
    struct step meta = {.lower = STEP_META, .flags = STEP_HELPER, .path = c->path};
    int status = operation_stage_meta(operation, &meta, &open, &now, err);
    if (status == 0)
        status = operation_add(operation, &meta, err);
    autoclose int fd = status < 0 ? -1 : open_directory(dir, name, info);
    if (status == 0 && fd < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
    if (status == 0)
        status = copy_names(c, fd, err);
    if (status == 0)
        status = add_step(c, info, object, err);
    if (status == 0 && mkdirat(operation->steps.objects, object, S_IRWXU) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot copy '%s'", str_shown(name).text);
    return status;
}

static int copy_entry(struct copying *c, int dir, const char *name, struct brig_error *err)
{
    struct stat info;
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(name).text);
    if (kind_without_content(info.st_mode)) {
        c->operation->info.special++;
        return 0;
    }
    c->bytes += S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    if (++c->files > FILES_MAX || c->bytes > BYTES_MAX)
        return brig_fail(err, BRIG_E_INVALID, EFBIG, "'%s' is too large", str_shown(name).text);
    return S_ISDIR(info.st_mode) ? copy_directory(c, dir, name, &info, err)
                                 : copy_file(c, dir, name, &info, err);
}

/* ---- a hold that is under way ---- */

static int open_journal(struct operation *operation, struct brig_error *err)
{
    autoclose int fd =
        openat(operation->dir, JOURNAL_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
               S_IRUSR | S_IWUSR);
    operation->journal = fd < 0 ? NULL : fdopen(fd, "we");
    if (!operation->journal)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write the journal");
    (void)take_fd(&fd);
    return 0;
}

/* Copies the file into the operation, anew if that was begun before. */
static int pending_copy(struct hold_pending *pending, int dir, const char *name,
                        struct brig_error *err)
{
    struct operation *operation = pending->operation;
    autofree struct copying *c = calloc(1, sizeof *c);
    if (!c)
        return brig_fail_nomem(err);
    *c = (struct copying){.operation = operation, .links = pending->links};
    (void)str_fill(c->path, sizeof c->path, operation->info.path);
    int status = tree_empty(operation->steps.objects, err);
    if (status == 0)
        status = open_journal(operation, err);
    if (status == 0)
        status = copy_entry(c, dir, name, err);
    if (status == 0)
        status = operation_make_durable(operation, err);
    if (operation->journal)
        (void)fclose(take_ptr(&operation->journal));
    if (status < 0)
        return status;
    operation->info.changes = operation->count;
    operation->info.files = OPERATION_LISTED;
    operation->info.end_ns = clock_wall_ns();
    status = operation_write_info(operation, err);
    return status < 0 ? status : operation_mark(operation->dir, OPERATION_READY, NULL, err);
}

int hold_complete(struct hold_pending *pending, int dir, const char *name, struct brig_error *err)
{
    int at = pending->operation->dir, status = 0;
    uint64_t id;
    if (!files_exists(at, OPERATION_READY))
        status = pending_copy(pending, dir, name, err);
    if (status == 0 && dir >= 0)
        status = tree_remove(dir, name, err);
    if (status == 0)
        status = operation_mark(at, OPERATION_DONE, NULL, err);
    return status < 0 ? status : operation_number(pending->operations, pending->name, &id, err);
}

/* Removes its directory. */
static void hold_drop(struct hold_pending *pending)
{
    if (pending->operations >= 0)
        (void)tree_remove(pending->operations, pending->name, NULL);
}

void hold_pending_done(struct hold_pending *pending)
{
    operation_free(pending->operation);
    close_fd(&pending->operations);
    close_fd(&pending->lock);
}

/* Opens what is in the directory of the operation, and takes its lock. */
static int pending_open(struct hold_pending *pending, const char *name)
{
    struct operation *operation = pending->operation;
    operation->dir = files_open_dir(pending->operations, name);
    operation->steps.objects =
        operation->dir < 0 ? -1 : files_open_dir(operation->dir, OPERATION_OBJECTS);
    pending->lock = operation->steps.objects < 0 ? -1 : restore_lock_run(operation->dir);
    return pending->lock;
}

/* Made under another name: without its lock it would look like that of a killed process. */
static int pending_make_directory(struct hold_pending *pending, struct brig_error *err)
{
    char hidden[sizeof pending->name + 8], objects[sizeof hidden + sizeof OPERATION_OBJECTS];
    (void)snprintf(hidden, sizeof hidden, ".new-%s", pending->name);
    (void)snprintf(objects, sizeof objects, "%s/" OPERATION_OBJECTS, hidden);
    (void)tree_remove(pending->operations, hidden, NULL);
    int status = 0;
    if (mkdirat(pending->operations, hidden, S_IRWXU) < 0 ||
        mkdirat(pending->operations, objects, S_IRWXU) < 0 || pending_open(pending, hidden) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the log of operations");
    /* Objects must not inherit an ACL of the storage directory. */
    if (status == 0)
        (void)fremovexattr(pending->operation->steps.objects, "system.posix_acl_default");
    if (status == 0)
        status = operation_write_info(pending->operation, err);
    if (status == 0 &&
        renameat(pending->operations, hidden, pending->operations, pending->name) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the log of operations");
    if (status < 0)
        (void)tree_remove(pending->operations, hidden, NULL);
    return status;
}

int hold_begin(int record, const struct hold *hold, struct hold_pending *pending,
               struct brig_error *err)
{
    struct operation *operation = operation_new(NULL, record);
    struct step_tree *tree =
        operation ? operation_add_tree(operation, NULL, TREE_NAME, hold->project) : NULL;
    pending->operation = operation;
    pending->operations = operations_open(record, err);
    if (!tree)
        return brig_fail_nomem(err);
    if (pending->operations < 0)
        return pending->operations;
    tree->place = hold->place;
    struct operation_info *info = &operation->info;
    info->time_ns = hold->time_ns;
    (void)str_fill(info->kind, sizeof info->kind, OPERATION_HOLD);
    (void)str_fill(info->path, sizeof info->path, hold->path);
    (void)str_fill(info->program, sizeof info->program, hold->program);
    (void)snprintf(info->text, sizeof info->text, "%s in %s, which %s would execute", hold->path,
                   hold->project, hold->program);
    return pending_make_directory(pending, err);
}

/* ---- holding back ---- */

/* Appends a name, and its directory unless that is the working directory; then returns true. */
static bool note_name(struct str *notes, const char *kind, const struct held_root *root,
                      const char *path, const char *program)
{
    char cwd[PATH_LENGTH_MAX + 1];
    bool here = getcwd(cwd, sizeof cwd) && strcmp(cwd, root->path) == 0;
    str_concat(notes, kind, ": ", path);
    if (!here) {
        str_append(notes, " in ");
        str_append_shown(notes, root->path, strlen(root->path), "");
    }
    str_concat(notes, ", which ", program, " would execute");
    return here;
}

static void note_held(const struct held_root *root, const struct operation_info *info,
                      struct str *notes)
{
    bool here = note_name(notes, "held back", root, info->path, info->program);
    if (info->special > 0)
        str_appendf(notes, "; FIFOs, sockets and devices in it were deleted (%ju)",
                    (uintmax_t)info->special);
    if (here)
        str_concat(notes, ". brig held shows it, brig keep ", info->path, " restores it\n");
    else
        str_append(notes, ". See brig held\n");
}

/* The name in the project while a hold is under way: no program obeys it. */
static void name_aside(const char *name, const char *pending, char ret_aside[NAME_MAX + 1])
{
    (void)str_fill(ret_aside, NAME_MAX + 1, name, ".held", strchr(pending, '-'));
}

/* Opens the directory of a path, and points to the last component. No link is followed. */
static int open_parent(int top, const char *path, const char **ret_name)
{
    char above[PATH_LENGTH_MAX + 1];
    const char *slash = strrchr(path, '/');
    *ret_name = slash ? slash + 1 : path;
    (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 0, path);
    return path_open_plain(top, above, O_RDONLY | O_DIRECTORY);
}

/* If a directory above a name is a link, that is held back: cuts the path there. */
static void cut_at_link(int top, char *path)
{
    struct stat info;
    for (char *slash = path; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (fstatat(top, path, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
            return;
    }
}

/* Renames a file so that no program obeys it. That needs no space, but write permission for the
 * directory, which a jail may have removed. */
static int rename_aside(int parent, const char *name, const char *aside, struct brig_error *err)
{
    struct stat info;
    int failed = path_rename_new(parent, name, parent, aside);
    if (failed == -EACCES && fstat(parent, &info) == 0 &&
        fchmod(parent, (info.st_mode & 07777) | S_IRWXU) == 0)
        failed = path_rename_new(parent, name, parent, aside);
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot rename it") : 0;
}

/* The operation is in the log before the file is renamed, so that a kill between the two leaves nothing unknown. */
static int begin_name(int record, const struct held_root *root, const char *path,
                      const char *program, struct hold_pending *pending, struct brig_error *err)
{
    char resolved[PATH_LENGTH_MAX + 1];
    struct hold hold = {.project = path_of_fd(root->top, resolved) ? resolved : root->path,
                        .time_ns = clock_wall_ns()};
    (void)str_fill(hold.path, sizeof hold.path, path);
    (void)str_fill(hold.program, sizeof hold.program, program);
    int status = place_of(root->top, &hold.place, err);
    return status < 0 ? status : hold_begin(record, &hold, pending, err);
}

/* Stores what was renamed aside, or deletes it if it has no content. */
static void put_away(struct hold_pending *pending, const struct held_root *root, int parent,
                     const char *aside, const char *path, const char *program, bool begun,
                     struct str *notes, struct brig_error *why)
{
    struct stat info = {0};
    (void)fstatat(parent, aside, &info, AT_SYMLINK_NOFOLLOW);
    const char *kind = kind_without_content(info.st_mode);
    if (kind && tree_remove(parent, aside, why) == 0) {
        hold_drop(pending);
        (void)note_name(notes, "deleted", root, path, program);
        str_concat(notes, ": it was ", kind, ", which has no content to hold back\n");
        return;
    }
    int status = !begun || kind ? BRIG_E_SYSTEM : hold_complete(pending, parent, aside, why);
    if (status == 0) {
        note_held(root, &pending->operation->info, notes);
        return;
    }
    (void)note_name(notes, "held back", root, path, program);
    str_concat(notes, ", is now ", aside, ": ", why->message);
    if (!begun || kind || status == BRIG_E_INVALID) { /* it will not be possible later either */
        hold_drop(pending);
        str_append(notes, ". Remove it\n");
    } else {
        str_append(notes, ". The next run, or brig held, stores it\n");
    }
}

int hold_name(int record, const struct held_root *root, const struct names_held_name *held,
              struct str *notes, struct brig_error *err)
{
    const char *name, *program = held->row->program;
    char path[PATH_LENGTH_MAX + 1], aside[NAME_MAX + 1];
    struct hold_pending pending = HOLD_PENDING_INIT;
    struct brig_error why = {0};
    (void)str_fill(path, sizeof path, held->path);
    cut_at_link(root->top, path);
    autoclose int parent = open_parent(root->top, path, &name);
    if (parent < 0 || !files_exists(parent, name))
        return 0; /* it was reached by a link that is held back already */
    int status = files_random_name(HOLD_PREFIX, pending.name, sizeof pending.name, err);
    if (status < 0)
        return status;
    bool begun = begin_name(record, root, path, program, &pending, &why) == 0;
    name_aside(name, pending.name, aside);
    status = rename_aside(parent, name, aside, err);
    if (status == 0)
        put_away(&pending, root, parent, aside, path, program, begun, notes, &why);
    else
        hold_drop(&pending);
    hold_pending_done(&pending);
    return status;
}

/* ---- after a kill ---- */

/* If the project is not at its place any more, the file stays in it under the other name. */
static int settle_named(int record, const char *name, struct brig_error *err)
{
    struct hold_pending pending = HOLD_PENDING_INIT;
    char aside[NAME_MAX + 1];
    const char *last = "";
    int status = hold_open_pending(record, name, &pending, err);
    if (status > 0) {
        const struct operation *operation = pending.operation;
        const struct step_tree *tree =
            operation->steps.tree_count > 0 ? operation->steps.trees : NULL;
        autoclose int top = tree ? place_open(tree->root, &tree->place, NULL) : -1;
        autoclose int parent = top < 0 ? -1 : open_parent(top, operation->info.path, &last);
        name_aside(last, name, aside);
        if (files_exists(operation->dir, OPERATION_READY) ||
            (parent >= 0 && files_exists(parent, aside)))
            status = hold_complete(&pending, parent, aside, err);
        else
            hold_drop(&pending);
    }
    hold_pending_done(&pending);
    return status < 0 ? status : 0;
}

int hold_open_pending(int record, const char *name, struct hold_pending *pending,
                      struct brig_error *err)
{
    (void)str_fill(pending->name, sizeof pending->name, name);
    pending->operation = operation_new(NULL, record);
    pending->operations = operations_open(record, err);
    if (!pending->operation)
        return brig_fail_nomem(err);
    if (pending->operations < 0)
        return pending->operations;
    /* The lock may be that of an entry that was numbered meanwhile. */
    if (pending_open(pending, name) < 0 || !files_exists(pending->operations, name))
        return 0;
    int status = operation_read_dir(pending->operation->dir, &pending->operation->info,
                                    pending->operation, err);
    pending->operation->info.special = 0;
    return status < 0 ? status : 1;
}

int holds_settle(int record, struct brig_error *err)
{
    autoclose int operations = operations_open(record, err);
    autodir DIR *dir = operations < 0 ? NULL : files_list(operations, ".");
    int status = operations < 0 ? operations : 0;
    for (const struct dirent *item; dir && (item = files_next(dir));) {
        int settled = str_starts_with(item->d_name, HOLD_PREFIX)
                          ? settle_named(record, item->d_name, err)
                          : 0;
        status = status < 0 ? status : settled; /* the others are still settled */
    }
    return status;
}

/* ---- listing ---- */

static int each_step(struct operation *operation, hold_visit visit, void *context,
                     struct brig_error *err)
{
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    char name[STEP_NAME_MAX];
    int status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        step_object_name(name, step.number, STEP_OLD);
        const struct hold_file file = {.path = step.path,
                                       .dir = operation->steps.objects,
                                       .name = name,
                                       .mode = step.before.mode,
                                       .bytes = step.before.size};
        status = step.lower == STEP_SWAP ? visit(context, &file, err) : 0;
    }
    return status;
}

int hold_each(int record, const struct hold *hold, hold_visit visit, void *context,
              struct brig_error *err)
{
    struct operation *operation;
    int status = operation_open(NULL, record, hold->id, &operation, err);
    if (status < 0)
        return status;
    status = each_step(operation, visit, context, err);
    operation_free(operation);
    return status;
}

static int measure(void *context, const struct hold_file *file, struct brig_error *err)
{
    struct hold *hold = context;
    char target[PATH_LENGTH_MAX + 1];
    hold->mode = file->mode; /* the last one is the whole */
    hold->files += !S_ISDIR(file->mode);
    hold->bytes += S_ISREG(file->mode) ? file->bytes : 0;
    if (!S_ISLNK(file->mode) || strcmp(file->path, hold->path) != 0)
        return 0;
    ssize_t length = readlinkat(file->dir, file->name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return str_copy(target, &hold->target, err);
}

static void hold_done(struct hold *hold)
{
    free(hold->project);
    free(hold->target);
}

static int read_hold(int record, const struct operation_info *info, struct hold *hold,
                     struct brig_error *err)
{
    struct operation *operation;
    int status = operation_open(NULL, record, info->id, &operation, err);
    if (status < 0)
        return status;
    const struct step_tree *tree = operation->steps.trees;
    *hold = (struct hold){.id = info->id, .time_ns = info->time_ns, .special = info->special};
    record_jail(record, hold->jail);
    (void)str_fill(hold->path, sizeof hold->path, info->path);
    (void)str_fill(hold->program, sizeof hold->program, info->program);
    hold->place = operation->steps.tree_count > 0 ? tree->place : (struct place){0};
    status = str_copy(operation->steps.tree_count > 0 ? tree->root : "/", &hold->project, err);
    if (status == 0)
        status = each_step(operation, measure, hold, err);
    operation_free(operation);
    if (status < 0)
        hold_done(hold);
    return status;
}

struct listing {
    int record;
    struct hold_list *list;
};

static int list_one(void *context, const struct operation_info *info, struct brig_error *err)
{
    const struct listing *listing = context;
    struct hold_list *list = listing->list;
    if (!operation_is_undecided(info))
        return 0;
    if (!array_grow(&list->items, list->count))
        return brig_fail_nomem(err);
    int status = read_hold(listing->record, info, &list->items[list->count], err);
    list->count += status == 0;
    return status;
}

int holds_list(int record, struct hold_list *list, struct brig_error *err)
{
    struct listing listing = {record, list};
    int status = hold_convert(record, err);
    return status < 0 ? status : operations_each(record, list_one, &listing, err);
}

void hold_list_done(struct hold_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        hold_done(&list->items[i]);
    free(list->items);
    *list = (struct hold_list){0};
}

/* ---- keeping and discarding ---- */

/* Opens the directory that it goes to: that of the project, or `to`. */
static int open_target(const struct hold *hold, const char *to, struct brig_error *err)
{
    int top = to ? open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : place_open(hold->project, &hold->place, err);
    if (top >= 0)
        return top;
    return to ? brig_fail(err, BRIG_E_INVALID, errno, "--to: cannot open the directory '%s'",
                          str_shown(to).text)
              : brig_advise(err, top, "If you have moved the project: brig keep --to DIRECTORY");
}

/* Makes the directories above the name, such as .claude. The name must be free. */
static int make_room(int top, const char *path, struct brig_error *err)
{
    const char *name, *slash = strrchr(path, '/');
    char above[PATH_LENGTH_MAX + 1];
    (void)snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (slash)
        (void)files_make_path(top, above);
    autoclose int parent = open_parent(top, path, &name);
    if (parent < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open the directory of '%s'", path);
    return files_exists(parent, name)
               ? brig_fail(err, BRIG_E_INVALID, 0, "'%s' exists. Move it away first", path)
               : 0;
}

static void keep_report(void *context, const char *root, const char *path, const char *reason)
{
    struct str *reasons = context;
    (void)root;
    if (reasons->length == 0)
        str_concat(reasons, str_shown(path).text, ": ", reason);
}

int hold_keep(int record, const struct hold *hold, const char *to, struct brig_error *err)
{
    autostr struct str reasons = {0};
    uint64_t undone, id;
    autoclose int lock = record_lock(record, err);
    int status = lock < 0 ? lock : operation_check_interrupted(record, err);
    autoclose int top = status < 0 ? status : open_target(hold, to, err);
    if (top < 0)
        return top;
    const struct path_proc target =
        path_proc(top); /* this directory, whatever is at its path by now */
    const struct operation_undo undo = {
        .id = hold->id, .to = target.text, .report = keep_report, .context = &reasons};
    status = make_room(top, hold->path, err);
    if (status == 0)
        status = operation_undo(NULL, record, &undo, &undone, &id, err);
    if (status == 0 && reasons.length > 0)
        status = brig_fail(err, BRIG_E_STATE, 0, "'%s' was not restored completely: %s",
                           str_shown(hold->path).text, reasons.data);
    return status;
}

/* Without the mark it has nothing that could be kept, whatever is left of its files. */
int hold_discard(int record, const struct hold *hold, struct brig_error *err)
{
    autoclose int lock = record_lock(record, err);
    autoclose int operations = lock < 0 ? lock : operations_open(record, err);
    if (operations < 0)
        return operations;
    autoclose int dir = files_open_dir(operations, str_number(hold->id).text);
    if (dir < 0 || unlinkat(dir, OPERATION_READY, 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot discard '%s'",
                         str_shown(hold->path).text);
    return tree_remove(dir, OPERATION_OBJECTS, err);
}
