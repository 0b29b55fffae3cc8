/* SPDX-License-Identifier: MIT */
/* Whether a path or host would be readable, writable or reachable in a jail, which rule decides,
 * and where writes go. Answers about paths are derived from the mounts of the plan. */
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
    WHY_HIDDEN,    /* by a rule, or because it is not in the view */
    WHY_MISSING,   /* it does not exist and cannot be created */
    WHY_FORBIDDEN, /* by its owner and mode, as on the host */
    WHY_REACHABLE, /* a host */
    WHY_UNREACHABLE,
};

/* An answer. Texts are borrowed from the policy and masks, constants, or in the struct. */
struct why_answer {
    enum why_state state;
    bool exists;                    /* path: it exists, as far as is known */
    bool unknown;                   /* whether it exists is unknown */
    bool readable, writable;        /* for a path */
    char path[PATH_LENGTH_MAX + 1]; /* path: absolute, with symbolic links resolved */
    char rule[PATH_LENGTH_MAX + 64];
    const char *origin;
    const char *written; /* path: where writes go */
};

/* The data that questions are answered from. */
struct why {
    const struct setup *setup;
    struct facts facts;
    int stand_in; /* replaces the mounts of the jail's holder, which is not asked */
    struct effects effects;
    struct masks masks;
    char home[PATH_LENGTH_MAX + 1]; /* the stored part of the jail's home, or "" */
    uid_t uid;                      /* the host uid of the jail */
    gid_t gid;
    bool stranger; /* an isolated uid, which owns no files */
    const char *network_origin, *view_origin;
    char network_text[64], view_text[64], mode_text[64];
};

/* Call it when the settings are complete. Root permanently drops its supplementary groups, as a
 * jail has none. Release with why_done. */
int why_init(struct why *why, struct setup *setup, const struct settings_scan *scan,
             struct brig_error *err);
void why_done(struct why *why);

/* Answers for an absolute path, normalised except for "..". */
void why_path(const struct why *why, const char *path, struct why_answer *ret_answer);

/* "writable", "read-only", … */
const char *why_state_name(enum why_state state);
