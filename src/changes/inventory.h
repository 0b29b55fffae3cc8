/* SPDX-License-Identifier: MIT */
/* The inventory: what can reach the user's side, sorted by kind, with marks, conflicts and tokens. Whatever shows items or
 * decides about them reads this list.
 *
 * Items are kept in unlinked temporary files in the jail's record, so memory does not grow with the
 * number of changes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/token.h"
#include "git/range.h"
#include "held/names.h"

struct guard_options;
struct layers;

#define INVENTORY_KINDS (CHANGE_ADDED + 1)

/* An item. Texts are valid during the call. */
struct inventory_item {
    struct token token;   /* "" if tokens were not asked for, or the item is not judged */
    const char *path;     /* of a file, relative to the root; else the name: of a ref, a key … */
    const char *conflict; /* reasons, or NULL: why it cannot be taken without a decision, */
    const char *risk;     /* why it needs a look, */
    enum names_class class; /* of `risk` */
    const char *unreadable; /* why it cannot be examined or taken at all */

    /* of what was done in git; NULL: it is a file */
    const struct git_item *git;
    const struct range *range; /* the commits that it would make reachable */

    /* of a file */
    enum change_kind kind;
    unsigned meta;                    /* CHANGE_MODE and so on */
    uint32_t mode_before, mode_after; /* with the type; 0: there is no file */
    uint64_t size_before, size_after;
    uint64_t files, bytes; /* in a deleted or replaced directory */
    uint64_t inode;        /* of the file in the upper directory */
    bool
        state; /* of a program, in the home: neither conflict nor name is of interest, other risks are */
    bool asked;     /* for inventory.c: git is asked whether it is ignored */
    bool ignored;   /* by git, outside; only added files */
    uint32_t group; /* the length of the ignored directory in `path`; 0: it is not in one */
    const char *target_before, *target_after; /* of links, else NULL */
    const char *renamed_from;                 /* a deleted file with the same contents, or NULL */
};

struct inventory_counts {
    uint64_t kinds[INVENTORY_KINDS];
    uint64_t conflicts, risky, ignored, unreadable;
    uint64_t bytes; /* of added and modified files */
    uint64_t state; /* files of programs' state, which are not counted otherwise */
};

struct inventory_options {
    const char *const *paths; /* as in struct change_options */
    size_t path_count;
    const struct git *git; /* for ignored files; NULL: none are ignored */
    const struct str *
        state; /* paths in the home where programs keep their state, see str_list_add(); NULL: none */
    bool quick;  /* no marks and no renames: contents are not read */
    bool tokens; /* compute them; while a run is active, this reads all files */
};

struct inventory;

/* Collects the changes of a layer. `layer` is borrowed. Release with inventory_free(). */
int inventory_make(const struct layer *layer, const struct inventory_options *options,
                   struct inventory **ret_inventory, struct brig_error *err);
void inventory_free(struct inventory *inventory);
const struct inventory_counts *inventory_counts(const struct inventory *inventory);

/* Whether a path of the home is, or is below, one of a list: `state` of the options. */
bool inventory_is_state(const struct str *state, const char *path);

/* Visits all files: deletions, type changes, modified files, metadata, added files; each sorted by
 * path. */
typedef int (*inventory_visit)(void *context, const struct inventory_item *item,
                               struct brig_error *err);
int inventory_each(struct inventory *inventory, inventory_visit visit, void *context,
                   struct brig_error *err);
/* What a jail has done in git, judged: for who lists such items, and for who decides about them. */
struct inventory_git {
    struct inventory_item item; /* its texts are here, and in the git_item, which is borrowed */
    struct range range;
    struct str risk;
};
/* Release with inventory_git_done(). */
int inventory_judge_git(const struct git_item *git, struct inventory_git *ret_judged,
                        struct brig_error *err);
void inventory_git_done(struct inventory_git *judged);
/* Visits what was done in the repositories of a reviewed directory. See guard_list(). */
int inventory_each_git(const struct guard_options *options, const char *root, inventory_visit visit,
                       void *context, struct brig_error *err);

/* Ignored files in one directory: all in and below it if git ignores the directory, else those
 * directly in it. */
struct inventory_group {
    const char *path; /* of the directory, or of the only file; "": the root */
    bool whole;       /* the directory is ignored */
    bool single;      /* `path` is a file */
    uint64_t files, bytes, risky;
    const char *risk;   /* the reason of the first risky file, or NULL */
    struct token token; /* of all tokens in it; "" as for items */
};
typedef int (*inventory_group_visit)(void *context, const struct inventory_group *group,
                                     struct brig_error *err);
int inventory_each_group(struct inventory *inventory, inventory_group_visit visit, void *context,
                         struct brig_error *err);

/* ---- the end of a run ---- */

#define INVENTORY_LINE_MAX 100000 /* entries that are counted; of more, "more than" is said */

/* Appends a line without a newline, such as "12 files changed in the jail's copy of your home, 3 new;
 * see brig status", about files that were changed at `since_ns` (CLOCK_REALTIME) or later; 0: all.
 * Appends nothing if there are none. Does not read the contents of files. `state` has paths in the
 * home that are not counted, with all that is below them (see str_list_add); NULL: none. */
int inventory_line(const struct layers *layers, int64_t since_ns, const struct str *state,
                   struct str *out, struct brig_error *err);
