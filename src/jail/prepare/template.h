/* SPDX-License-Identifier: MIT */
/* A template: namespaces and mounts prepared in advance by template.c and used by job_start.c. */
#pragma once

#include <pthread.h>

#include "jail/cgroup/limits.h"
#include "jail/job/spawn.h"
#include "jail/plan/plan.h"

/* Ids that a template's user namespace maps to themselves, so that each run can take one of them,
 * if brig is root; the last id is for the template's processes. */
struct template_ids {
    uint32_t first, count;
};

struct brig_template {
    struct brig_policy *policy;
    struct template_ids ids; /* count 0: runs have the template's id */
    bool nested;             /* each run makes a nested user namespace */
    bool ready;              /* false: preparing failed, runs are built from scratch */
    struct plan compiled;    /* owns the memory and fds of the parts */
    struct plan fresh;       /* the steps of each run; copied for each */
    struct spawned holder;   /* keeps the user and the mount namespaces */
    pid_t owner;             /* the process whose children holder and maker are */
    /* Guards the maker's socket and `networks`; all else is constant. It is only ever tried: in a
     * process that was forked meanwhile it may stay locked for ever. */
    pthread_mutex_t lock;
    unsigned networks;    /* namespaces available or ordered */
    struct spawned maker; /* makes network namespaces in advance; pid 0 if none are needed */
};

/* Like brig_template_new(). PLAN_NESTED is for a zygote or for runs with different policies, and
 * fails where the kernel does not allow it. */
int template_new(const struct brig_policy *policy, enum plan_split_kind kind,
                 const struct template_ids *ids, struct brig_template **ret_template,
                 struct brig_error *err);

/* Makes the plan for one run, to be completed with plan_add_command(). Returns the fd of the
 * network namespace that the run takes, to be closed after the start, or -1 if the run makes
 * one. */
int template_plan(struct brig_template *template, struct plan *ret_plan);

/* Called after a run took a network namespace and started: orders more if few are left. */
void template_refill(struct brig_template *template);

/* Returns whether a run with this policy can use the template: the policy may differ only in its
 * environment, the content of its files, its limits (except those on private directories) and, if
 * ids->count is set, its host id. */
bool template_fits(const struct brig_template *template, const struct brig_policy *policy);
/* Returns whether the paths still lead to the files that are mounted in the template. */
bool template_is_current(const struct brig_template *template);
/* Adapts the plan of template_plan() to such a policy, which must live until the start. */
int template_adapt(const struct brig_template *template, const struct brig_policy *policy,
                   struct plan *plan, struct brig_error *err);
