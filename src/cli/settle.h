/* SPDX-License-Identifier: MIT */
/* Runs that were killed are ended in their place: before a run begins, by brig sync, and by each verb that hands something
 * over. */
#pragma once

#include <stdbool.h>

#include <brig/brig.h>

#include "git/git.h"

struct str;

struct settle {
    const char *storage; /* the directory with all jails */
    const char *jail;    /* of which each killed run is ended */
    const struct str *
        places; /* a list of directories: of the user's other jails, runs that could write to one of them, or
                               * to something in one; NULL: none */
    struct git_user user; /* who owns the projects, if the caller is root */
    bool
        all; /* for brig sync: also what has failed before, and what active runs have done so far */
};

/* Ends them: see run_end(). Messages are appended to `notes`; those about another jail begin with its name. Needs the ids of the
 * user. */
int settle(const struct settle *settle, struct str *notes, struct brig_error *err);

/* The same for a verb in the working directory, which prints the messages. */
int settle_here(const char *storage, const char *jail, struct brig_error *err);
