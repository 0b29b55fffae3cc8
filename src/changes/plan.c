/* SPDX-License-Identifier: MIT */
/* Planning the steps of an apply or a discard. */
#include "changes/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/change.h"

int plan_begin(struct plan *plan, struct operation *operation, const struct layer *layer,
               struct brig_error *err)
{
    memset(plan, 0, sizeof *plan);
    plan->operation = operation;
    plan->layer = layer;
    plan->tree = operation ? operation_tree(operation, layer, err) : 0;
    return plan->tree < 0 ? plan->tree : 0;
}

int plan_add(struct plan *plan, struct step *step, struct brig_error *err)
{
    for (size_t i = 0; i < plan->depth; i++)
        plan->frames[i].any = true;
    return plan->operation ? operation_add(plan->operation, step, err) : 0;
}

struct step plan_step(const struct plan *plan, const struct change *change)
{
    struct step step = {.tree = (uint8_t)plan->tree, .path = change->path, .entry = change->upper};
    if (change->before.st_mode)
        step.before = ident_of(&change->before);
    if (change->conflict)
        step.flags |= STEP_CONFLICT;
    if (change->has_base) {
        step.flags |= STEP_BASE | (change->base.kind == BASE_SINCE ? STEP_SINCE : 0);
        step.base = change->base.lower;
    }
    if (change->whiteout && change->upper.mode == 0)
        step.flags |= STEP_FUSE_MARK;
    return step;
}

void plan_skip(struct plan *plan)
{
    for (size_t i = 0; i < plan->depth; i++)
        plan->frames[i].complete = false;
}

bool plan_is_opaque(const struct plan *plan)
{
    for (size_t i = 0; i < plan->depth; i++)
        if (plan->frames[i].opaque)
            return true;
    return false;
}

/* ---- frames ---- */

static bool is_covered(const struct plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->path_count; i++)
        if (!*plan->paths[i] || path_is_beneath(plan->paths[i], path))
            return true;
    return !plan->paths;
}

/* Finds the directory of a frame on both sides. */
static void look(const struct plan *plan, struct plan_frame *frame)
{
    struct stat info;
    autoclose int lower = step_open_directory(plan->layer->lower, plan->path);
    frame->exists = lower >= 0 && fstat(lower, &info) == 0;
    frame->obstructed = lower < 0 && errno != ENOENT;
    frame->mode = frame->final = frame->exists ? info.st_mode & 07777 : 0;
    autoclose int upper = plan->layer->upper_count > 0
                              ? step_open_directory(plan->layer->uppers[0], plan->path)
                              : -1;
    frame->has_upper = upper >= 0;
    frame->opaque = upper >= 0 ? step_opaque_marks(upper) : 0;
}

static int push(struct plan *plan, const char *path, size_t length, struct brig_error *err)
{
    if (plan->depth == LAYER_DEPTH_MAX || length > PATH_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is in too many directories",
                         str_shown(path).text);
    struct plan_frame *frame = &plan->frames[plan->depth++];
    memcpy(plan->path, path, length);
    plan->path[length] = '\0';
    memset(frame, 0, sizeof *frame);
    frame->length = length;
    frame->complete = is_covered(plan, plan->path);
    look(plan, frame);
    return 0;
}

static int set_final_mode(struct plan *plan, const struct plan_frame *frame,
                          struct brig_error *err)
{
    struct step step = {.tree = (uint8_t)plan->tree,
                        .lower = STEP_MODE,
                        .flags = STEP_HELPER | (frame->created ? STEP_TIMES : 0),
                        .mode_before = frame->mode,
                        .mode_after = frame->final,
                        .mtime_ns = frame->mtime_ns,
                        .path = plan->path};
    return frame->created || frame->mode != frame->final ? plan_add(plan, &step, err) : 0;
}

static int clear_opaque(struct plan *plan, const struct plan_frame *frame, struct brig_error *err)
{
    struct step step = {.tree = (uint8_t)plan->tree,
                        .upper = STEP_OPAQUE,
                        .mode_before = frame->opaque,
                        .path = plan->path};
    return frame->opaque && frame->complete && frame->any && plan->rewrites
               ? plan_add(plan, &step, err)
               : 0;
}

static int leave(struct plan *plan, struct brig_error *err)
{
    struct plan_frame *frame = &plan->frames[plan->depth - 1];
    int status = 0;
    bool takes = frame->pending && (frame->complete || !frame->needs_complete);
    if (takes) {
        frame->step.path = plan->path;
        status = plan_add(plan, &frame->step, err);
    } else if (frame->pending) {
        plan_skip(plan);
    }
    bool remains = !(takes && frame->step.lower == STEP_SWAP) &&
                   !(takes && frame->step.lower == STEP_META);
    if (status == 0 && frame->prepared && remains)
        status = set_final_mode(plan, frame, err);
    if (status == 0)
        status = clear_opaque(plan, frame, err);
    plan->depth--;
    plan->path[plan->depth > 0 ? plan->frames[plan->depth - 1].length : 0] = '\0';
    return status;
}

static bool contains(const struct plan *plan, const char *path)
{
    size_t length = strlen(plan->path);
    return strncmp(plan->path, path, length) == 0 && path[length] == '/';
}

int plan_move(struct plan *plan, const char *path, struct brig_error *err)
{
    int status = 0;
    while (status == 0 && plan->depth > 0 && !contains(plan, path))
        status = leave(plan, err);
    const char *at = path + strlen(plan->path) + (plan->depth > 0);
    for (const char *slash; status == 0 && (slash = strchr(at, '/')); at = slash + 1)
        status = push(plan, path, (size_t)(slash - path), err);
    return status;
}

int plan_finish(struct plan *plan, struct brig_error *err)
{
    int status = 0;
    while (status == 0 && plan->depth > 0)
        status = leave(plan, err);
    return status;
}

int plan_enter(struct plan *plan, const char *path, struct plan_frame **ret_frame,
               struct brig_error *err)
{
    int status = push(plan, path, strlen(path), err);
    if (status == 0)
        *ret_frame = &plan->frames[plan->depth - 1];
    return status;
}

/* ---- preparing directories ---- */

/* Creates a directory that is not a change of its own here: only a file in it was selected. */
static int create_directory(struct plan *plan, struct plan_frame *frame, const char *path,
                            const char **ret_reason, struct brig_error *err)
{
    struct stat info;
    struct step step = {.tree = (uint8_t)plan->tree, .lower = STEP_SWAP, .path = path};
    autoclose int upper = step_open_directory(plan->layer->uppers[0], path);
    if (frame->obstructed || upper < 0 || fstat(upper, &info) < 0) {
        *ret_reason = "its directory does not exist outside; apply that too";
        return 1;
    }
    if (info.st_uid == plan->layer->jail_uid)
        info.st_uid = plan->layer->owner;
    if (info.st_gid == plan->layer->jail_gid)
        info.st_gid = plan->layer->owner_gid;
    const struct copy_source source = {
        .dir = upper, .name = ".", .info = &info, .xattrs_dir = -1, .flags = COPY_WRITABLE};
    int status =
        plan->operation ? operation_stage(plan->operation, &step, &source, err) : 0;
    if (status == 0)
        status = plan_add(plan, &step, err);
    frame->exists = frame->created = true;
    frame->final = info.st_mode & 07777;
    frame->mode = frame->final | S_IRWXU;
    frame->mtime_ns = ident_of(&info).mtime_ns;
    return status;
}

static int make_writable(struct plan *plan, struct plan_frame *frame, const char *path,
                         struct brig_error *err)
{
    struct step step = {.tree = (uint8_t)plan->tree,
                        .lower = STEP_MODE,
                        .flags = STEP_HELPER,
                        .mode_before = frame->mode,
                        .mode_after = frame->mode | S_IRWXU,
                        .path = path};
    if (geteuid() == 0 || (frame->mode & S_IRWXU) == S_IRWXU)
        return 0;
    frame->mode |= S_IRWXU;
    return plan_add(plan, &step, err);
}

int plan_prepare_lower(struct plan *plan, const char **ret_reason, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    for (size_t i = 0; i < plan->depth && status == 0; i++) {
        struct plan_frame *frame = &plan->frames[i];
        if (frame->prepared)
            continue;
        memcpy(path, plan->path, frame->length);
        path[frame->length] = '\0';
        status = frame->exists ? make_writable(plan, frame, path, err)
                               : create_directory(plan, frame, path, ret_reason, err);
        frame->prepared = status == 0;
    }
    return status;
}

int plan_prepare_upper(struct plan *plan, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    for (size_t i = 0; i < plan->depth && status == 0 && plan->rewrites; i++) {
        struct plan_frame *frame = &plan->frames[i];
        if (!frame->has_upper || frame->pruned)
            continue;
        memcpy(path, plan->path, frame->length);
        path[frame->length] = '\0';
        struct step step = {.tree = (uint8_t)plan->tree,
                            .upper = STEP_PRUNE,
                            .flags = frame->force_prune ? STEP_FORCE : 0,
                            .path = path};
        status = plan_add(plan, &step, err);
        frame->pruned = true;
    }
    return status;
}
