/* SPDX-License-Identifier: MIT */
/* What a ref, a stash or an index would make reachable, judged before it moves: each commit that the user does not have yet,
 * with the files it changes. git reads the commits in the user's repository, where they are fetched below refs/brig, without
 * replace refs and without fetching what is missing.
 *
 * A path is judged in each commit, because a later one can hide an earlier one. -m lists the changes of a merge against each
 * parent, so that one which the merge itself makes is seen; what a merge takes from a tip that the user has is left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <brig/brig.h>

#include "git/item.h"
#include "held/names.h"

#define RANGE_ID_MAX 64
#define RANGE_COMMITS_MAX 100000             /* above: not judged */
#define RANGE_ENTRIES_MAX 20000000           /* changed files of all commits; above: not judged */
#define RANGE_COMMITS_KEPT 500               /* commits that are listed, the newest */
#define RANGE_FILES_KEPT 200                 /* files listed of each */
#define RANGE_FLAGS_MAX 50000                /* marks that may be dropped again; more stay */
#define RANGE_TIPS_MAX 16                    /* merged tips with which a merge is compared */
#define RANGE_READ_MAX ((uint64_t)256 << 20) /* contents that are read; what is above is flagged */
#define RANGE_LINKS_MAX 200 /* commits of submodules that are looked for; more are flagged */

struct range_file {
    char *path;
    char letter;        /* as git: A, M, D, T */
    uint32_t mode;      /* afterwards; 0: deleted */
    const char *reason; /* of its mark, constant; or NULL */
    enum names_class class;
};

/* One commit, or, with an empty id, what is staged. */
struct range_commit {
    char id[RANGE_ID_MAX + 1];
    char *author, *subject; /* as the jail wrote them: escape them */
    int64_t time;
    struct range_file *files;
    size_t file_count;
    uint64_t more; /* files that are not listed */
};

/* All is judged between the ends, which is what differs for the user; what executes unasked also in each commit. Contents are
 * judged as those of files, see risk_content_find(). A file that is not judged counts as flagged. */

/* The first mark of a class. */
struct range_mark {
    const char *reason; /* NULL: there is none */
    char *path;         /* NULL: it is about the whole range */
    char commit[RANGE_ID_MAX + 1];
};

struct range {
    struct range_commit *commits;
    size_t count;
    uint64_t total; /* commits, with those that are not listed */
    struct range_mark first[NAMES_CLASSES];
};

/* Judges what taking an item would make reachable, and what it takes away. A failure of git is no error: the range is not judged then, and the mark says
 * why. Release with range_done(). */
int range_judge(const struct git_item *item, struct range *ret_range, struct brig_error *err);
void range_done(struct range *range);

/* The strongest mark, or NULL: it is taken only if somebody says so. */
const struct range_mark *range_stops(const struct range *range);

/* "abc1234: PATH: REASON", escaped; for messages. */
void range_append_mark(struct str *out, const struct range_mark *mark);
