/* SPDX-License-Identifier: MIT */
/* Taking the steps of an operation, or taking them back, from whatever state it is in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/layer/layer.h"
#include "changes/layer/touched.h"
#include "changes/operation/operation_files.h"

/* Records of a base that are changed at a time: it is rewritten for each batch. */
#define BATCH ((size_t)1 << 17)

/* ---- the records of the bases ---- */

struct batch {
    struct base_change *items;
    size_t count;
};

static void batch_clear(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        free(batch->items[i].path);
    batch->count = 0;
}

static int batch_write(struct batch *batch, const struct layer *layer, const struct base_kept *kept,
                       struct brig_error *err)
{
    int status = 0;
    if (batch->count > 0) {
        base_sort(batch->items, batch->count);
        status = base_update(layer, batch->items, batch->count, kept, err);
    }
    batch_clear(batch);
    return status;
}

/* What the layer is based on after an entry was restored. */
static bool restore_base(struct step_context *context, const struct step *step,
                         struct base_change *change)
{
    struct stat now;
    bool own = step->lower == STEP_LOWER_NONE || (step->flags & STEP_CONFLICT);
    bool stays = step->upper == STEP_DROP && step_has_entry(context, step);
    if (step->upper == STEP_PRUNE || (own && !stays)) {
        if (own && (step->flags & STEP_BASE))
            change->record =
                (struct base_record){.path = step->path,
                                     .kind = step->flags & STEP_SINCE ? BASE_SINCE : BASE_FILE,
                                     .lower = step->base};
        return true;
    }
    change->how = stays ? BASE_SET : BASE_PUT_BACK_AS;
    (void)step_state(context, step, &step->before, &now);
    if (now.st_mode)
        change->record.lower = ident_of(&now);
    return !own;
}

/* Whether a step gives a directory other metadata, while its entry may stay. */
static bool is_directory_meta(const struct step *step)
{
    return step->upper == STEP_UPPER_NONE && !(step->flags & STEP_HELPER) &&
           (step->lower == STEP_META || step->lower == STEP_MODE);
}

/* Determines the record of a step's path; false if it does not change. */
static bool find_base_change(struct step_context *context, const struct step *step, bool restored,
                             struct base_change *change)
{
    struct stat now;
    bool goes = step->upper == STEP_DROP || step->upper == STEP_PRUNE;
    bool stays = (step->flags & (STEP_APPLIED | STEP_REBASE)) || is_directory_meta(step);
    *change = (struct base_change){.how = BASE_PUT_BACK, .record = {.kind = BASE_FILE}};
    /* A file that comes back has a new time of change, also without an entry of its own, such as one in a deleted
     * directory. */
    if (restored)
        return (goes || stays || step->lower == STEP_SWAP) && restore_base(context, step, change);
    change->how = goes && !stays ? BASE_FORGET : BASE_SET;
    if (!stays)
        return goes && step_has_entry(context, step);
    (void)step_state(context, step, &step->other, &now);
    if (now.st_mode)
        change->record.lower = ident_of(&now);
    if (step->flags & STEP_APPLIED)
        change->record.applied = step->entry;
    return step_is_taken(context, step);
}

static int update_tree(struct operation *operation, size_t tree, bool revert, struct batch *batch,
                       const struct base_kept *kept, struct brig_error *err)
{
    const struct layer *layer = operation->steps.trees[tree].layer;
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    int status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        bool restored = revert != (bool)(step.flags & STEP_REVERSED);
        struct base_change *change = &batch->items[batch->count];
        status = 0;
        if (step.tree != tree || !find_base_change(&operation->steps, &step, restored, change))
            continue;
        change->path = strdup(step.path);
        if (!change->path)
            return brig_fail_nomem(err);
        if (++batch->count == BATCH)
            status = batch_write(batch, layer, kept, err);
    }
    return status < 0 ? status : batch_write(batch, layer, kept, err);
}

/* Whether the steps of an operation undo those of another one; all are alike. */
static int is_reversed(const struct operation *operation, bool *ret_reversed,
                       struct brig_error *err)
{
    autojournal struct journal journal = {.fd = -1};
    struct step step = {0};
    int status = journal_open(operation->dir, false, &journal, err);
    if (status == 0)
        status = journal_next(&journal, &step, err);
    *ret_reversed = step.flags & STEP_REVERSED;
    return status < 0 ? status : 0;
}

/* An operation keeps the records that it removes; one that undoes it finds them there, and so does its own revert. */
static int update_bases(struct operation *operation, bool revert, struct brig_error *err)
{
    struct batch batch = {.items = calloc(BATCH, sizeof *batch.items)};
    bool reversed = false;
    int status = batch.items ? is_reversed(operation, &reversed, err) : brig_fail_nomem(err);
    autoclose int operations = operations_open(operation->record, NULL);
    autoclose int undone =
        operations < 0 ? -1 : files_open_dir(operations, str_number(operation->info.undoes).text);
    for (size_t i = 0; i < operation->steps.tree_count && status == 0; i++) {
        char name[MANIFEST_NAME_MAX];
        const struct base_kept kept = {.dir = reversed && !revert ? undone : operation->dir,
                                       .name = name,
                                       .put_back = reversed != revert};
        (void)snprintf(name, sizeof name, "%zu" OPERATION_BASE, i);
        if (operation->steps.trees[i].layer && operation->steps.trees[i].upper >= 0)
            status = update_tree(operation, i, revert, &batch, &kept, err);
    }
    batch_clear(&batch);
    free(batch.items);
    return status;
}

/* ---- taking ---- */

struct taking {
    struct operation *operation;
    bool revert;
    operation_report report;
    void *context;
    uint64_t skipped;
};

static void report_step(struct taking *taking, const struct step *step, const char *reason)
{
    if (step->flags & STEP_HELPER)
        return;
    taking->skipped++;
    if (taking->report)
        taking->report(taking->context, taking->operation->steps.trees[step->tree].root, step->path,
                       reason);
}

/* A directory was made writable to delete it, but stays: restores its mode. */
static void restore_mode(struct step_context *context, const struct step *step)
{
    struct step mode = *step;
    const char *reason;
    if (step->lower != STEP_SWAP || !S_ISDIR(step->before.mode) || step->other.mode ||
        (step->before.mode & S_IRWXU) == S_IRWXU)
        return;
    mode.lower = STEP_MODE;
    mode.flags = STEP_HELPER;
    mode.mode_after = step->before.mode & 07777;
    mode.mode_before = mode.mode_after | S_IRWXU;
    (void)step_take_lower(context, &mode, &reason, NULL);
}

static int take_lower(struct taking *taking, const struct step *step, struct brig_error *err)
{
    const char *reason = NULL;
    int status = step_take_lower(&taking->operation->steps, step, &reason, err);
    if (status > 0) {
        report_step(taking, step, reason);
        restore_mode(&taking->operation->steps, step);
    }
    return status < 0 ? status : 0;
}

static int take_upper(struct taking *taking, const struct step *step, struct brig_error *err)
{
    const char *reason = NULL;
    int status = step_take_upper(&taking->operation->steps, step, &reason, err);
    if (status > 0 && reason)
        report_step(taking, step, reason);
    return status < 0 ? status : 0;
}

/* Goes through the journal in one direction. */
static int take_all(struct taking *taking, bool backwards,
                    int (*take)(struct taking *, const struct step *, struct brig_error *),
                    struct brig_error *err)
{
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    int status = journal_open(taking->operation->dir, backwards, &journal, err);
    while (status == 0 && (status = backwards ? journal_previous(&journal, &step, err)
                                              : journal_next(&journal, &step, err)) > 0) {
        if (taking->revert)
            step_invert(&step);
        status = take(taking, &step, err);
    }
    step_done(&taking->operation->steps);
    return status;
}

static int take_time(struct taking *taking, const struct step *step, struct brig_error *err)
{
    (void)err;
    step_set_time(&taking->operation->steps, step);
    return 0;
}

/* Makes renamed files durable. Few were made durable with their directories. */
static int sync_trees(const struct operation *operation, struct brig_error *err)
{
    for (size_t i = 0; i < operation->steps.tree_count && !operation->steps.sync; i++)
        if (syncfs(operation->steps.trees[i].lower) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to '%s'",
                             str_shown(operation->steps.trees[i].root).text);
    return 0;
}

/* Marks an operation as undone by another, or with 0 as not undone. */
static int set_undone(int operations, uint64_t id, uint64_t by, struct brig_error *err)
{
    autoclose int dir = files_open_dir(operations, str_number(id).text);
    if (dir < 0)
        return 0; /* removed by brig gc */
    if (by)
        return operation_mark(dir, OPERATION_UNDONE, str_number(by).text, err);
    (void)unlinkat(dir, OPERATION_UNDONE, 0);
    return 0;
}

/* Marks the operation that was undone, and the one that is thereby in force again. After a revert it is the other way
 * round. */
static int mark_undone(const struct taking *taking, struct brig_error *err)
{
    const struct operation_info *info = &taking->operation->info;
    struct operation_info other = {0};
    autoclose int operations = operations_open(taking->operation->record, err);
    if (operations < 0)
        return operations;
    if (info->undoes == 0 || !info->whole ||
        operation_read_info(operations, info->undoes, &other, NULL, NULL) < 0)
        return 0;
    int status = taking->skipped > 0 && !taking->revert
                     ? 0
                     : set_undone(operations, info->undoes, taking->revert ? 0 : info->id, err);
    if (status == 0 && other.undoes)
        status = set_undone(operations, other.undoes, taking->revert ? info->undoes : 0, err);
    operation_info_done(&other);
    return status;
}

/* After a revert nothing is left of the operation, unless a step could not be reverted. */
static int finish(struct taking *taking, struct brig_error *err)
{
    struct operation *operation = taking->operation;
    autoclose int operations = operations_open(operation->record, err);
    int status = operations < 0 ? operations : mark_undone(taking, err);
    if (status < 0)
        return status;
    if (taking->revert && taking->skipped == 0)
        return tree_remove(operations, str_number(operation->info.id).text, err);
    operation->info.end_ns = clock_wall_ns();
    operation->info.skipped = taking->skipped;
    if (operation->info.changes >= taking->skipped)
        operation->info.changes -= taking->skipped;
    if (taking->revert)
        (void)str_fill(operation->info.text, sizeof operation->info.text,
                       "reverted, except files that had changed");
    status = operation_write_info(operation, err);
    return status < 0 ? status : operation_mark(operation->dir, OPERATION_DONE, NULL, err);
}

/* ---- times of change ---- */

/* What an undo has copied: nothing; all objects, which were on another filesystem; what it puts there, from a checkpoint. */
enum touch_how { TOUCH_RENAMED, TOUCH_MOVED, TOUCH_RESTORED };

struct touching {
    struct touched_entry *items;
    size_t count;
};

/* Adds a file of a step, by its inode: it is the one that was there before, or the one that was put there. */
static int touch(struct touching *touching, const struct step *step, const struct stat *now,
                 enum touch_how how, struct brig_error *err)
{
    bool is_other = step->other.mode && step->other.inode == now->st_ino;
    const struct ident *known = is_other                            ? &step->other
                                : step->before.inode == now->st_ino ? &step->before
                                                                    : NULL;
    bool copied = how == TOUCH_MOVED || (how == TOUCH_RESTORED && is_other);
    if (!now->st_mode || (S_ISDIR(now->st_mode) && !copied) || !known)
        return 0;
    if (!array_grow(&touching->items, touching->count))
        return brig_fail_nomem(err);
    touching->items[touching->count++] =
        (struct touched_entry){.inode = now->st_ino,
                               .from_ns = copied ? 0 : known->ctime_ns,
                               .to_ns = ident_of(now).ctime_ns};
    return 0;
}

/* The files at the path of a step and among its objects. */
static int touch_step(struct touching *touching, struct operation *operation,
                      const struct step *step, struct brig_error *err)
{
    static const char *const ends[] = {"", STEP_OLD};
    struct step_context *steps = &operation->steps;
    const struct step_tree *tree = &steps->trees[step->tree];
    enum touch_how how = TOUCH_RENAMED;
    if (operation->info.undoes && !(step->flags & STEP_REVERSED))
        how = TOUCH_RESTORED;
    if (operation->info.undoes && tree->remote >= 0)
        how = TOUCH_MOVED;
    struct stat now;
    if (step->lower != STEP_SWAP && step->lower != STEP_MODE)
        return 0;
    (void)step_state(steps, step, &step->other, &now);
    int status = touch(touching, step, &now, how, err);
    for (size_t i = 0; i < ARRAY_LENGTH(ends) && status == 0 && step->lower == STEP_SWAP; i++) {
        char name[STEP_NAME_MAX];
        step_object_name(name, step->number, ends[i]);
        if (fstatat(step_objects(steps, tree), name, &now, AT_SYMLINK_NOFOLLOW) == 0)
            status = touch(touching, step, &now, how, err);
    }
    return status;
}

/* Records the times of change that the operation has caused. */
static int record_touched(struct operation *operation, bool revert, struct brig_error *err)
{
    struct touching touching = {0};
    autojournal struct journal journal = {.fd = -1};
    struct step step;
    int status = journal_open(operation->dir, false, &journal, err);
    while (status == 0 && (status = journal_next(&journal, &step, err)) > 0) {
        if (revert)
            step_invert(&step);
        status = touch_step(&touching, operation, &step, err);
    }
    step_done(&operation->steps);
    if (status == 0)
        status = touched_add(operation->record, touching.items, touching.count, err);
    free(touching.items);
    return status;
}

int operation_take(struct operation *operation, bool revert, operation_report report, void *context,
                   struct brig_error *err)
{
    struct taking taking = {operation, revert, report, context, 0};
    int status = operation_git_begin(operation, revert, err);
    taking.skipped += status > 0;
    if (status >= 0)
        status = take_all(&taking, revert, take_lower, err);
    if (status == 0)
        status = step_begin(&operation->steps, err);
    if (status == 0)
        status = sync_trees(operation, err);
    if (status == 0)
        status = take_all(&taking, !revert, take_upper, err);
    if (status == 0)
        status = update_bases(operation, revert, err);
    if (status == 0)
        status = record_touched(operation, revert, err);
    /* Nothing is left of an operation that was reverted, but for an undo, which has the objects of another one. */
    bool is_gone = revert && taking.skipped == 0 && operation->info.objects == operation->info.id;
    if (status == 0 && !is_gone)
        status = operation_import(operation, err);
    if (status == 0)
        status = take_all(&taking, revert, take_time, err);
    if (status == 0)
        status = operation_git_move(operation, revert, taking.skipped > 0, err);
    if (status == 0 && is_gone)
        operation_drop_remote(operation);
    return status < 0 ? status : finish(&taking, err);
}

int operation_recover(const struct layers *layers, int record, const struct operation_git *git,
                      bool revert, operation_report report, void *context, uint64_t *ret_id,
                      struct brig_error *err)
{
    struct operation *operation;
    uint64_t id = operation_interrupted(record);
    *ret_id = id;
    if (id == 0)
        return 0;
    int status = operation_open(layers, record, id, &operation, err);
    if (status < 0)
        return status;
    if (git)
        (void)operation_use_git(operation, git);
    status = operation_check_roots(operation, false, err);
    for (size_t i = 0; i < operation->steps.tree_count && status == 0; i++)
        status = operation_open_remote(operation, &operation->steps.trees[i], false, err);
    if (status == 0)
        status = operation_export(operation, err);
    if (status == 0 && revert)
        operation_unreserve(operation);
    if (status == 0)
        status = operation_take(operation, revert, report, context, err);
    operation_free(operation);
    return status;
}
