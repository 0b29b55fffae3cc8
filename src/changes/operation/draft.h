/* SPDX-License-Identifier: MIT */
/* Planning the steps of an apply or a discard from a walk of changes. The walk visits a directory before what is in
 * it. Some steps come before those of the files in a directory, and some after: a new directory is made first, and gets
 * its mode and times last; a deleted one is removed last; a read-only one is writable meanwhile. So the draft keeps a
 * frame for each directory above the current path. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/path.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/apply.h"
#include "changes/operation/operation.h"

struct change;

struct draft_frame {
    size_t length; /* of its path */
    bool complete; /* every change in it was planned */
    bool any;      /* something in it was planned */
    /* in the upper directory */
    bool has_upper, pruned;
    bool force_prune; /* it need only be empty to be removed */
    unsigned opaque;  /* enum upper_opaque */
    /* outside */
    bool exists, obstructed, prepared, created;
    mode_t mode, final;  /* as planned so far, and when it is left */
    struct ident source; /* of a created one */
    /* A step for the time when the directory is left. */
    bool pending, needs_complete;
    struct step step;
    /* It is told when it is left whether the directory is deleted, or the jail's new one discarded. */
    bool tells;
    enum change_kind kind;
    enum apply_choice choice;
    const char
        *stays; /* the reason if something in it was not planned; NULL: it is not mentioned */
};

struct draft {
    struct operation *operation; /* NULL: only look */
    const struct layer *layer;
    int tree;
    const struct apply_options *options;
    bool rewrites;                  /* the upper directory may be changed */
    char path[PATH_LENGTH_MAX + 1]; /* of the innermost frame */
    size_t depth;
    struct draft_frame frames[LAYER_DEPTH_MAX];
};

/* Begins a draft for one layer. */
int draft_begin(struct draft *draft, struct operation *operation, const struct layer *layer,
                const struct apply_options *options, struct brig_error *err);

/* Leaves the directories that do not contain the path and enters those that do. */
int draft_move(struct draft *draft, const char *path, struct brig_error *err);
/* Leaves all directories. */
int draft_finish(struct draft *draft, struct brig_error *err);
/* Enters a directory that is itself a change, after draft_move(). */
int draft_enter(struct draft *draft, const char *path, struct draft_frame **ret_frame,
                struct brig_error *err);

/* Tells what is planned for a change. */
void draft_tell(const struct draft *draft, const struct change *change, enum apply_choice choice);
/* The current path is not planned: no directory above it is complete. */
void draft_skip(struct draft *draft);
/* The same, and tells why, unless `reason` is NULL. Returns 0, for a visit. */
int draft_refuse(struct draft *draft, const struct change *change, const char *reason);

/* Prepare the directories above the current path for a step in the user's files: creates missing ones, and makes
 * read-only ones writable. Returns 0, 1 with a reason if that is impossible, or a code. */
int draft_prepare_lower(struct draft *draft, const char **ret_reason, struct brig_error *err);
/* The same for a step that moves an entry of the upper directory. */
int draft_prepare_upper(struct draft *draft, struct brig_error *err);

/* The current path is planned, though it needs no step of its own. */
void draft_touch(struct draft *draft);
/* Adds a step. */
int draft_add(struct draft *draft, struct step *step, struct brig_error *err);

/* A step for a change, with what is known about its entry and base. */
struct step draft_step(const struct draft *draft, const struct change *change);

/* Whether the innermost directories hide what is outside. */
bool draft_is_opaque(const struct draft *draft);
