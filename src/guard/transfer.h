/* SPDX-License-Identifier: MIT */
/* Brings what a jail did in its private git directory into the user's repository, with git itself.
 *
 * The private directory is untrusted: git reads it in a sealed jail only. New objects leave that jail as a pack,
 * which `git index-pack --strict` checks outside, and arrive below refs/brig/JAIL/ first. Branches, tags, HEAD and
 * the index then move if they are outside as they were when the run began; everything else stays below
 * refs/brig/JAIL/ and is reported. */
#pragma once

#include "guard/private.h"

#define TRANSFER_SPACE_MAX 160

struct transfer_report {
    struct str summary; /* "3 commits on feature/x, 1 file staged"; empty if nothing moved */
    struct str notes;   /* lines for the user, each ended by a newline */
    bool pending;       /* a rebase or merge goes on: the private directory is to be kept */
};

/* The namespace of a jail's refs, "refs/brig/NAME": characters that a ref cannot have become '_'. */
void transfer_space(const char *jail, char ret_space[TRANSFER_SPACE_MAX]);

/* Fetches new commits below refs/brig/JAIL/ and moves nothing: for a run that goes on. */
int transfer_fetch(const struct git *git, const struct private_git *private_git, const char *jail,
                   struct brig_error *err);

/* Fetches, and moves branches, tags, HEAD and the index. Can be repeated after an interruption at any point. If
 * processes of the run are left, `running`: what has arrived is what the jail began with from now on, and config, and
 * a branch or index with a new submodule, are left for the end. */
int transfer_finish(const struct git *git, const struct private_git *private_git, const char *jail,
                    bool running, struct transfer_report *report, struct brig_error *err);
