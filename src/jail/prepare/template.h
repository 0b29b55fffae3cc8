/* SPDX-License-Identifier: MIT */
/* A jail prepared ahead: what template.c makes and job_start.c uses. */
#pragma once

#include "jail/cgroup/limits.h"
#include "jail/job/spawn.h"
#include "jail/plan/plan.h"

/* Ids that the user namespace of a template maps to themselves, so that each run can take one of them,
 * as root; the last is that of its own processes. */
struct template_ids {
    uint32_t first, count;
};

struct brig_template {
    struct brig_policy *policy;
    struct template_ids ids; /* count 0: none, runs are who the template is */
    bool nested;             /* each run has a user namespace of its own */
    bool ready;              /* false: nothing could be prepared, runs are built from scratch */
    struct plan compiled;    /* owns the memory and fds of the parts */
    struct plan fresh;       /* what each run does; copied for each */
    struct spawned holder;   /* keeps the user and the mount namespace */
    unsigned networks;       /* ready or ordered */
    struct spawned maker;    /* keeps network namespaces ready; pid 0 where none are needed */
};

/* As brig_template_new(). With PLAN_NESTED it is for a zygote or for runs with policies of their own, and fails
 * where it cannot be. */
int template_new(const struct brig_policy *policy, enum plan_split_kind kind,
                 const struct template_ids *ids, struct brig_template **ret_template,
                 struct brig_error *err);

/* The plan for one run, to be completed with plan_add_command(). Returns the fd of the network
 * namespace it takes, to be closed after the start, or -1 where it makes its own. */
int template_plan(struct brig_template *template, struct plan *ret_plan);

/* After a run that took a network namespace has started: orders more if few are left. */
void template_refill(struct brig_template *template);

/* Whether a run with this policy, which has nothing of its own but its environment, the content of its
 * files, its limits (those on private directories aside) and, of ids->count, its host id, can be one
 * of the template's. In template_run.c, as all below. */
bool template_fits(const struct brig_template *template, const struct brig_policy *policy);
/* Whether what is mounted in it is still what is at those paths. */
bool template_is_current(const struct brig_template *template);
/* Makes the plan of template_plan() that of such a policy, which is borrowed until the start. */
int template_adapt(const struct brig_template *template, const struct brig_policy *policy,
                   struct plan *plan, struct brig_error *err);
