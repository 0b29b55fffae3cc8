/* SPDX-License-Identifier: MIT */
/* Transfers the changes in a jail's private git directory to the user's repository, with git
 * itself.
 *
 * The private directory is untrusted: git reads it only in a sealed jail. New objects leave that
 * jail as a pack, which `git index-pack --strict` checks outside, and their refs are first created
 * below refs/brig/JAIL/RUN/ (fetch.c). Branches, tags, HEAD, the index and stashes then move if
 * they have not changed outside since the start of the run; everything else stays below
 * refs/brig/JAIL/RUN/, where no other run changes it, and is reported. */
#pragma once

#include "git/private.h"
#include "git/side.h"

#define TRANSFER_SPACE_MAX 200

struct transfer_report {
    struct str summary; /* "3 commits on feature/x, 1 file staged"; empty if nothing moved */
    struct str notes;   /* messages for the user, one per line */
    bool pending;       /* a rebase or merge is unfinished: keep the private directory */
};

/* Fetches new commits into the namespace and moves nothing: for an active run. */
int transfer_fetch(const struct git *git, const struct private_git *private_git, const char *space,
                   struct brig_error *err);

enum {
    /* Processes of the run are left: the transferred state becomes the jail's new initial state.
     * Config, and a branch or index with a new submodule, wait for the end of the run. */
    TRANSFER_RUNNING = 1,
    /* The working tree may contain repositories that were not handled: nothing with a new submodule
     * moves, because git would look into the submodule. */
    TRANSFER_UNSEARCHED = 2,
};

/* Fetches, and moves branches, tags, HEAD and the index. Can be repeated after an interruption at
 * any point. */
int transfer_finish(const struct git *git, const struct private_git *private_git, const char *space,
                    unsigned flags, struct transfer_report *report, struct brig_error *err);

/* ---- LFS ---- */

/* Objects of Git LFS: the contents of large files, which git itself does not store. git-lfs looks
 * for them in lfs/objects of the common git directory, and beside each object directory that
 * info/alternates names. Their names are their hashes: lfs/objects/01/23/0123…. */

/* Opens the LFS objects beside an object directory: an fd, or -1 if there are none. */
int lfs_open_beside(int objects);

/* Copies the LFS objects of a jail's private git directory into the repository, if they are missing
 * there and their hash is right. */
int lfs_transfer(int private_dir, int common, struct brig_error *err);

/* ---- the first half: fetch.c ---- */

/* Examines the refs and the index of the jail, of its initial state and of the user's repository,
 * and fetches new commits into the namespace of the run. Nothing else moves. */

struct transfer {
    const struct git *git;
    const struct private_git *p;
    const char *space;        /* the namespace for the refs of this run: "refs/brig/JAIL/RUN" */
    char *base_index;         /* the path of the index in p->base */
    struct git_call base_git; /* for git on p->base, which has refs but no objects */
    char *objects;            /* the path of the repository's object directory */
    struct side inside, base, outside;
    struct side kept;      /* the refs below `space`, under their names in the jail */
    struct side remotes;   /* only refs: those below refs/remotes */
    bool unmerged;         /* the index inside has conflicts */
    char pending[16];      /* the unfinished operation inside: "rebase", "merge" …, or "" */
    bool unsearched;       /* see transfer.h */
    bool running;          /* the run is active */
    bool same_index;       /* the index outside equals the initial one or the one inside */
    bool *moves;           /* which of inside.refs are to move */
    bool keeps_staged;     /* the index of the jail is kept as a ref */
    bool refused;          /* git has refused to update a ref */
    unsigned update_count; /* how often a list of refs was halved */
    struct transfer_report *report;
    bool lost; /* something could not be fetched */
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

/* Passes lines to git update-ref --stdin, all at once; if git refuses, each half separately, so
 * that one bad ref does not block the others. */
int fetch_update_refs(struct transfer *t, const struct str *updates, struct brig_error *err);

int fetch_look_at_kept(struct transfer *t, struct brig_error *err);

/* Whether a ref of the jail differs from its initial state; whether the index does; whether a ref
 * has been fetched into the namespace. */
bool fetch_is_new(const struct transfer *t, const struct ref *ref);
bool fetch_has_staged(const struct transfer *t);
bool fetch_has_arrived(const struct transfer *t, const struct ref *ref);

/* Appends the name under which a ref of the jail is kept outside: refs/heads/x as
 * refs/brig/JAIL/RUN/heads/x. */
void fetch_append_kept(const struct transfer *t, struct str *text, const char *name);

/* Runs the whole first half, for a zeroed transfer in which git, p and space are set. */
int fetch_all(struct transfer *t, struct brig_error *err);
void fetch_done(struct transfer *t);
