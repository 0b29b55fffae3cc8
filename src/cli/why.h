/* SPDX-License-Identifier: MIT */
/* Whether something would be readable, writable or reachable in a jail, by which rule, and where what
 * is written to it goes. Answers about paths are read off the mounts of the plan that a run would have. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/path.h"
#include "cli/masks.h"
#include "jail/plan/effects.h"
#include "jail/plan/facts.h"

struct settings_scan;
struct setup;

enum why_state {
    WHY_WRITABLE,
    WHY_READ_ONLY,
    WHY_HIDDEN,    /* by a rule, or because the view does not have it */
    WHY_MISSING,   /* there is nothing, and nothing can be made there */
    WHY_FORBIDDEN, /* by its owner and mode, as outside */
    WHY_REACHABLE, /* a host */
    WHY_UNREACHABLE,
};

/* An answer. Texts are borrowed from the policy and masks, constant, or its own. */
struct why_answer {
    enum why_state state;
    bool exists;                    /* a path: there is something, as far as can be told */
    bool unknown;                   /* what is there now cannot be told */
    bool readable, writable;        /* a path */
    char path[PATH_LENGTH_MAX + 1]; /* a path: absolute, with symbolic links followed */
    char rule[PATH_LENGTH_MAX + 64];
    const char *origin;
    const char *written; /* a path: where what is written goes */
};

/* What questions are answered from. */
struct why {
    const struct setup *setup;
    struct facts facts;
    int stand_in; /* for the mounts of the jail's holder, which is not asked */
    struct effects effects;
    struct masks masks;
    char home[PATH_LENGTH_MAX + 1]; /* what is kept of the jail's home, or "" */
    uid_t uid;                      /* as whom the jail lives on the host */
    gid_t gid;
    bool stranger; /* it owns nothing there */
    const char *network_origin, *view_origin;
    char network_text[64], view_text[64], mode_text[64];
};

/* After the settings are complete. Root lets go of its supplementary
 * groups, for good: a jail has none. Release with why_done. */
int why_init(struct why *why, struct setup *setup, const struct settings_scan *scan,
             struct brig_error *err);
void why_done(struct why *why);

/* An absolute path, normalised but for "..". */
void why_path(const struct why *why, const char *path, struct why_answer *ret_answer);
/* A name that is no path. */
void why_host(const struct why *why, const char *name, struct why_answer *ret_answer);

/* "writable", "read-only", … */
const char *why_state_name(enum why_state state);
