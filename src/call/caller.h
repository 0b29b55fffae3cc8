/* SPDX-License-Identifier: MIT */
/* What calls have in common, thought through once: the policy in force, and the restrictions made of it. */
#pragma once

#include <pthread.h>

#include <brig/call.h>

#include "call/child_status.h"
#include "jail/cgroup/limits.h"
#include "jail/plan/plan.h"
#include "jail/prepare/template.h"

/* Nothing in it changes after brig_caller_new(), but for what `lock` guards and the statuses. */
struct brig_caller {
    struct brig_policy *policy;       /* in force */
    struct brig_call_options options; /* scalars only; BRIG_CALL_SAME is resolved */
    int keep_fds[BRIG_CALL_KEEP_MAX];
    size_t keep_count;
    uint64_t value_limit;
    bool full;        /* the full jail, else Landlock and its kind */
    struct plan plan; /* not full: the limits and the filter */
    int ruleset;      /* Landlock's, made ahead; -1: there is none */
    int null_fd;      /* /dev/null */
    bool has_group;   /* each call has a cgroup */
    uint64_t cores;   /* that may be used at a time */
    pthread_mutex_t lock;
    struct brig_template *template; /* full; guarded by the lock */
    struct child_statuses statuses;
    struct brig_unenforced unenforced;
};

/* Lists the limits that have no group, and returns those that resource limits stand in for. */
unsigned caller_note_limits(const struct brig_caller *caller, const struct limits *limits,
                            struct brig_unenforced *unenforced);

/* ---- options.c ---- */

/* The policy that options and policy (may be NULL) make together, for brig_policy_free(). */
int options_policy(const struct brig_policy *policy, const struct brig_call_options *options,
                   struct brig_policy **ret_policy, struct brig_error *err);
/* Whether a call with that policy may keep an fd open. Also in the child: no allocation. */
int options_check_fd(const struct brig_policy *policy, int fd, struct brig_error *err);
/* A copy with BRIG_CALL_SAME resolved and everything checked that can be. */
int options_check(const struct brig_call_options *options, struct brig_call_options *ret_options,
                  struct brig_error *err);

/* ---- confine.c ---- */

/* The restrictions of a process in its caller's namespaces: the plan, and the Landlock ruleset with its
 * rules, an fd of the caller's or -1. Lists what the process is not kept from. */
int confine_prepare(const struct brig_policy *policy, struct plan *plan, int *ret_ruleset,
                    struct brig_unenforced *unenforced, struct brig_error *err);
/* Whether a policy grants a path, which must be free of links, for reading or writing. */
bool confine_cover(const struct brig_policy *policy, const char *real, bool write);
/* Everything that is raised around a process that runs, in order; `ruleset` may be -1. 0, or the
 * PLAN_STEP_… that failed with the negated errno in *ret_error. System calls only. */
int confine_apply(const struct plan *plan, int ruleset, int *ret_error);
