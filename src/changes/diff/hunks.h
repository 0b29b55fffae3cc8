/* SPDX-License-Identifier: MIT */
/* Lets the user choose parts of changes with `git add -p`, in a temporary repository: its index has the user's
 * version of each file, its working tree the jail's. What is in the index in the end was chosen. No
 * attributes, configuration or filters of the trees are used.
 *
 * Use: hunks_new(), hunks_add() for each change in the order of a walk, hunks_ask(), then hunks_find() for each path in
 * the same order, hunks_free(). */
#pragma once

#include <sys/types.h>

#include <brig/brig.h>

struct change;
struct git;
struct hunks;

enum hunks_choice {
    HUNKS_NOT_ASKED, /* git cannot offer it: a directory, a special file, a change of type, or of the owner or mode
                        only; or it was not added */
    HUNKS_NONE, /* nothing of it was chosen */
    HUNKS_PART, /* content and mode are given by hunks_open() */
    HUNKS_ALL,  /* the jail's version, or the deletion */
};

/* Files that are larger, binary, or have characters for a terminal are offered whole: git shows one line for
 * each version. */
#define HUNKS_FILE_MAX (1 << 20)

/* `record` is the record of the jail; both must stay valid. `git` must have a program. */
int hunks_new(const struct git *git, int record, struct hunks **ret_hunks, struct brig_error *err);
/* Removes the repository. Accepts NULL. */
void hunks_free(struct hunks *hunks);

/* Adds a change. It can be used as change_visit, with the struct hunks as context. Deleted directories must be
 * expanded: see struct change_options. */
int hunks_add(void *hunks, const struct change *change, struct brig_error *err);

/* Runs `git add -p` on the terminal (standard input and output). Returns 0 also if the user quits: what was
 * chosen until then counts. The caller ignores SIGINT meanwhile. */
int hunks_ask(struct hunks *hunks, struct brig_error *err);

struct hunks_found {
    enum hunks_choice choice;
    mode_t
        mode; /* of a part: S_IFREG with 0755 or 0644, or S_IFLNK; only the bit S_IXUSR is meant */
    char object[65]; /* of a part, for hunks_open() */
};

/* What was chosen of a path. */
struct hunks_found hunks_find(const struct hunks *hunks, const char *path);
/* The content of a part: an fd at its beginning, or a negative code. The target of a link is its content. */
int hunks_open(struct hunks *hunks, const struct hunks_found *found, struct brig_error *err);
