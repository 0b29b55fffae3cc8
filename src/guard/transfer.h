/* SPDX-License-Identifier: MIT */
/* Brings what a jail did in its private git directory into the user's repository, with git itself.
 *
 * The private directory is untrusted: git reads it in a sealed jail only. New objects leave that jail as a pack,
 * which `git index-pack --strict` checks outside, and arrive below refs/brig/JAIL/RUN/ first (fetch.h). Branches, tags,
 * HEAD, the index and stashes then move if they are outside as they were when the run began; everything else stays
 * below refs/brig/JAIL/RUN/, where no other run changes it, and is reported. */
#pragma once

#include "guard/private.h"

#define TRANSFER_SPACE_MAX 200

struct transfer_report {
    struct str summary; /* "3 commits on feature/x, 1 file staged"; empty if nothing moved */
    struct str notes;   /* lines for the user, each ended by a newline */
    bool pending;       /* a rebase or merge goes on: the private directory is to be kept */
};

/* Fetches new commits into the namespace and moves nothing: for a run that goes on. */
int transfer_fetch(const struct git *git, const struct private_git *private_git, const char *space,
                   struct brig_error *err);

enum {
    /* Processes of the run are left: what has arrived is what the jail began with from now on, and config, and a branch
     * or index with a new submodule, are left for the end. */
    TRANSFER_RUNNING = 1,
    /* There may be repositories in the working tree that were not treated: nothing with a new submodule moves, as git
     * would look into it. */
    TRANSFER_UNSEARCHED = 2,
};

/* Fetches, and moves branches, tags, HEAD and the index. Can be repeated after an interruption at any point. */
int transfer_finish(const struct git *git, const struct private_git *private_git, const char *space,
                    unsigned flags, struct transfer_report *report, struct brig_error *err);

/* ---- lists of refs ---- */

/* As git prints them, one "OBJECT NAME" a line. Pure. */

#define REFS_ID_MAX 64 /* hexadecimal digits of SHA-256 */
#define REFS_MAX 1000000
#define REFS_STASHES "refs/stashes/" /* with the id of a stash: only below refs/brig */

struct ref {
    const char *id; /* both point into the text they were read from */
    const char *name;
};

struct refs {
    struct ref *items; /* owned; sorted by name */
    size_t count;
    size_t skipped; /* lines that are not as expected, or whose names are not safe */
};

/* Whether this is the hexadecimal name of an object. */
bool refs_is_id(const char *text);
/* Whether a full name is safe to create outside: below refs/heads/, refs/tags/ or refs/notes/, with characters
 * that mean nothing to a shell, a terminal or git itself. */
bool refs_is_safe(const char *name);

/* Reads a text, which is changed and must outlive the list. Release with refs_done(). */
int refs_read(char *text, struct refs *ret_refs, struct brig_error *err);
void refs_done(struct refs *refs);
/* The ref of a name, and its object; NULL if there is none. */
const struct ref *refs_get(const struct refs *refs, const char *name);
const char *refs_find(const struct refs *refs, const char *name);

/* ---- LFS ---- */

/* Objects of Git LFS: the content of large files, which git itself does not have. git-lfs looks for them in lfs/objects
 * of the common git directory, and beside each object directory that info/alternates names. Their names are their
 * hashes: lfs/objects/01/23/0123…. */

/* The LFS objects beside an object directory: an fd, or -1 if there are none. */
int lfs_open_beside(int objects);

/* Copies the LFS objects that a jail has in its private git directory into the repository's, if their hash is right and they
 * are not there yet. */
int lfs_transfer(int private_dir, int common, struct brig_error *err);

/* ---- the first half: fetch.c ---- */

/* Looks at what the jail has, what it began with and what the user's repository has now, and brings new commits into a
 * namespace of the run's own. Nothing else moves. */

#define FETCH_STASHES_MAX 1000

struct fetch_stash {
    const char *id, *text;
};

/* What one side looks like. */
struct side {
    struct str text; /* the list of refs is in it */
    struct refs refs;
    char head[1100];              /* "refs/heads/NAME", the object of a detached HEAD, or "" */
    char tree[REFS_ID_MAX + 1];   /* of the index, or "" if it has none, as while a merge goes on */
    char staged[REFS_ID_MAX + 1]; /* a commit with this tree; only inside */
    struct str stash_text;
    struct fetch_stash stashes[FETCH_STASHES_MAX]; /* the newest first, in stash_text */
    size_t stash_count;
};

struct transfer {
    const struct git *git;
    const struct private_git *p;
    const char *space;        /* where refs of this run arrive: "refs/brig/JAIL/RUN" */
    char *base_index;         /* the path of the index in p->base */
    struct git_call base_git; /* calls git on p->base, which has refs and no objects */
    char *objects;            /* the path of the repository's */
    struct side inside, base, outside;
    struct side kept;      /* what is below `space`, under the names that it has in the jail */
    struct side remotes;   /* only refs: those below refs/remotes */
    bool unmerged;         /* inside */
    char pending[16];      /* what goes on inside: "rebase", "merge" …, or "" */
    bool unsearched;       /* see transfer.h */
    bool running;          /* the run goes on */
    bool same_index;       /* the index outside is as at the beginning, or as inside */
    bool *moves;           /* of inside.refs, those that are to move */
    bool keeps_staged;     /* the index of the jail is kept as a ref */
    bool refused;          /* git has refused to change a ref */
    unsigned update_count; /* how often a list of refs was halved */
    struct transfer_report *report;
    bool lost; /* something could not be fetched */
};

/* Runs git, on the user's repository if `how`, which may be NULL, names no other; its exit status or a negative code. */
int fetch_run(const struct transfer *t, const struct git_call *how, struct str *out,
              const char *const *words, struct brig_error *err);
#define RUN(t, how, out, err, ...)                                                                 \
    fetch_run((t), (how), (out), (const char *const[]){__VA_ARGS__, NULL}, (err))

/* The first line of what git prints, in an array; "" if it fails. */
int fetch_line(const struct transfer *t, const struct git_call *how, char *ret_line, size_t size,
               const char *const *words, struct brig_error *err);
#define LINE(t, how, ret, err, ...)                                                                \
    fetch_line((t), (how), (ret), sizeof(ret), (const char *const[]){__VA_ARGS__, NULL}, (err))

/* The same, and a failure of git is an error. */
int fetch_must_run(const struct transfer *t, const struct git_call *how, struct str *out,
                   const char *const *words, struct brig_error *err);
#define MUST(t, how, out, err, ...)                                                                \
    fetch_must_run((t), (how), (out), (const char *const[]){__VA_ARGS__, NULL}, (err))

/* Gives lines to git update-ref --stdin: all at once; if git refuses, each half by itself, so that one bad ref does not keep
 * the others. */
int fetch_update_refs(struct transfer *t, const struct str *updates, struct brig_error *err);

int fetch_look_outside(const struct transfer *t, struct side *side, const struct git_call *how,
                       struct brig_error *err);
int fetch_look_at_kept(struct transfer *t, struct brig_error *err);
void fetch_side_done(struct side *side);

/* Whether a ref of the jail is not as it began; whether the index is; whether a ref has arrived in the namespace. */
bool fetch_is_new(const struct transfer *t, const struct ref *ref);
bool fetch_has_staged(const struct transfer *t);
bool fetch_has_arrived(const struct transfer *t, const struct ref *ref);

/* Whether a list of stashes has this one: its index, or -1. */
int fetch_find_stash(const struct side *side, const char *id);

/* Where a ref of the jail is kept outside: refs/heads/x as refs/brig/JAIL/RUN/heads/x. */
void fetch_append_kept(const struct transfer *t, struct str *text, const char *name);

/* All of it, for a zeroed transfer in which git, p and space are set. */
int fetch_all(struct transfer *t, struct brig_error *err);
void fetch_done(struct transfer *t);
