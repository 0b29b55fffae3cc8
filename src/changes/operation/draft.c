/* SPDX-License-Identifier: MIT */
/* Planning the steps of an apply or a discard. */
#include "changes/operation/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/layer/upper.h"

int draft_begin(struct draft *draft, struct operation *operation, const struct layer *layer,
                const struct apply_options *options, struct brig_error *err)
{
    memset(draft, 0, sizeof *draft);
    draft->operation = operation;
    draft->options = options;
    draft->layer = layer;
    draft->tree = operation ? operation_tree(operation, layer, err) : 0;
    return draft->tree < 0 ? draft->tree : 0;
}

void draft_touch(struct draft *draft)
{
    for (size_t i = 0; i < draft->depth; i++)
        draft->frames[i].any = true;
}

int draft_add(struct draft *draft, struct step *step, struct brig_error *err)
{
    draft_touch(draft);
    return draft->operation ? operation_add(draft->operation, step, err) : 0;
}

struct step draft_step(const struct draft *draft, const struct change *change)
{
    struct step step = {.tree = (uint8_t)draft->tree, .path = change->path, .entry = change->upper};
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

void draft_skip(struct draft *draft)
{
    for (size_t i = 0; i < draft->depth; i++)
        draft->frames[i].complete = false;
}

void draft_tell(const struct draft *draft, const struct change *change, enum apply_choice choice)
{
    if (draft->options->tell)
        draft->options->tell(draft->options->context, change, choice, NULL);
}

int draft_refuse(struct draft *draft, const struct change *change, const char *reason)
{
    draft_skip(draft);
    if (draft->options->tell && reason)
        draft->options->tell(draft->options->context, change, APPLY_SKIP, reason);
    return 0;
}

bool draft_is_opaque(const struct draft *draft)
{
    for (size_t i = 0; i < draft->depth; i++)
        if (draft->frames[i].opaque)
            return true;
    return false;
}

/* ---- frames ---- */

static bool is_covered(const struct draft *draft, const char *path)
{
    const char *const *paths = draft->options->paths;
    for (size_t i = 0; i < draft->options->path_count; i++)
        if (!*paths[i] || path_is_beneath(paths[i], path))
            return true;
    return !paths;
}

/* Finds the directory of a frame on both sides. */
static void look(const struct draft *draft, struct draft_frame *frame)
{
    struct stat info;
    autoclose int lower = step_open_directory(draft->layer->lower, draft->path);
    frame->exists = lower >= 0 && fstat(lower, &info) == 0;
    frame->obstructed = lower < 0 && errno != ENOENT;
    frame->mode = frame->final = frame->exists ? info.st_mode & 07777 : 0;
    autoclose int upper = draft->layer->upper_count > 0
                              ? step_open_directory(draft->layer->uppers[0], draft->path)
                              : -1;
    frame->has_upper = upper >= 0;
    frame->opaque = upper >= 0 ? upper_opaque_marks(draft->layer, upper) : 0;
}

static int push(struct draft *draft, const char *path, size_t length, struct brig_error *err)
{
    if (draft->depth == LAYER_DEPTH_MAX || length > PATH_LENGTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is in too many directories",
                         str_shown(path).text);
    struct draft_frame *frame = &draft->frames[draft->depth++];
    memcpy(draft->path, path, length);
    draft->path[length] = '\0';
    memset(frame, 0, sizeof *frame);
    frame->length = length;
    frame->complete = is_covered(draft, draft->path);
    look(draft, frame);
    return 0;
}

static int set_final_mode(struct draft *draft, const struct draft_frame *frame,
                          struct brig_error *err)
{
    struct step step = {.tree = (uint8_t)draft->tree,
                        .lower = STEP_MODE,
                        .flags = STEP_HELPER,
                        .mode_before = frame->mode,
                        .mode_after = frame->final,
                        .path = draft->path};
    int status = frame->mode != frame->final ? draft_add(draft, &step, err) : 0;
    struct step time = {.tree = (uint8_t)draft->tree,
                        .lower = STEP_TIME,
                        .flags = STEP_HELPER,
                        .other = frame->source,
                        .path = draft->path};
    return status == 0 && frame->created ? draft_add(draft, &time, err) : status;
}

static int clear_opaque(struct draft *draft, const struct draft_frame *frame,
                        struct brig_error *err)
{
    struct step step = {.tree = (uint8_t)draft->tree,
                        .upper = STEP_OPAQUE,
                        .mode_before = frame->opaque,
                        .path = draft->path};
    return frame->opaque && frame->complete && frame->any && draft->rewrites
               ? draft_add(draft, &step, err)
               : 0;
}

static void tell_directory(const struct draft *draft, const struct draft_frame *frame)
{
    const struct change change = {.layer = draft->layer, .kind = frame->kind, .path = draft->path};
    if (!frame->tells || !draft->options->tell)
        return;
    if (frame->complete)
        draft_tell(draft, &change, frame->choice);
    else if (frame->stays)
        draft->options->tell(draft->options->context, &change, APPLY_SKIP, frame->stays);
}

static int leave(struct draft *draft, struct brig_error *err)
{
    struct draft_frame *frame = &draft->frames[draft->depth - 1];
    int status = 0;
    tell_directory(draft, frame);
    bool takes = frame->pending && (frame->complete || !frame->needs_complete);
    if (takes) {
        frame->step.path = draft->path;
        status = draft_add(draft, &frame->step, err);
    } else if (frame->pending) {
        draft_skip(draft);
    }
    bool remains =
        !(takes && frame->step.lower == STEP_SWAP) && !(takes && frame->step.lower == STEP_META);
    if (status == 0 && frame->prepared && remains)
        status = set_final_mode(draft, frame, err);
    if (status == 0)
        status = clear_opaque(draft, frame, err);
    draft->depth--;
    draft->path[draft->depth > 0 ? draft->frames[draft->depth - 1].length : 0] = '\0';
    return status;
}

static bool contains(const struct draft *draft, const char *path)
{
    size_t length = strlen(draft->path);
    return strncmp(draft->path, path, length) == 0 && path[length] == '/';
}

int draft_move(struct draft *draft, const char *path, struct brig_error *err)
{
    int status = 0;
    while (status == 0 && draft->depth > 0 && !contains(draft, path))
        status = leave(draft, err);
    const char *at = path + strlen(draft->path) + (draft->depth > 0);
    for (const char *slash; status == 0 && (slash = strchr(at, '/')); at = slash + 1)
        status = push(draft, path, (size_t)(slash - path), err);
    return status;
}

int draft_finish(struct draft *draft, struct brig_error *err)
{
    int status = 0;
    while (status == 0 && draft->depth > 0)
        status = leave(draft, err);
    return status;
}

int draft_enter(struct draft *draft, const char *path, struct draft_frame **ret_frame,
                struct brig_error *err)
{
    int status = push(draft, path, strlen(path), err);
    if (status == 0)
        *ret_frame = &draft->frames[draft->depth - 1];
    return status;
}

/* ---- preparing directories ---- */

/* Creates a directory that is not a change of its own here: only a file in it was selected. */
static int create_directory(struct draft *draft, struct draft_frame *frame, const char *path,
                            const char **ret_reason, struct brig_error *err)
{
    struct stat info;
    struct step step = {.tree = (uint8_t)draft->tree, .lower = STEP_SWAP, .path = path};
    autoclose int upper = step_open_directory(draft->layer->uppers[0], path);
    if (frame->obstructed || upper < 0 || fstat(upper, &info) < 0) {
        *ret_reason = "its directory does not exist outside; apply that too";
        return 1;
    }
    if (!(info.st_mode & S_ISVTX)) /* nobody was asked whether everybody may write to it */
        info.st_mode &= (mode_t)~S_IWOTH;
    if (info.st_uid == draft->layer->jail_uid)
        info.st_uid = draft->layer->owner;
    if (info.st_gid == draft->layer->jail_gid)
        info.st_gid = draft->layer->owner_gid;
    const struct copy_source source = {
        .dir = upper, .name = ".", .info = &info, .xattrs_dir = -1, .flags = COPY_WRITABLE};
    int status = draft->operation ? operation_stage(draft->operation, &step, &source, err) : 0;
    if (status == 0)
        status = draft_add(draft, &step, err);
    frame->exists = frame->created = true;
    frame->final = info.st_mode & 07777;
    frame->mode = frame->final | S_IRWXU;
    frame->source = ident_of(&info);
    return status;
}

static int make_writable(struct draft *draft, struct draft_frame *frame, const char *path,
                         struct brig_error *err)
{
    struct step step = {.tree = (uint8_t)draft->tree,
                        .lower = STEP_MODE,
                        .flags = STEP_HELPER,
                        .mode_before = frame->mode,
                        .mode_after = frame->mode | S_IRWXU,
                        .path = path};
    if (geteuid() == 0 || (frame->mode & S_IRWXU) == S_IRWXU)
        return 0;
    frame->mode |= S_IRWXU;
    return draft_add(draft, &step, err);
}

int draft_prepare_lower(struct draft *draft, const char **ret_reason, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    for (size_t i = 0; i < draft->depth && status == 0; i++) {
        struct draft_frame *frame = &draft->frames[i];
        if (frame->prepared)
            continue;
        memcpy(path, draft->path, frame->length);
        path[frame->length] = '\0';
        status = frame->exists ? make_writable(draft, frame, path, err)
                               : create_directory(draft, frame, path, ret_reason, err);
        frame->prepared = status == 0;
    }
    return status;
}

int draft_prepare_upper(struct draft *draft, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    for (size_t i = 0; i < draft->depth && status == 0 && draft->rewrites; i++) {
        struct draft_frame *frame = &draft->frames[i];
        if (!frame->has_upper || frame->pruned)
            continue;
        memcpy(path, draft->path, frame->length);
        path[frame->length] = '\0';
        struct step step = {.tree = (uint8_t)draft->tree,
                            .upper = STEP_PRUNE,
                            .flags = frame->force_prune ? STEP_FORCE : 0,
                            .path = path};
        status = draft_add(draft, &step, err);
        frame->pruned = true;
    }
    return status;
}
