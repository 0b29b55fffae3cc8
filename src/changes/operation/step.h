/* SPDX-License-Identifier: MIT */
/* Taking one step of an operation, so that a kill at any point leaves a state that can be continued or reverted.
 *
 * The objects of step N are in the operation's directory of objects. N is the new object, which a step puts in
 * place; N.old is the object that was replaced; N.entry is the entry of the upper directory. A step that exchanges
 * two files renames once (RENAME_EXCHANGE), which puts the old object at N, and then N to N.old. So the names tell
 * whether a step was taken, and between the two renames the inode number does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <brig/brig.h>

#include "base/path.h"
#include "base/place.h"
#include "changes/operation/journal.h"

struct layer;

#define STEP_NAME_MAX 32
#define STEP_OLD ".old"
#define STEP_ENTRY ".entry"

/* The directory that was used last. */
struct step_directory {
    int fd;     /* O_PATH, or -1 */
    int failed; /* the errno if it cannot be opened */
    bool changed;
    bool opaque; /* it, or a directory above it, hides what is outside */
    char path[PATH_LENGTH_MAX + 1];
};

/* A layer in an operation. */
struct step_tree {
    const struct layer *layer; /* NULL: only its root is left */
    char name[24];
    char root[PATH_LENGTH_MAX + 1];
    struct place place; /* of the root */
    int lower, upper;   /* -1: it does not exist */
    bool owns_lower;
    int remote; /* the directory of objects on the filesystem of the root, if that is another one; -1 */
    struct step_directory lower_at, upper_at;
};

/* A directory of an upper directory that its owner may not write to, and that was made accessible meanwhile. They
 * are listed in the file `opened` among the objects, so that their modes are also restored after a kill. */
struct step_opened {
    size_t tree;
    mode_t mode;
    char *path;
};

struct step_context {
    int objects;
    struct step_opened **opened; /* in the order in which they were opened */
    size_t opened_count;
    void *opened_index; /* the same, for tfind() */
    bool sync;          /* make each directory durable when it is left */
    struct step_tree *trees;
    size_t tree_count;
};

/* Before the first step: reads the file `opened`. */
int step_begin(struct step_context *context, struct brig_error *err);

/* "N", "N.old" or "N.entry". */
void step_object_name(char name[static STEP_NAME_MAX], uint32_t number, const char *end);
/* The directory with the objects N and N.old of a tree. */
int step_objects(const struct step_context *context, const struct step_tree *tree);

/* Turns a step around: what it does becomes what it reverts. */
void step_invert(struct step *step);

/* Take a step in the user's files, or in the upper directory. Nothing happens if it was taken already. Return 0; 1 if
 * it cannot be taken, with a short reason (a step in the upper directory is skipped without one if it does not apply);
 * or a negative code. */
int step_take_lower(struct step_context *context, const struct step *step, const char **ret_reason,
                    struct brig_error *err);
int step_take_upper(struct step_context *context, const struct step *step, const char **ret_reason,
                    struct brig_error *err);

/* Takes a STEP_TIME, if that is possible. */
void step_set_time(struct step_context *context, const struct step *step);

/* Whether the lower part of a step was taken. */
bool step_is_taken(struct step_context *context, const struct step *step);
/* Whether the entry of the upper directory is in the operation. */
bool step_has_entry(const struct step_context *context, const struct step *step);
/* Whether the file at the path is the one that the step expects or, after it was taken, has put there. */
bool step_state(struct step_context *context, const struct step *step, const struct ident *wanted,
                struct stat *ret_now);

/* Restores modes, makes the last directories durable and closes them. */
void step_done(struct step_context *context);

/* Opens a directory below another for use of names in it (O_PATH), without following links and without entering
 * another mount. "" is the directory itself. -1 with errno. */
int step_open_directory(int top, const char *path);
