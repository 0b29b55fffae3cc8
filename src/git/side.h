/* SPDX-License-Identifier: MIT */
/* What a git directory says: its refs, HEAD and stashes. A hand-over compares three of them: the
 * jail's, its initial state (base/), and the user's. */
#pragma once

#include "base/str.h"
#include "git/git.h"

/* ---- lists of refs ---- */

/* As printed by git, one "OBJECT NAME" per line, with " symbolic" for a symbolic ref. Pure. */

#define REFS_ID_MAX 64 /* hexadecimal digits of SHA-256 */
#define REFS_MAX 1000000

struct ref {
    const char *id; /* both point into the text they were read from */
    const char *name;
    bool symbolic; /* it names another ref: never moved */
};

struct refs {
    struct ref *items; /* owned; sorted by name */
    size_t count;
    size_t skipped; /* malformed lines, or unsafe names */
};

/* Whether the text is the hexadecimal id of an object. */
bool refs_is_id(const char *text);
/* Whether a full name is safe to create outside: below refs/heads/, refs/tags/ or refs/notes/, with
 * characters that have no special meaning to a shell, a terminal or git. */
bool refs_is_safe(const char *name);
/* Whether the name of a ref could be taken for something else: the beginning of an object's name,
 * HEAD and the like, a ref of another kind; or has a character that is not shown. A jail must not
 * create such a ref; the user may. Pure. */
bool refs_is_misleading(const char *name);

/* The name of a branch or tag without refs/heads/ or refs/tags/, for a message. */
const char *refs_short_name(const char *name);

/* Parses a text, which is modified and must outlive the list. Release with refs_done(). */
int refs_read(char *text, struct refs *ret_refs, struct brig_error *err);
void refs_done(struct refs *refs);
/* The ref with a name, and its object; NULL if there is none. */
const struct ref *refs_get(const struct refs *refs, const char *name);
const char *refs_find(const struct refs *refs, const char *name);

/* ---- one side ---- */

#define SIDE_STASHES_MAX 1000
#define SIDE_HEAD_MAX 1100

struct side_stash {
    const char *id, *text;
};

struct side {
    struct str text; /* contains the list of refs */
    struct refs refs;
    char head[SIDE_HEAD_MAX];     /* "refs/heads/NAME", the object of a detached HEAD, or "" */
    char tree[REFS_ID_MAX + 1];   /* of the index, or "" if it has none, as during a merge */
    char staged[REFS_ID_MAX + 1]; /* a commit with this tree; only inside */
    char flags[65];               /* of the index: what is marked, hashed; only inside and base */
    struct str stash_text;
    struct side_stash stashes[SIDE_STASHES_MAX]; /* newest first, in stash_text */
    size_t stash_count;
};

/* The format of `git for-each-ref` for refs_read(). */
#define SIDE_REFS "%(objectname) %(refname)%(if)%(symref)%(then) symbolic%(end)"

/* Reads refs, HEAD and stashes, with git in a directory that no jail has written. Release with side_done(), also after a
 * failure. */
int side_read(const struct git *git, const struct git_call *how, struct side *side,
              struct brig_error *err);
/* Reads HEAD: "refs/heads/NAME", an object, or "". */
int side_read_head(const struct git *git, const struct git_call *how, char ret_head[SIDE_HEAD_MAX],
                   struct brig_error *err);
/* Parses a line "stash OBJECT TEXT", which is modified; false if it is another one, or NULL. */
bool side_read_stash(struct side *side, char *line);
void side_done(struct side *side);

/* The place of a stash in the list, or -1. */
int side_find_stash(const struct side *side, const char *id);

/* ---- working trees ---- */

/* Appends what is checked out, rebased or bisected in the working trees of a repository. */
int side_list_worktrees(const struct git *git, int common, struct str *ret_worktrees,
                        struct brig_error *err);
/* In how many of them a branch is. */
size_t side_count_worktrees(const struct str *worktrees, const char *branch);
/* What goes on in a git directory: "rebase", "merge", "bisect" …; NULL: nothing. */
const char *side_goes_on(int git_dir);
