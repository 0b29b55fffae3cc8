/* SPDX-License-Identifier: MIT */
/* Protected paths: what programs outside would run or obey if somebody in the jail wrote it, such as
 * git's hooks and settings and those of editors and agents, in the directories a run may write to.
 *
 * They are read-only inside and cannot be moved out of the way. Where one does not exist, its name is
 * taken up by a placeholder for as long as the run lasts: in the working directory, and in other
 * directories that have a repository. A repository elsewhere, which a `.git` file names, is granted
 * if it names the directory back.
 *
 * Looked at is the top of each granted directory, with the repository it belongs to: a repository
 * further down in it, or made there by the run, is not protected. */
#pragma once

#include <stdbool.h>

#include "cli/placeholder.h"

struct brig_policy;
struct identity;
struct settings;

struct protect_seen;

/* What a run holds, and what it found. */
struct protect {
    struct placeholders held;
    struct protect_seen *seen;
    size_t seen_count;
    size_t first_rule;               /* where the rules began when they were added */
    struct brig_policy *policy;      /* of the settings, and */
    const struct identity *identity; /* with whose rights names are taken up */
};

#define PROTECT_INIT                                                                               \
    (struct protect)                                                                               \
    {                                                                                              \
        .held = {.journal = -1 }                                                                   \
    }

/* Whether there is anything to look at: if not, no journal need be opened. */
bool protect_is_wanted(const struct settings *settings);

/* When everything else is in the policy: adds the rules. Names are taken up later, as an errand of the
 * policy's (see policy.h), for which *ret_protect, the settings and the identity must stay where they
 * are. The journal of placeholders is kept in a directory, which stays the caller's; -1 if there is
 * none. With --dry-run nothing is made. Release with protect_done, also if it fails. To be called with
 * the rights of the user the jail is for. */
int protect_apply(struct settings *settings, const struct identity *identity, int journal_dir,
                  struct protect *ret_protect, struct brig_error *err);

/* After a run that failed: says so if it was git, which does not know why. */
void protect_advise(const struct settings *settings, const char *program);

/* After the run: removes the placeholders nobody else needs, and tells of what it left that git outside
 * would obey. With the same rights. */
void protect_tidy(struct protect *protect);
/* The same, and lets go of all. */
void protect_done(struct protect *protect);
