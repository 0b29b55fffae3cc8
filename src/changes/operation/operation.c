/* SPDX-License-Identifier: MIT */
/* Making an operation: its new objects, its journal, and taking its steps. */
#include "changes/operation/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation_files.h"
#include "git/moved.h"
#include "git/take.h"

#define BUFFER_BYTES 65536
#define TREES_MAX 255

uint64_t operation_id(const struct operation *operation)
{
    return operation->info.id;
}

uint64_t operation_count(const struct operation *operation)
{
    return operation->count;
}

bool operation_moves_git(const struct operation *operation)
{
    return operation->info.git == OPERATION_LISTED;
}

/* ---- beginning and end ---- */

struct leftovers {
    const struct layers *layers;
    int record, operations;
};

/* Removes the objects of an operation that was not run. Those of an undo belong to another operation, and go back. */
static int release_remote(struct operation *operation)
{
    int status = 0;
    if (operation->info.objects == operation->info.id) {
        operation_drop_remote(operation);
        return 0;
    }
    for (size_t i = 0; i < operation->steps.tree_count && status == 0; i++)
        status = operation_open_remote(operation, &operation->steps.trees[i], false, NULL);
    return status < 0 ? status : operation_import(operation, NULL);
}

/* Removes operations that were killed before their first step. */
static int remove_leftover(void *context, const struct operation_info *info, struct brig_error *err)
{
    const struct leftovers *left = context;
    struct operation *operation;
    (void)err;
    if (info->has_steps || info->end_ns)
        return 0;
    if (operation_open(left->layers, left->record, info->id, &operation, NULL) == 0) {
        int status = release_remote(operation);
        operation_free(operation);
        if (status < 0)
            return 0;
    }
    (void)tree_remove(left->operations, str_number(info->id).text, NULL);
    return 0;
}

static int make_directory(struct operation *operation, int operations, struct brig_error *err)
{
    do {
        operation->info.id++;
        if (mkdirat(operations, str_number(operation->info.id).text, 0700) == 0)
            break;
    } while (errno == EEXIST);
    operation->info.objects = operation->info.id;
    operation->dir = files_open_dir(operations, str_number(operation->info.id).text);
    if (operation->dir < 0 || mkdirat(operation->dir, OPERATION_OBJECTS, 0700) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot begin an operation");
    operation->steps.objects = files_open_dir(operation->dir, OPERATION_OBJECTS);
    /* New objects must not inherit an ACL of the storage directory. */
    (void)fremovexattr(operation->steps.objects, "system.posix_acl_default");
    int fd = openat(operation->dir, JOURNAL_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    operation->journal = fd < 0 ? NULL : fdopen(fd, "we");
    if (fd >= 0 && !operation->journal)
        (void)close(fd);
    if (!operation->journal || operation->steps.objects < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot begin an operation");
    (void)setvbuf(operation->journal, NULL, _IOFBF, BUFFER_BYTES);
    return 0;
}

int operation_check_interrupted(int record, struct brig_error *err)
{
    uint64_t interrupted = operation_interrupted(record);
    const struct jails_option jail = record_option(record);
    return interrupted ? brig_fail(err, BRIG_E_STATE, 0,
                                   "operation %ju was interrupted. Complete it with brig apply%s "
                                   "--continue, or revert it with brig apply%s --abort",
                                   (uintmax_t)interrupted, jail.text, jail.text)
                       : 0;
}

int operation_begin(const struct layers *layers, int record, const char *kind,
                    struct operation **ret_operation, struct brig_error *err)
{
    int status = operation_check_interrupted(record, err);
    if (status < 0)
        return status;
    autoclose int operations = operations_open(record, err);
    struct operation *operation = operation_new(layers, record);
    status = !operation ? brig_fail_nomem(err) : operations < 0 ? operations : 0;
    if (status == 0) {
        struct leftovers left = {layers, record, operations};
        (void)operations_each(record, remove_leftover, &left, NULL);
        operation->info.id = operations_last(operations);
        (void)str_fill(operation->info.kind, sizeof operation->info.kind, kind);
        operation->info.time_ns = clock_wall_ns();
        operation->steps.sync = true;
        status = make_directory(operation, operations, err);
    }
    if (status < 0)
        operation_free(operation);
    else
        *ret_operation = operation;
    return status;
}

static void remove_unused(struct operation *operation)
{
    autoclose int operations = operations_open(operation->record, NULL);
    if (release_remote(operation) == 0 && operations >= 0)
        (void)tree_remove(operations, str_number(operation->info.id).text, NULL);
}

void operation_free(struct operation *operation)
{
    if (!operation)
        return;
    if (operation->journal) { /* it was never run */
        (void)fclose(operation->journal);
        if (!operation->ready)
            remove_unused(operation);
    }
    git_taking_end(operation->taking);
    step_done(&operation->steps);
    tdestroy(take_ptr(&operation->timed), free);
    for (size_t i = 0; i < operation->steps.tree_count; i++) {
        struct step_tree *tree = &operation->steps.trees[i];
        if (tree->owns_lower)
            close_fd(&tree->lower);
        close_fd(&tree->remote);
    }
    free(operation->steps.trees);
    close_fd(&operation->steps.objects);
    close_fd(&operation->dir);
    operation_info_done(&operation->info);
    free(operation);
}

void operation_describe(struct operation *operation, const char *text)
{
    (void)str_fill(operation->info.text, sizeof operation->info.text, text);
}

void operation_is_part(struct operation *operation, const char *run)
{
    (void)str_fill(operation->info.run, sizeof operation->info.run, run ? run : "");
}

/* ---- layers ---- */

int operation_tree(struct operation *operation, const struct layer *layer, struct brig_error *err)
{
    struct step_context *steps = &operation->steps;
    for (size_t i = 0; i < steps->tree_count; i++)
        if (steps->trees[i].layer == layer)
            return (int)i;
    if (layer->lower < 0)
        return brig_fail(err, BRIG_E_STATE, 0, "'%s' does not exist any more",
                         str_shown(layer->root).text);
    struct step_tree *tree = steps->tree_count == TREES_MAX
                                 ? NULL
                                 : operation_add_tree(operation, layer, layer->name, layer->root);
    if (!tree)
        return brig_fail_nomem(err);
    int status = place_of(tree->lower, &tree->place, err);
    if (status < 0)
        return status;
    /* The roots are known before a directory for objects is made in one of them. A discard moves
     * nothing of the user's, who may not be able to write there any more. */
    status = operation_write_info(operation, err);
    if (status == 0 && strcmp(operation->info.kind, OPERATION_DISCARD) != 0)
        status = operation_open_remote(operation, tree, true, err);
    return status < 0 ? status : (int)steps->tree_count - 1;
}

/* ---- objects ---- */

int operation_stage(struct operation *operation, struct step *step,
                    const struct copy_source *source, struct brig_error *err)
{
    char name[STEP_NAME_MAX];
    struct stat info;
    struct copy_source durable = *source;
    const struct step_tree *tree = &operation->steps.trees[step->tree];
    if (operation->staged < OPERATION_SYNC_MAX)
        durable.flags |= COPY_SYNC;
    step->number = operation->next++;
    step_object_name(name, step->number, "");
    int status = copy_object(&durable, step_objects(&operation->steps, tree), name, &info, err);
    if (status < 0)
        return status;
    operation->staged++;
    step->other = ident_of(&info);
    return 0;
}

int operation_stage_link(struct operation *operation, struct step *step, uint32_t number,
                         struct brig_error *err)
{
    char from[STEP_NAME_MAX], to[STEP_NAME_MAX];
    struct stat info;
    int objects = step_objects(&operation->steps, &operation->steps.trees[step->tree]);
    step->number = operation->next++;
    step_object_name(from, number, "");
    step_object_name(to, step->number, "");
    if (linkat(objects, from, objects, to, 0) < 0 ||
        fstatat(objects, to, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a hard link");
    operation->staged++;
    step->other = ident_of(&info);
    return 0;
}

int operation_staged(const struct operation *operation, const struct step *step,
                     char ret_name[static STEP_NAME_MAX])
{
    step_object_name(ret_name, step->number, "");
    return step_objects(&operation->steps, &operation->steps.trees[step->tree]);
}

void operation_unstage(struct operation *operation, const struct step *step)
{
    char name[STEP_NAME_MAX];
    int objects = operation_staged(operation, step, name);
    (void)unlinkat(objects, name, 0);
}

int operation_stage_meta(struct operation *operation, struct step *step,
                         const struct copy_source *from, const struct copy_source *to,
                         struct brig_error *err)
{
    char name[STEP_NAME_MAX];
    step->number = operation->next++;
    step_object_name(name, step->number, "");
    int status = copy_object(from, operation->steps.objects, name, NULL, err);
    step_object_name(name, step->number, STEP_OLD);
    return status < 0 ? status : copy_object(to, operation->steps.objects, name, NULL, err);
}

/* ---- steps ---- */

static int compare_directories(const void *left, const void *right)
{
    return strcmp(left, right); /* the number of the tree, a slash, the path */
}

/* A step in the user's files changes the time of the directory that contains it: remembers that once. */
static int remember_time(struct operation *operation, const struct step *changing,
                         struct brig_error *err)
{
    struct step step = {.tree = changing->tree, .lower = STEP_TIME, .flags = STEP_HELPER};
    const char *slash = strrchr(changing->path, '/');
    int length = slash ? (int)(slash - changing->path) : 0;
    struct stat info;
    char *key = NULL;
    if (changing->lower != STEP_SWAP || operation->info.undoes)
        return 0;
    if (asprintf(&key, "%u/%.*s", changing->tree, length, changing->path) < 0)
        return brig_fail_nomem(err);
    char **found = tsearch(key, &operation->timed, compare_directories);
    if (!found || *found != key)
        free(key);
    if (!found || *found != key)
        return found ? 0 : brig_fail_nomem(err);
    step.path = strchr(key, '/') + 1;
    autoclose int fd = step_open_directory(operation->steps.trees[step.tree].lower, step.path);
    if (fd < 0 || fstat(fd, &info) < 0)
        return 0; /* it is new */
    step.before = ident_of(&info);
    return journal_write(operation->journal, &step, err);
}

/* A file that is replaced on another filesystem is copied into the operation in the end. */
static void examine_replaced(struct operation *operation, struct step *step)
{
    struct stat now;
    step->flags &= ~(uint32_t)STEP_LINKED;
    if (operation->steps.trees[step->tree].remote < 0 || !step->before.mode ||
        !step_state(&operation->steps, step, &step->before, &now))
        return;
    operation->replaced_bytes += operation_space_of(&now);
    if (S_ISREG(now.st_mode) && now.st_nlink > 1)
        step->flags |= STEP_LINKED;
}

int operation_add(struct operation *operation, struct step *step, struct brig_error *err)
{
    int status = remember_time(operation, step, err);
    if (status < 0)
        return status;
    if (step->lower == STEP_SWAP)
        examine_replaced(operation, step);
    bool has_object = (step->lower == STEP_SWAP && step->other.mode) || step->lower == STEP_META ||
                      step->upper == STEP_UPPER_META;
    if (!has_object && operation->info.objects == operation->info.id)
        step->number = operation->next++;
    if (!(step->flags & STEP_HELPER) && step->upper != STEP_PRUNE && step->upper != STEP_OPAQUE)
        operation->count++;
    if ((step->flags & (STEP_APPLIED | STEP_REVERSED)) == STEP_APPLIED)
        operation->info.live = true;
    return journal_write(operation->journal, step, err);
}

int operation_put(struct operation *operation, const struct layer *layer, const char *path,
                  const struct stat *before, const struct copy_source *source,
                  struct brig_error *err)
{
    int tree = operation_tree(operation, layer, err);
    if (tree < 0)
        return tree;
    struct step step = {.tree = (uint8_t)tree, .lower = STEP_SWAP, .path = path};
    if (before->st_mode)
        step.before = ident_of(before);
    int status = source ? operation_stage(operation, &step, source, err) : 0;
    return status < 0 ? status : operation_add(operation, &step, err);
}

/* ---- taking the steps ---- */

static int sync_filesystem(int dir)
{
    autoclose int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && syncfs(fd) == 0 ? 0 : -errno;
}

int operation_make_durable(struct operation *operation, struct brig_error *err)
{
    bool many = operation->staged > OPERATION_SYNC_MAX;
    int result =
        fflush(operation->journal) == 0 && fsync(fileno(operation->journal)) == 0 ? 0 : -errno;
    if (result == 0)
        result = many                                  ? sync_filesystem(operation->steps.objects)
                 : fsync(operation->steps.objects) < 0 ? -errno
                                                       : 0;
    for (size_t i = 0; i < operation->steps.tree_count && result == 0; i++)
        if (operation->steps.trees[i].remote >= 0)
            result = sync_filesystem(operation->steps.trees[i].remote);
    if (result == 0 && operation_has_git(operation)) /* copies of the index */
        result = sync_filesystem(operation->dir);
    return result < 0 ? brig_fail(err, BRIG_E_SYSTEM, -result, "cannot write the journal") : 0;
}

/* There fsync() keeps a directory without what was done elsewhere before: a power loss would leave some of the later steps. */
static bool has_btrfs(const struct operation *operation)
{
    struct statfs system;
    for (size_t i = 0; i < operation->steps.tree_count; i++)
        if (fstatfs(operation->steps.trees[i].lower, &system) < 0 ||
            system.f_type == BTRFS_SUPER_MAGIC)
            return true;
    return false;
}

/* What the log says. */
static void sum_up(struct operation *operation)
{
    struct operation_info *info = &operation->info;
    autostr struct str moved = {0};
    bool steps = operation->next > 0 || operation->count > 0;
    info->changes = operation->count;
    info->files = steps ? OPERATION_LISTED : OPERATION_NONE;
    if (operation_has_git(operation) && moved_read(operation->dir, &moved, NULL) > 0) {
        info->git = OPERATION_LISTED;
        (void)str_fill(info->did, sizeof info->did, moved.data ? moved.data : "");
    }
}

int operation_run(struct operation *operation, operation_report report, void *context,
                  struct brig_error *err)
{
    if (operation->next == 0 && operation->count == 0 && !operation_has_git(operation))
        return 0;
    step_done(&operation->steps);
    int status = operation_reserve(operation, err);
    if (status == 0)
        status = operation_make_durable(operation, err);
    sum_up(operation);
    if (status == 0)
        status = operation_write_info(operation, err);
    if (status == 0)
        status = operation_mark(operation->dir, OPERATION_READY, NULL, err);
    if (status < 0)
        return status;
    status = operation_git_begin(operation, false, err);
    if (status < 0) { /* nothing has moved */
        (void)unlinkat(operation->dir, OPERATION_READY, 0);
        return status;
    }
    operation->ready = true;
    operation->steps.sync = operation->count <= OPERATION_SYNC_MAX && !has_btrfs(operation);
    status = operation_take(operation, false, report, context, err);
    const struct jails_option jail = record_option(operation->record);
    return status < 0 ? brig_advise(err, status,
                                    "Nothing is lost: continue with brig apply%s --continue, or "
                                    "revert with brig apply%s --abort",
                                    jail.text, jail.text)
                      : status;
}
