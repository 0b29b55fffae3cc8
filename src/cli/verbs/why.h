/* SPDX-License-Identifier: MIT */
/* Whether a path, a host or a variable would be readable, writable, reachable or passed on in a jail, which rule
 * decides, and where writes go. Answers about paths are derived from the mounts of the plan. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include <brig/brig.h>

#include "base/path.h"
#include "cli/run/masks.h"
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
    WHY_PASSED, /* a variable */
    WHY_WITHHELD,
};

enum why_kind { WHY_PATH, WHY_HOST, WHY_VARIABLE };

/* An answer. Texts are borrowed from the policy and masks, constants, or in the struct. */
struct why_answer {
    enum why_kind kind;
    enum why_state state;
    bool exists;             /* path: it exists, as far as is known; variable: it is set outside */
    bool unknown;            /* whether it exists is unknown */
    bool readable, writable; /* for a path */
    char path[PATH_LENGTH_MAX + 1]; /* path: absolute, with symbolic links resolved */
    char rule[PATH_LENGTH_MAX + 64];
    const char *origin;
    const char *written; /* path: where writes go; variable: more about its value, or NULL */
    char remedy[PATH_LENGTH_MAX + 64]; /* variable: the options that pass it on, or "" */
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

/* Whether a word can be a variable: it is set, or a rule of the policy matches its name. Then why_is_only_variable()
 * says that it is not a host, too, by its letters. */
bool why_is_variable(const struct why *why, const char *word);
bool why_is_only_variable(const char *word);
void why_variable(const struct why *why, const char *name, struct why_answer *ret_answer);

/* "writable", "read-only", … */
const char *why_state_name(enum why_state state);
