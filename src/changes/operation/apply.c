/* SPDX-License-Identifier: MIT */
/* Applying changes: each becomes a step that replaces the user's file and then drops the jail's. */
#include "changes/operation/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/operation/draft.h"
#include "git/repo.h"

#define STARTUP_JAIL_MAX ((size_t)16 << 20) /* a larger start-up file of a jail is not applied */

/* A file with several names in the upper directory, and the object that was made of the first of them. The kernel's device
 * numbers have 32 bits. */
struct hard_link {
    ino_t inode;
    uint32_t device;
    uint32_t object; /* its number and one; 0: the slot is free */
};

struct applying {
    struct draft draft;
    /* A directory that becomes something else, and whether it does: everything in it is deleted then. */
    char replaced[PATH_LENGTH_MAX + 1];
    bool replaces;
    struct hard_link *links; /* a hash table with linear probing, at most half full */
    size_t link_count, link_slots;
};

#define LINK_SLOTS_MIN 64 /* a power of two, as all sizes of the table */

/* ---- hard links ---- */

/* The slot of a file, or a free one. */
static struct hard_link *find_slot(struct hard_link *slots, size_t count, ino_t inode,
                                   uint32_t device)
{
    /* Fibonacci hashing: the upper bits depend on all bits of the number. */
    size_t at = (size_t)((uint64_t)inode * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (count - 1);
    while (slots[at].object != 0 && (slots[at].inode != inode || slots[at].device != device))
        at = (at + 1) & (count - 1);
    return &slots[at];
}

/* The number of the object that was made of another name of this file; -1: of none. */
static int64_t find_link(const struct applying *applying, const struct stat *info)
{
    if (applying->link_slots == 0)
        return -1;
    const struct hard_link *slot =
        find_slot(applying->links, applying->link_slots, info->st_ino, (uint32_t)info->st_dev);
    return (int64_t)slot->object - 1;
}

static bool grow_links(struct applying *applying)
{
    size_t count = applying->link_slots == 0 ? LINK_SLOTS_MIN : applying->link_slots * 2;
    struct hard_link *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < applying->link_slots; i++)
        if (applying->links[i].object != 0)
            *find_slot(slots, count, applying->links[i].inode, applying->links[i].device) =
                applying->links[i];
    free(applying->links);
    applying->links = slots;
    applying->link_slots = count;
    return true;
}

static int add_link(struct applying *applying, const struct stat *info, uint32_t number,
                    struct brig_error *err)
{
    const struct hard_link link = {info->st_ino, (uint32_t)info->st_dev, number + 1};
    if (applying->link_count * 2 >= applying->link_slots && !grow_links(applying))
        return brig_fail_nomem(err);
    *find_slot(applying->links, applying->link_slots, link.inode, link.device) = link;
    applying->link_count++;
    return 0;
}

/* ---- new objects ---- */

struct writing {
    struct applying *applying;
    const struct change *change;
    enum apply_choice choice;
    struct str restored; /* the contents of a start-up file */
};

/* A clone that the jail has made names the user's objects by their paths in the jail. */
static bool is_borrowing(const struct change *change)
{
    return S_ISREG(change->after.st_mode) && change->after.st_size < REPO_ALTERNATES_MAX &&
           repo_is_alternates(change->path);
}

/* The jail has written to a start-up file, which gets the hidden lines back, or to a list of paths
 * that are others outside. */
static bool is_restored(const struct change *change)
{
    return (change->startup && S_ISREG(change->after.st_mode)) || is_borrowing(change);
}

static int write_contents(void *context, int fd, struct brig_error *err)
{
    const struct writing *writing = context;
    const struct apply_options *options = writing->applying->draft.options;
    if (is_restored(writing->change)) {
        int failed = write_all(fd, writing->restored.data, writing->restored.length);
        return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot write the new contents")
                          : 0;
    }
    return options->write(options->context, writing->change, fd, err);
}

/* Errors that concern this file only. */
static bool is_of_file(const struct brig_error *error)
{
    return error->sys_errno == ESTALE || error->sys_errno == EACCES || error->sys_errno == EPERM ||
           error->sys_errno == ENOENT || error->sys_errno == ELOOP || error->sys_errno == ENXIO ||
           error->sys_errno == EINVAL || error->sys_errno == EFBIG;
}

/* Examines what was copied. Returns the reason why it is not placed, or NULL. */
static const char *check_copy(const struct applying *applying, const struct change *change,
                              const struct step *step)
{
    const struct apply_options *options = applying->draft.options;
    struct change copied = *change;
    char name[STEP_NAME_MAX];
    if (!options->check || S_ISDIR(change->after.st_mode))
        return NULL;
    copied.copy_dir = operation_staged(applying->draft.operation, step, name);
    copied.copy_name = name;
    copied.after.st_size = (off_t)step->other.size;
    const char *reason = options->check(options->context, &copied);
    if (reason)
        operation_unstage(applying->draft.operation, step);
    return reason;
}

/* Reads the contents that the choice is for, before the hidden lines are put back. */
static int read_chosen(const struct writing *writing, struct str *text, struct brig_error *err)
{
    const struct apply_options *options = writing->applying->draft.options;
    bool writes = writing->choice == APPLY_WRITE || writing->choice == APPLY_MERGE;
    autoclose int fd =
        writes ? memfd_create("chosen", MFD_CLOEXEC) : change_open_after(writing->change);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the jail's file");
    int status = writes ? options->write(options->context, writing->change, fd, err) : 0;
    if (status < 0)
        return status;
    int failed = lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_all(fd, STARTUP_JAIL_MAX, text);
    if (failed == 0 && text->length > STARTUP_JAIL_MAX)
        failed = -EFBIG;
    return failed < 0 ? brig_fail(err, BRIG_E_SYSTEM, -failed, "cannot read the jail's file") : 0;
}

/* Puts the user's hidden lines back. Returns 1 with a reason if that is impossible. */
static int restore(struct writing *writing, const char **ret_reason, struct brig_error *err)
{
    autostr struct str text = {0};
    if (!is_restored(writing->change) ||
        (!writing->applying->draft.operation && writing->choice != APPLY_TAKE))
        return 0;
    int status = read_chosen(writing, &text, err);
    if (status == 0 && is_borrowing(writing->change)) {
        repo_alternates_outside(text.data ? text.data : "", &writing->restored);
        return writing->restored.failed ? brig_fail_nomem(err) : 0;
    }
    if (status == 0)
        status = change_restore_startup(writing->change, &text, &writing->restored, err);
    if (status != 0)
        return status < 0 ? status : 0;
    *ret_reason = "lines of your file are hidden from the jail, and it has changed their places";
    return 1;
}

static int stage_new(struct applying *applying, struct writing *writing, struct step *step,
                     const char **ret_reason, struct brig_error *err)
{
    const struct change *change = writing->change;
    const struct stat *after = &change->after;
    bool writes =
        writing->choice == APPLY_WRITE || writing->choice == APPLY_MERGE || is_restored(change);
    bool same_xattrs = S_ISREG(after->st_mode) && (change->before.st_mode & S_IFMT) == S_IFREG &&
                       !(change->meta & (CHANGE_XATTRS | CHANGE_ACL));
    const struct copy_source source = {
        .dir = change->upper_dir,
        .name = change->name,
        .info = after,
        .xattrs_dir = same_xattrs ? change->lower_dir : -1,
        .xattrs_name = change->name,
        .fill = writes ? write_contents : NULL,
        .context = writing,
        .flags = (applying->draft.options->risky ? COPY_RISKY : 0) |
                 (S_ISDIR(after->st_mode) ? COPY_WRITABLE : 0),
    };
    struct operation *operation = applying->draft.operation;
    bool linked = S_ISREG(after->st_mode) && after->st_nlink > 1 && !writes;
    int64_t first = linked ? find_link(applying, after) : -1;
    int status = first >= 0 ? operation_stage_link(operation, step, (uint32_t)first, err)
                            : operation_stage(operation, step, &source, err);
    if (status == 0)
        *ret_reason = check_copy(applying, change, step);
    if (status != 0 || *ret_reason)
        return status;
    return linked && first < 0 ? add_link(applying, after, step->number, err) : 0;
}

/* Makes the new object. Returns 1 with a reason if this file cannot be copied. */
static int stage(struct applying *applying, const struct change *change, enum apply_choice choice,
                 struct step *step, const char **ret_reason, struct brig_error *err)
{
    struct brig_error error = {0};
    struct writing writing = {.applying = applying, .change = change, .choice = choice};
    int status = restore(&writing, ret_reason, &error);
    if (status == 0 && applying->draft.operation)
        status = stage_new(applying, &writing, step, ret_reason, &error);
    str_done(&writing.restored);
    if (status >= 0 && *ret_reason)
        return 1;
    if (status < 0 && is_of_file(&error)) {
        *ret_reason = error.sys_errno == ESTALE ? "it was changed while it was copied"
                                                : strerrordesc_np(error.sys_errno);
        return 1;
    }
    if (status < 0 && err)
        *err = error;
    return status;
}

/* ---- one change ---- */

/* What becomes of the entry in the upper directory. */
static int set_entry(struct applying *applying, const struct change *change,
                     enum apply_choice choice, struct step *step, struct brig_error *err)
{
    if (change->upper_dir < 0 || S_ISDIR(change->after.st_mode)) {
        /* There is none of its own, or a directory, which is removed when it is empty. */
    } else if (choice == APPLY_WRITE) {
        step->flags |= STEP_REBASE;
    } else if (!applying->draft.rewrites) {
        step->flags |= STEP_APPLIED;
        step->upper = STEP_DROP; /* later: see live.h */
    } else {
        step->upper = STEP_DROP;
    }
    return draft_prepare_upper(&applying->draft, err);
}

static int add(struct applying *applying, const struct change *change, enum apply_choice choice,
               struct step *step, struct brig_error *err)
{
    int status = set_entry(applying, change, choice, step, err);
    if (status == 0)
        status = draft_add(&applying->draft, step, err);
    if (choice == APPLY_WRITE)
        draft_skip(&applying->draft);
    return status;
}

/* Prepares the place of a change outside and makes the new object, if `step` is given. Returns 1 if the change is
 * skipped. */
static int prepare_place(struct applying *applying, const struct change *change,
                         enum apply_choice choice, struct step *step, struct brig_error *err)
{
    const char *reason = NULL;
    int status = draft_prepare_lower(&applying->draft, &reason, err);
    if (status == 0 && step && change->after.st_mode)
        status = stage(applying, change, choice, step, &reason, err);
    if (status > 0)
        (void)draft_refuse(&applying->draft, change, reason);
    return status;
}

static int prepare(struct applying *applying, const struct change *change, enum apply_choice choice,
                   struct step *step, struct brig_error *err)
{
    int status = prepare_place(applying, change, choice, step, err);
    if (status == 0)
        draft_tell(&applying->draft, change, choice);
    return status;
}

static int apply_file(struct applying *applying, const struct change *change,
                      enum apply_choice choice, struct brig_error *err)
{
    struct step step = draft_step(&applying->draft, change);
    mode_t allowed = applying->draft.options->risky ? 07777 : 01777;
    bool mode_only = change->kind == CHANGE_METADATA && change->meta == CHANGE_MODE &&
                     S_ISREG(change->after.st_mode);
    step.lower = mode_only ? STEP_MODE : STEP_SWAP;
    if (mode_only) {
        step.mode_before = change->before.st_mode & 07777;
        step.mode_after = change->after.st_mode & allowed;
    }
    int status = prepare(applying, change, choice, mode_only ? NULL : &step, err);
    if (status != 0)
        return status < 0 ? status : 0;
    return add(applying, change, choice, &step, err);
}

/* Enters a directory that is a change. The directories above it are prepared, and it exists. */
static int enter(struct applying *applying, const struct change *change,
                 struct draft_frame **ret_frame, struct brig_error *err)
{
    const char *reason;
    int status = draft_enter(&applying->draft, change->path, ret_frame, err);
    if (status == 0)
        status = draft_prepare_lower(&applying->draft, &reason, err);
    return status < 0 ? status : 0;
}

/* A directory is deleted, or becomes a file, after everything in it is deleted. Returns 1 if it is skipped. */
static int remove_directory(struct applying *applying, const struct change *change,
                            enum apply_choice choice, struct brig_error *err)
{
    struct draft_frame *frame;
    struct step step = draft_step(&applying->draft, change);
    step.lower = STEP_SWAP;
    int status = prepare_place(applying, change, choice, &step, err);
    if (status == 0)
        status = set_entry(applying, change, choice, &step, err);
    if (status != 0)
        return status;
    status = enter(applying, change, &frame, err);
    if (status < 0)
        return status;
    frame->pending = frame->needs_complete = frame->tells = true;
    frame->kind = change->kind;
    frame->choice = choice;
    frame->step = step;
    return 0;
}

/* A new directory, also in place of a file. */
static int create_directory(struct applying *applying, const struct change *change,
                            struct brig_error *err)
{
    struct draft_frame *frame;
    struct step step = draft_step(&applying->draft, change);
    step.lower = STEP_SWAP;
    int status = prepare(applying, change, APPLY_TAKE, &step, err);
    if (status == 0)
        status = draft_add(&applying->draft, &step, err);
    if (status != 0)
        return status;
    status = draft_enter(&applying->draft, change->path, &frame, err);
    if (status < 0)
        return status;
    frame->exists = frame->created = frame->prepared = true;
    frame->final = change->after.st_mode & 07777;
    frame->mode = frame->final | S_IRWXU;
    frame->source = ident_of(&change->after);
    return draft_prepare_upper(&applying->draft, err);
}

static int stage_meta(struct applying *applying, const struct change *change, struct step *step,
                      struct brig_error *err)
{
    const struct copy_source from = {.dir = change->upper_dir,
                                     .name = change->name,
                                     .info = &change->after,
                                     .xattrs_dir = -1,
                                     .flags = COPY_RISKY};
    const struct copy_source to = {.dir = change->lower_dir,
                                   .name = change->name,
                                   .info = &change->before,
                                   .xattrs_dir = -1,
                                   .flags = COPY_RISKY | COPY_WRITABLE};
    return applying->draft.operation
               ? operation_stage_meta(applying->draft.operation, step, &from, &to, err)
               : 0;
}

/* A directory gets a changed mode, owner or attributes when it is left. */
static int change_directory(struct applying *applying, const struct change *change,
                            struct brig_error *err)
{
    struct draft_frame *frame;
    int status = prepare(applying, change, APPLY_TAKE, NULL, err);
    if (status != 0)
        return status;
    status = enter(applying, change, &frame, err);
    if (status == 0)
        status = draft_prepare_upper(&applying->draft, err);
    if (status < 0)
        return status;
    frame->pending = true;
    frame->step = draft_step(&applying->draft, change);
    frame->step.path = NULL;
    if (change->meta != CHANGE_MODE) {
        frame->step.lower = STEP_META;
        return stage_meta(applying, change, &frame->step, err);
    }
    frame->step.lower = STEP_MODE;
    frame->step.mode_before = frame->mode;
    frame->step.mode_after = change->after.st_mode & 07777;
    frame->mode = frame->final = frame->step.mode_after;
    return 0;
}

/* Returns 1 if the change is skipped. */
static int take(struct applying *applying, const struct change *change, enum apply_choice choice,
                struct brig_error *err)
{
    bool was = S_ISDIR(change->before.st_mode), is = S_ISDIR(change->after.st_mode);
    if (is)
        return was ? change_directory(applying, change, err)
                   : create_directory(applying, change, err);
    if (was)
        return remove_directory(applying, change, choice, err);
    return apply_file(applying, change, choice, err);
}

/* The user's file stays, and the jail's is dropped. */
static int keep(struct applying *applying, const struct change *change, struct brig_error *err)
{
    struct step step = draft_step(&applying->draft, change);
    if (!applying->draft.rewrites || change->upper_dir < 0 || S_ISDIR(change->after.st_mode) ||
        draft_is_opaque(&applying->draft))
        return draft_refuse(&applying->draft, change, "the jail's version cannot be dropped alone");
    draft_tell(&applying->draft, change, APPLY_KEEP);
    step.upper = STEP_DROP;
    int status = draft_prepare_upper(&applying->draft, err);
    return status < 0 ? status : draft_add(&applying->draft, &step, err);
}

static int visit(void *context, const struct change *change, struct brig_error *err)
{
    struct applying *applying = context;
    const struct apply_options *options = applying->draft.options;
    enum apply_choice choice = APPLY_TAKE;
    const char *reason = NULL;
    bool is_below = *applying->replaced && path_is_beneath(applying->replaced, change->path);
    if (is_below && !applying->replaces)
        return 0;
    int status = draft_move(&applying->draft, change->path, err);
    if (status < 0)
        return status;
    if (S_ISDIR(change->before.st_mode) && change->kind == CHANGE_TYPE) {
        (void)str_fill(applying->replaced, sizeof applying->replaced, change->path);
        applying->replaces = false;
    }
    if (change->unreadable)
        return draft_refuse(&applying->draft, change, change->unreadable);
    if (options->choose && !is_below)
        status = options->choose(options->context, change, &choice, &reason, err);
    if (status < 0)
        return status;
    switch (choice) {
    case APPLY_SKIP:
        return draft_refuse(&applying->draft, change, reason);
    case APPLY_KEEP:
        return keep(applying, change, err);
    case APPLY_TAKE:
    case APPLY_WRITE:
    case APPLY_MERGE:
        status = take(applying, change, choice, err);
        if (!is_below)
            applying->replaces = status == 0;
        return status < 0 ? status : 0;
    }
    return 0;
}

int apply_plan(struct operation *operation, const struct layer *layer,
               const struct apply_options *options, struct brig_error *err)
{
    const struct change_options changes = {.paths = options->paths,
                                           .path_count = options->path_count,
                                           .expand = true,
                                           .expand_replaced = true};
    autofree struct applying *applying = calloc(1, sizeof *applying);
    if (!applying)
        return brig_fail_nomem(err);
    int status = draft_begin(&applying->draft, operation, layer, options, err);
    applying->draft.rewrites = !options->live && layer->upper_count == 1;
    if (status == 0)
        status = changes_walk(layer, &changes, visit, applying, err);
    if (status == 0)
        status = draft_finish(&applying->draft, err);
    free(applying->links);
    return status;
}
