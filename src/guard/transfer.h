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

/* The namespace of a run's refs for its working tree `number`, "refs/brig/JAIL/RUN": characters of the jail's name that a ref
 * cannot have become '_', and of `run`, hexadecimal digits, the first are used. */
void transfer_name_space(const char *jail, const char *run, unsigned number,
                         char ret_space[TRANSFER_SPACE_MAX]);

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
