/* SPDX-License-Identifier: MIT */
/* Discarding changes: their entries are moved from the upper directory into the operation. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "changes/layer/change.h"
#include "changes/operation/apply.h"
#include "changes/operation/draft.h"

/* In a replaced directory, the user's file only appears again when the whole directory is discarded. */
static bool needs_whole(const struct draft *draft, const struct change *change)
{
    bool whole = true;
    for (size_t i = 0; i < draft->depth; i++)
        whole = whole && (!draft->frames[i].opaque || draft->frames[i].complete);
    return change->before.st_mode && draft_is_opaque(draft) && !whole;
}

static int drop(struct draft *draft, const struct change *change, struct brig_error *err)
{
    struct step step = draft_step(draft, change);
    step.before = (struct ident){0};
    step.upper = STEP_DROP;
    int status = draft_prepare_upper(draft, err);
    return status < 0 ? status : draft_add(draft, &step, err);
}

/* A directory gets the user's metadata back, and goes away if nothing is left in it. */
static int discard_directory(struct draft *draft, const struct change *change,
                             struct brig_error *err)
{
    struct draft_frame *frame;
    int status = draft_enter(draft, change->path, &frame, err);
    if (status < 0)
        return status;
    frame->force_prune = frame->tells = change->kind != CHANGE_METADATA;
    frame->kind = change->kind;
    frame->stays = "it is not empty: discard what is in it too";
    if (change->kind == CHANGE_METADATA) {
        struct stat info = change->before;
        const struct layer *layer = draft->layer;
        if (info.st_uid == layer->owner)
            info.st_uid = layer->jail_uid;
        if (info.st_gid == layer->owner_gid)
            info.st_gid = layer->jail_gid;
        const struct copy_source from = {.dir = change->lower_dir,
                                         .name = change->name,
                                         .info = &info,
                                         .xattrs_dir = -1,
                                         .flags = COPY_RISKY};
        struct stat upper;
        if (fstatat(change->upper_dir, change->name, &upper, AT_SYMLINK_NOFOLLOW) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the jail's changes");
        const struct copy_source to = {.dir = change->upper_dir,
                                       .name = change->name,
                                       .info = &upper,
                                       .xattrs_dir = -1,
                                       .flags = COPY_RISKY};
        frame->pending = true;
        frame->step = draft_step(draft, change);
        frame->step.upper = STEP_UPPER_META;
        if (draft->operation)
            status = operation_stage_meta(draft->operation, &frame->step, &from, &to, err);
    }
    return status < 0 ? status : draft_prepare_upper(draft, err);
}

static int visit(void *context, const struct change *change, struct brig_error *err)
{
    struct draft *draft = context;
    const struct apply_options *options = draft->options;
    enum apply_choice choice = APPLY_TAKE;
    const char *reason = NULL;
    int status = draft_move(draft, change->path, err);
    if (status == 0 && options->choose)
        status = options->choose(options->context, change, &choice, &reason, err);
    if (status < 0)
        return status;
    if (choice == APPLY_SKIP)
        return draft_refuse(draft, change, reason);
    if (needs_whole(draft, change) || (change->upper_dir < 0 && !draft_is_opaque(draft)))
        return draft_refuse(draft, change, "the jail has replaced its directory: discard that");
    if (!S_ISDIR(change->after.st_mode) || change->kind == CHANGE_METADATA)
        draft_tell(draft, change, APPLY_TAKE);
    if (change->upper_dir < 0) { /* it appears again with its directory */
        draft_touch(draft);
        return draft_prepare_upper(draft, err);
    }
    return S_ISDIR(change->after.st_mode) ? discard_directory(draft, change, err)
                                          : drop(draft, change, err);
}

int discard_plan(struct operation *operation, const struct layer *layer,
                 const struct apply_options *options, struct brig_error *err)
{
    const struct change_options changes = {.paths = options->paths,
                                           .path_count = options->path_count};
    autofree struct draft *draft = calloc(1, sizeof *draft);
    if (!draft)
        return brig_fail_nomem(err);
    int status = draft_begin(draft, operation, layer, options, err);
    draft->rewrites = true;
    if (status == 0)
        status = changes_walk(layer, &changes, visit, draft, err);
    return status < 0 ? status : draft_finish(draft, err);
}
