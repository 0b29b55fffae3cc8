/* SPDX-License-Identifier: MIT */
/* Journals: the steps of an operation, as a file that can be read in both directions. It is written once, before
 * the first step is taken, by the machine that reads it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <brig/brig.h>

#include "base/path.h"
#include "changes/layer/base.h"

/* What a step does to the user's file. */
enum step_lower {
    STEP_LOWER_NONE,
    STEP_SWAP, /* exchanges it with the object of the step; either may be missing */
    STEP_MODE, /* sets the mode */
    STEP_META, /* gives a directory all metadata of the object of the step */
    STEP_TIME, /* gives a directory the mtime of `other`, unless its mode is 0: after all other steps */
};

/* What a step does to the entry in the upper directory. */
enum step_upper {
    STEP_UPPER_NONE,
    STEP_DROP,       /* moves it into the operation, if the lower part was taken */
    STEP_UPPER_META, /* gives a directory all metadata of the object of the step */
    STEP_PRUNE,  /* moves a directory into the operation, if it is empty and no change any more */
    STEP_OPAQUE, /* removes the mark that the directory hides what is outside */
};

enum step_flag {
    STEP_REVERSED = 1 << 0, /* the step undoes: from N.old to N, not from N to N.old */
    STEP_CONFLICT = 1 << 2, /* the user's file had changed: after an undo it is a conflict again */
    STEP_BASE = 1 << 3,     /* base is valid */
    STEP_SINCE = 1 << 4,    /* base is only a time: BASE_SINCE */
    STEP_REBASE = 1 << 5,   /* the entry stays, and is based on the new file */
    STEP_APPLIED =
        1 << 6, /* STEP_DROP: the entry stays, recorded as applied, until no run uses it: live.h */
    STEP_FORCE = 1 << 7,     /* STEP_PRUNE: only has to be empty */
    STEP_FUSE_MARK = 1 << 8, /* STEP_DROP: the entry is a file ".wh.NAME" */
    STEP_HELPER = 1 << 9,    /* belongs to other steps: makes a directory writable meanwhile */
    STEP_LINKED = 1 << 10,   /* STEP_SWAP: the user's file has more names */
};

struct step {
    uint32_t number;                  /* of its objects in the operation's directory */
    uint32_t flags;                   /* enum step_flag */
    uint8_t tree;                     /* index of the layer in the operation */
    uint8_t lower;                    /* enum step_lower */
    uint8_t upper;                    /* enum step_upper */
    uint32_t mode_before, mode_after; /* STEP_MODE; STEP_OPAQUE: the kinds of marks */
    int64_t unused;
    struct ident before; /* the user's file before the step; mode 0: there is none */
    struct ident other;  /* the object that is put there; mode 0: none */
    struct ident entry;  /* the entry in the upper directory */
    struct ident base;   /* what the layer was based on */
    const char *path;    /* relative to the root */
};

/* ---- writing ---- */

int journal_write(FILE *file, const struct step *step, struct brig_error *err);

/* ---- reading ---- */

#define JOURNAL_RECORD_MAX (sizeof(struct step) + PATH_LENGTH_MAX + 1 + 2 * sizeof(uint32_t))

struct journal {
    int fd;
    int64_t at, size;
    char buffer[JOURNAL_RECORD_MAX];
};

/* Opens a journal at its beginning, or at its end. Close with journal_close(). */
int journal_open(int dir, bool at_end, struct journal *ret_journal, struct brig_error *err);
void journal_close(struct journal *journal);
#define autojournal __attribute__((cleanup(journal_close)))

/* Reads the next or the previous step: 1, 0 at the end, or a negative code. The path is valid until the next
 * call. */
int journal_next(struct journal *journal, struct step *ret_step, struct brig_error *err);
int journal_previous(struct journal *journal, struct step *ret_step, struct brig_error *err);

#define JOURNAL_NAME "journal"
