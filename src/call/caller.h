/* SPDX-License-Identifier: MIT */
/* The state shared by all calls of a brig_caller, computed once: the policy in force and the
 * restrictions compiled from it. */
#pragma once

#include <brig/call.h>

#include "call/child_status.h"
#include "call/result.h"
#include "jail/cgroup/limits.h"
#include "jail/plan/plan.h"
#include "jail/prepare/template.h"

/* After brig_caller_new() only the statuses change, and the template, which has a lock. */
struct brig_caller {
    struct brig_policy *policy;       /* in force */
    struct brig_call_options options; /* scalars only; BRIG_CALL_SAME has been replaced */
    int keep_fds[BRIG_CALL_KEEP_MAX];
    size_t keep_count;
    uint64_t value_limit;
    bool full;              /* full jail; otherwise Landlock, seccomp and resource limits only */
    struct plan plan;       /* not full: limits and filter */
    int ruleset;            /* Landlock ruleset shared by all calls; -1: none */
    int null_fd;            /* /dev/null */
    bool has_group;         /* each call has a cgroup */
    uint64_t cores;         /* CPUs online */
    const char *no_network; /* why calls do not have the policy's network; NULL: they have it */
    struct brig_template *template; /* full */
    struct child_statuses statuses;
    struct brig_unenforced unenforced;
};

/* Adds limits that cannot be enforced without a cgroup to `unenforced`. Returns the limits that
 * resource limits replace. */
unsigned caller_note_limits(const struct brig_caller *caller, const struct limits *limits,
                            struct brig_unenforced *unenforced);

/* Adds a network that calls do not have to `unenforced`. */
void caller_note_network(const struct brig_caller *caller, struct brig_unenforced *unenforced);

/* ---- caller.c: options ---- */

/* Builds the policy in force from `options` and `policy` (may be NULL). Release it with
 * brig_policy_free(). */
int options_policy(const struct brig_policy *policy, const struct brig_call_options *options,
                   struct brig_policy **ret_policy, struct brig_error *err);
/* Checks that a call with this policy may keep `fd` open. Also called in the child: it does not
 * allocate. */
int options_check_fd(const struct brig_policy *policy, int fd, struct brig_error *err);
/* Copies the options with BRIG_CALL_SAME replaced, and checks all that can be checked early. */
int options_check(const struct brig_call_options *options, struct brig_call_options *ret_options,
                  struct brig_error *err);

/* ---- confine.c ---- */

/* Prepares the restrictions of a process that stays in its caller's namespaces: the plan and a
 * complete Landlock ruleset. *ret_ruleset is owned by the caller, or -1. Adds what cannot be
 * restricted to `unenforced`. */
int confine_prepare(const struct brig_policy *policy, struct plan *plan, int *ret_ruleset,
                    struct brig_unenforced *unenforced, struct brig_error *err);
/* Returns whether the policy grants `real`, a path without symlinks, for reading or writing. */
bool confine_cover(const struct brig_policy *policy, const char *real, bool write);
/* Applies all restrictions to the running process, in order; `ruleset` may be -1. Returns 0, or the
 * PLAN_STEP_… that failed with the negated errno in *ret_error. Makes system calls only. */
int confine_apply(const struct plan *plan, int ruleset, int *ret_error);
