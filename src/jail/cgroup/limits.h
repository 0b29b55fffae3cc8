/* SPDX-License-Identifier: MIT */
/* A policy's limits on the whole jail: the group that holds them, and what is done without one. */
#pragma once

#include "jail/cgroup/cgroup.h"
#include "jail/nested_limits/nested_limits.h"
#include "policy/policy.h"

/* Zero-initialise. Without any limit that takes a group, all of it stays so. */
struct limits {
    struct cgroup *group;              /* ours; may be of kind CGROUP_NONE */
    struct nested_limits_lease *lease; /* or, inside a jail, what its supervisor gave us */
    unsigned missing;     /* enum cgroup_resource bits that are wanted and cannot be had */
    bool shared;          /* the jail's user namespace is that of others, too: a template's */
    bool foreseen;        /* limits_foresee() says that there would be a group */
    bool settled_later;   /* limits_settle() will be called once the jail is built */
    unsigned cpu_percent; /* the CPU limit that then comes, if it has to; else 0 */
};

/* Makes the group, or asks the supervisor of the jail we are in for one. What was asked for and is
 * missing fails with BRIG_E_UNSUPPORTED if the policy says so; what is only the mode's default never
 * does. */
int limits_init(struct limits *limits, const struct brig_policy *policy, struct brig_error *err);
/* Does without a group: what takes one is missing. */
void limits_skip(struct limits *limits, const struct brig_policy *policy);
/* The build of a jail is in its group already, and who starts it waits for that: a small share of the
 * CPU is set only now. */
int limits_settle(struct limits *limits, struct brig_error *err);
/* What limits_init() would come to by the policy's facts. *ret_grouped are the resources that a group
 * would limit, 0 without one. */
int limits_foresee(struct limits *limits, const struct brig_policy *policy, unsigned *ret_grouped,
                   struct brig_error *err);
void limits_done(struct limits *limits);

void limits_usage(const struct limits *limits, struct cgroup_usage *ret_usage);
/* Before everything is killed: see cgroup_unthrottle(). */
void limits_unthrottle(const struct limits *limits);
/* Lists what is missing, and what is done instead. Returns the bits of that for which resource
 * limits are to be set; `apart`: the jail has a user namespace. */
unsigned limits_note(const struct limits *limits, const struct brig_policy *policy, bool apart,
                     struct brig_unenforced *unenforced);
