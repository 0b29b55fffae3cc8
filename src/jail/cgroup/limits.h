/* SPDX-License-Identifier: MIT */
/* A policy's limits on the whole jail: the cgroup that enforces them, and replacements without
 * one. */
#pragma once

#include "jail/cgroup/cgroup.h"
#include "jail/job/result.h"
#include "jail/nested_limits/nested_limits.h"
#include "policy/policy.h"

/* Zero-initialise. It stays zero if no limit needs a cgroup. */
struct limits {
    struct cgroup *group;              /* owned; may be of kind CGROUP_NONE */
    struct nested_limits_lease *lease; /* or, inside a jail, a leaf leased from its supervisor */
    unsigned missing;     /* enum cgroup_resource bits that are requested and unavailable */
    bool shared;          /* the jail shares its user namespace with others: a template */
    bool foreseen;        /* limits_foresee() found that there would be a cgroup */
    bool settled_later;   /* limits_settle() will be called when the jail is built */
    unsigned cpu_percent; /* the CPU limit that limits_settle() sets, or 0 */
};

/* Creates the cgroup, or asks the supervisor of the surrounding jail for a leaf. A requested limit
 * that is unavailable fails with BRIG_E_UNSUPPORTED if the policy says so; a default of the mode
 * never fails. */
int limits_init(struct limits *limits, const struct brig_policy *policy, struct brig_error *err);
/* The same for a command in a running jail: makes a leaf below the jail's group, which has to live
 * longer. Without a group, which may be NULL, all limits are missing. */
int limits_init_leaf(struct limits *limits, const struct brig_policy *policy, struct cgroup *jail,
                     struct brig_error *err);
/* Works without a cgroup: limits that need one are missing. */
void limits_skip(struct limits *limits, const struct brig_policy *policy);
/* Sets a small CPU limit once the jail is built: the child builds the jail inside the cgroup while
 * the caller waits, and the limit would slow the build down. */
int limits_settle(struct limits *limits, struct brig_error *err);
/* Predicts limits_init() from the policy's facts. *ret_grouped gets the resources that a cgroup
 * would limit, 0 without a cgroup. */
int limits_foresee(struct limits *limits, const struct brig_policy *policy, unsigned *ret_grouped,
                   struct brig_error *err);
void limits_done(struct limits *limits);

void limits_usage(const struct limits *limits, struct cgroup_usage *ret_usage);
/* Called before the jail is killed: see cgroup_unthrottle(). */
void limits_unthrottle(const struct limits *limits);
/* Adds the missing limits and their replacements to the list. Returns the bits of the resources for
 * which rlimits are to be set; `apart`: the jail has a user namespace. */
unsigned limits_note(const struct limits *limits, const struct brig_policy *policy, bool apart,
                     struct brig_unenforced *unenforced);
