/* SPDX-License-Identifier: MIT */
/* Fetches what is new in a jail's private git directory into the user's repository, with git itself. Nothing else moves
 * here: see plan.h and take.h.
 *
 * The private directory is untrusted: git reads it only in a sealed jail. New objects leave that
 * jail as a pack, which `git index-pack --strict` checks outside, and are pinned as
 * refs/brig/JAIL/ID/OBJECT: no name of a jail is one outside before it is taken. */
#pragma once

#include "git/private.h"
#include "git/side.h"

#define TRANSFER_SPACE_MAX 200

/* ---- LFS ---- */

/* Objects of Git LFS: the contents of large files, which git itself does not store. git-lfs looks
 * for them in lfs/objects of the common git directory, and beside each object directory that
 * info/alternates names. Their names are their hashes: lfs/objects/01/23/0123…. */

/* Opens the LFS objects beside an object directory: an fd, or -1 if there are none. */
int lfs_open_beside(int objects);

/* Copies the LFS objects of a jail's private git directory into the repository, if they are missing
 * there and their hash is right. */
int lfs_transfer(int private_dir, int common, struct brig_error *err);

/* ---- fetching ---- */

struct transfer {
    const struct git *git;
    const struct private_git *p;
    const char *space;        /* where objects are pinned: "refs/brig/JAIL/ID" */
    struct str *notes;        /* for messages, or NULL */
    bool uses_seen;           /* a private directory that has not changed is not looked at again */
    char *base_index;         /* the path of the index in p->base */
    struct git_call base_git; /* for git on p->base, which has refs but no objects */
    char *objects;            /* the path of the repository's object directory */
    uint64_t signature;       /* of the private directory, before the look */
    struct str look;          /* what git printed about it */
    struct side inside, base;
    struct side pins;                        /* only refs: those in `space`, by object */
    struct str inside_intents, base_intents; /* names that are to be added: `git add -N` */
    bool unmerged;                           /* the index inside has conflicts */
    bool damaged;     /* git could not read all refs inside: a missing one may not be deleted */
    char pending[16]; /* the unfinished operation inside: "rebase", "merge" …, or "" */
    bool lost;        /* something could not be fetched */
};

/* Runs git, on the user's repository unless `how`, which may be NULL, names another; returns its
 * exit status or a negative code. */
int fetch_run(const struct transfer *t, const struct git_call *how, struct str *out,
              const char *const *words, struct brig_error *err);
#define RUN(t, how, out, err, ...)                                                                 \
    fetch_run((t), (how), (out), (const char *const[]){__VA_ARGS__, NULL}, (err))

/* Stores the first line of git's output; "" if git fails. */
int fetch_line(const struct transfer *t, const struct git_call *how, char *ret_line, size_t size,
               const char *const *words, struct brig_error *err);
#define LINE(t, how, ret, err, ...)                                                                \
    fetch_line((t), (how), (ret), sizeof(ret), (const char *const[]){__VA_ARGS__, NULL}, (err))

/* Runs git; if git fails, that is an error. */
int fetch_must_run(const struct transfer *t, const struct git_call *how, struct str *out,
                   const char *const *words, struct brig_error *err);
#define MUST(t, how, out, err, ...)                                                                \
    fetch_must_run((t), (how), (out), (const char *const[]){__VA_ARGS__, NULL}, (err))

/* Whether a ref of the jail differs from its initial state; whether the contents of the index do, or
 * what is only to be added; whether an object has been fetched and pinned. */
bool fetch_is_new(const struct transfer *t, const struct ref *ref);
bool fetch_has_staged(const struct transfer *t);
bool fetch_has_intents(const struct transfer *t);
bool fetch_has_arrived(const struct transfer *t, const char *id);

/* Appends the names in an index that are only to be added, each terminated by a NUL. */
int fetch_list_intents(const struct transfer *t, const struct git_call *index,
                       struct str *ret_names, struct brig_error *err);

/* Looks at the jail, and fetches what is new, for a zeroed transfer in which git, p and space are
 * set. */
int fetch_all(struct transfer *t, struct brig_error *err);
/* Appends all objects that are new, each terminated by a NUL. */
void fetch_list_new(const struct transfer *t, struct str *ret_objects);
/* Drops the pins of objects that are not in a list, and that of the initial commit. */
int fetch_unpin(const struct transfer *t, const struct str *keep, bool keeps_base,
                struct brig_error *err);
void fetch_done(struct transfer *t);
