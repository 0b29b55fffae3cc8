/* SPDX-License-Identifier: MIT */
/* Operations: everything that a run or a command did to a jail's layers and to the user's files, as a log.
 *
 * An operation is a directory NAME.record/operations/ID:
 *
 *     info        kind, time, counts, what is known of its effect: a record (base/record.h)
 *     journal     its steps, see journal.h
 *     objects/    new objects that are not in place yet, and what they replaced, see step.h
 *     ready       exists when the journal and all new objects are durable: only then the first step is taken
 *     done        exists when the operation is complete
 *     N.base      the records that it has removed from the base of its Nth layer, see layer/base.h
 *     undone      the ID of the operation that has undone it
 *     git         what moves in repositories of the user, see git/take.h; when the files are taken, after all
 *
 * A run has such a directory from its beginning, which gets its ID when the run has ended; see changes/end.h.
 *
 * Earlier versions wrote info as "key=value" with a NUL each. It is converted when it is first read.
 *
 * All new objects are made before the first step is taken, so a full disk changes nothing. Then the steps in the
 * user's files are taken in the order of the journal, then those in the upper directories in the reverse order. An
 * operation with `ready` but without `done` was interrupted: it can be continued or reverted. One without `ready`
 * has changed nothing, and is removed.
 *
 * The journal of an undo has the steps of another operation in reverse order, each turned around. It uses the
 * objects of that operation, so the two versions of a file change places.
 *
 * If the user's files are on another filesystem, their objects are meanwhile in a directory .brig-JAIL-ID of the
 * root. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <brig/brig.h>

#include "base/str.h"
#include "changes/operation/copy.h"
#include "changes/operation/step.h"

struct git;
struct layers;
struct operation;

#define OPERATION_APPLY "apply"
#define OPERATION_DISCARD "discard"
#define OPERATION_UNDO "undo"
#define OPERATION_RUN "run"
#define OPERATION_HOLD "hold"
#define OPERATION_SYNC "sync" /* what an active run has done in git */
#define OPERATION_GIT "git"   /* of earlier versions, beside an apply */

#define OPERATION_KIND_MAX 16
#define OPERATION_TEXT_MAX 256
#define OPERATION_RUN_MAX 40 /* the name of a run */

/* ---- the log ---- */

/* What is known of the effect of an operation on one kind of thing. */
enum operation_effect {
    OPERATION_NONE,   /* there is none */
    OPERATION_LISTED, /* each is in its journal, its checkpoint, or its git record */
    OPERATION_UNKNOWN,
};

struct operation_info {
    uint64_t id;
    char kind[OPERATION_KIND_MAX];
    char text[OPERATION_TEXT_MAX]; /* one line for people; not escaped */
    char *fields;                  /* a JSON object with further facts, or NULL; owned */
    int64_t time_ns, end_ns;       /* end_ns is 0 if it is not complete */
    uint64_t changes, skipped;     /* steps for the user, and those that could not be taken */
    enum operation_effect files;   /* on files of the user, or on a jail's copies of them */
    enum operation_effect git;     /* on refs, HEAD and index of the user's repositories */
    char run[OPERATION_RUN_MAX];  /* "run-X": of a run, and of the operations that are part of it */
    char did[OPERATION_TEXT_MAX]; /* a run: what moved in git, one line; not escaped */
    char path[OPERATION_TEXT_MAX]; /* a hold: the name that was held back, in its layer's root, */
    char program[OPERATION_TEXT_MAX]; /* and what would execute it */
    uint64_t special;                 /* a hold: FIFOs, sockets and devices that are not in it */
    struct str roots;                 /* a run: the directories and files that it could write to */
    int64_t settled_ns;               /* a run that was killed: when its changes were looked for */
    uint64_t undoes, undone_by;       /* operations; 0: none */
    uint64_t objects; /* the operation that has its objects, itself or the one it undoes; 0: none */
    bool has_steps;   /* it can be undone, unless undone_by */
    bool has_checkpoint; /* a run: the same, from the checkpoint; see restore.h */
    bool has_git;        /* the same, from the git record */
    bool interrupted;
    bool whole; /* an undo of all steps */
    bool live;  /* it has steps with STEP_APPLIED: see live.h */
};
void operation_info_done(struct operation_info *info);

/* "none", "listed" or "unknown". */
const char *operation_effect_word(enum operation_effect effect);

/* Calls `visit` with each number of an operation, the newest first. A result other than 0 ends it and is returned. */
typedef int (*operation_id_visit)(void *context, int operations, uint64_t id,
                                  struct brig_error *err);
int operations_each_id(int record, operation_id_visit visit, void *context, struct brig_error *err);
/* The same with what is known about each that can be read. */
typedef int (*operation_visit)(void *context, const struct operation_info *info,
                               struct brig_error *err);
int operations_each(int record, operation_visit visit, void *context, struct brig_error *err);

/* Whether an operation is one that an undo without a number may mean: it has an effect and is no undo, not undone, nothing
 * that was held back, and not what an earlier version recorded about git beside another operation. */
bool operation_counts(const struct operation_info *info);
/* Whether it can be reversed. */
bool operation_can_undo(const struct operation_info *info);
/* Whether it is a file that was held back, of which nobody has decided whether it is kept. */
bool operation_is_undecided(const struct operation_info *info);
/* Appends "apply src/main.c", shortened and escaped. */
void operation_append_name(struct str *out, const struct operation_info *info);

/* Reads one operation: BRIG_E_INVALID if there is none with this ID. Release with operation_info_done(). */
int operation_find(int record, uint64_t id, struct operation_info *ret_info,
                   struct brig_error *err);

/* Calls `visit` for each step that is not a helper, with a word for what it does: "add", "replace" … */
typedef int (*operation_step_visit)(void *context, const char *root, const char *path,
                                    const char *what, struct brig_error *err);
int operation_steps(int record, uint64_t id, operation_step_visit visit, void *context,
                    struct brig_error *err);

/* The operation that was interrupted, or 0. */
uint64_t operation_interrupted(int record);
/* Fails with BRIG_E_STATE if there is one, and says what completes or reverts it. */
int operation_check_interrupted(int record, struct brig_error *err);

/* ---- making an operation, with the lock of the record ---- */

/* Told about a step that could not be taken. Paths are relative to `root`. */
typedef void (*operation_report)(void *context, const char *root, const char *path,
                                 const char *reason);

/* Begins an operation. Fails with BRIG_E_STATE if another one was interrupted. Free it with operation_free(); an
 * operation that was not run leaves nothing behind. `layers` must live as long. */
int operation_begin(const struct layers *layers, int record, const char *kind,
                    struct operation **ret_operation, struct brig_error *err);
void operation_free(struct operation *operation);

/* The index of a layer in the operation, for step.tree. A layer that is not part of a jail has only `name`, `root`,
 * `lower` and `jail`. */
int operation_tree(struct operation *operation, const struct layer *layer, struct brig_error *err);

/* Makes a new object. Sets the number and `other` of the step. */
int operation_stage(struct operation *operation, struct step *step,
                    const struct copy_source *source, struct brig_error *err);
/* The same as a hard link to the object of another step of this operation. */
int operation_stage_link(struct operation *operation, struct step *step, uint32_t number,
                         struct brig_error *err);
/* Where the new object of a step is, and its name in that directory. */
int operation_staged(const struct operation *operation, const struct step *step,
                     char ret_name[static STEP_NAME_MAX]);
/* Removes the new object again. */
void operation_unstage(struct operation *operation, const struct step *step);
/* Makes the two objects of a STEP_META or STEP_UPPER_META: the metadata of `to` becomes that of `from`. */
int operation_stage_meta(struct operation *operation, struct step *step,
                         const struct copy_source *from, const struct copy_source *to,
                         struct brig_error *err);

/* Adds a step; gives it a number if it has no object. Before the first step that changes the entries of a directory comes
 * one that remembers its time. */
int operation_add(struct operation *operation, struct step *step, struct brig_error *err);

/* Adds steps that replace, create or delete one file of a root, which exists in the state `before` (st_mode 0: it
 * does not). `source` says what is put there, NULL: nothing. Directories before what is put in them, and after what is
 * deleted in them. */
int operation_put(struct operation *operation, const struct layer *layer, const char *path,
                  const struct stat *before, const struct copy_source *source,
                  struct brig_error *err);

/* The text for the log. */
void operation_describe(struct operation *operation, const char *text);

/* Says that the operation is part of a run, info.run of its entry; NULL: of none. */
void operation_is_part(struct operation *operation, const char *run);

/* What moves a git record. */
struct operation_git {
    const struct git *git;
    int storage;       /* NAME.git, whose private git directories follow; or -1 */
    struct str *notes; /* messages, one per line */
};
/* Says that the operation may have a git record, and returns its directory, where that is written. The record's values move
 * with the files: if one of them is neither the old nor the new one, nothing is changed; if a file could not be taken, git
 * stays as it is. */
int operation_use_git(struct operation *operation, const struct operation_git *git);

uint64_t operation_id(const struct operation *operation);
/* How many steps it has that are not helpers. */
uint64_t operation_count(const struct operation *operation);

/* Whether it has moved something in git, or will. */
bool operation_moves_git(const struct operation *operation);

/* Takes all steps. An operation without steps and without a git record is not recorded. After a failure, the journal stays for
 * operation_recover(). */
int operation_run(struct operation *operation, operation_report report, void *context,
                  struct brig_error *err);

/* Completes the interrupted operation, or with `revert` reverts it. *ret_id gets its ID, 0 if there is none. `git` may be NULL:
 * then one with a git record fails. */
int operation_recover(const struct layers *layers, int record, const struct operation_git *git,
                      bool revert, operation_report report, void *context, uint64_t *ret_id,
                      struct brig_error *err);

/* ---- undo ---- */

struct operation_undo {
    uint64_t id;              /* 0: the newest operation that counts */
    const char *const *paths; /* absolute: only these and what is below them; NULL: everything */
    size_t path_count;
    bool here;                /* nobody named the path: also a run counts that could write there */
    bool force;               /* also where a file has changed since */
    bool only_git;            /* of a run that could write to files of which nothing is known */
    const char *to;           /* NULL, or a directory for a hold, instead of the one it is from */
    const char *jail;         /* for the undo of a run */
    struct operation_git git; /* also reads the checkpoint */
    operation_report
        report; /* for each file that has changed since, and steps that could not be taken */
    void *context;
};

/* Undoes an operation, files and git; with paths only files. Fails with BRIG_E_STATE, and changes nothing, if a file or a ref
 * has changed since, or if the operation cannot be undone: then the message says what it did. *ret_undone and *ret_id get the operation and the new one. */
int operation_undo(const struct layers *layers, int record, const struct operation_undo *undo,
                   uint64_t *ret_undone, uint64_t *ret_id, struct brig_error *err);
