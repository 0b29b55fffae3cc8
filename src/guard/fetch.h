/* SPDX-License-Identifier: MIT */
/* The first half of a transfer: looks at what the jail has, what it began with and what the user's repository has now, and
 * brings new commits into a namespace of the run's own. Nothing else moves. The second half is transfer.c. */
#pragma once

#include "guard/private.h"
#include "guard/refs.h"

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

/* The error that git failed. */
int fetch_refuse(const struct transfer *t, const char *what, struct brig_error *err);

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
