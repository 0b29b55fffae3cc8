/* SPDX-License-Identifier: MIT */
/* A jail prepared ahead: what template.c makes and job_start.c uses. */
#pragma once

#include "jail/plan.h"
#include "jail/spawn.h"

struct brig_template {
    struct brig_policy *policy;
    bool no_group;         /* for its limits, which are defaults */
    bool ready;            /* false: nothing could be prepared, runs are built from scratch */
    struct plan compiled;  /* owns the memory and fds of the parts */
    struct plan fresh;     /* what each run does; copied for each */
    struct spawned holder; /* keeps the user and the mount namespace */
    unsigned networks;     /* ready or ordered */
    struct spawned maker;  /* keeps network namespaces ready; pid 0 where none are needed */
};

/* Ids that the user namespace of a template maps to themselves, so that each run can take one of them,
 * as root; the last is that of its own processes. */
struct template_ids {
    uint32_t first, count;
};
/* As brig_template_new(). With PLAN_NESTED it is for a zygote, and fails where it cannot be. */
int template_new(const struct brig_policy *policy, enum plan_split_kind kind,
                 const struct template_ids *ids, struct brig_template **ret_template,
                 struct brig_error *err);

/* The plan for one run, to be completed with plan_add_command(). Returns the fd of the network
 * namespace it takes, to be closed after the start, or -1 where it makes its own. */
int template_plan(struct brig_template *template, struct plan *ret_plan);

/* After a run that took a network namespace has started: orders more if few are left. */
void template_refill(struct brig_template *template);
