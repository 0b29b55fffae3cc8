/* SPDX-License-Identifier: MIT */
/* The plan that a run would have: the steps of job_start.c that only think. */
#include "jail/job/foresee.h"

#include <errno.h>

#include "base/error.h"
#include "jail/cgroup/limits.h"
#include "jail/job/job.h"
#include "jail/job/streams.h"
#include "jail/plan/facts.h"
#include "jail/plan/plan_print.h"

static int plan_rung(const struct brig_policy *policy, enum plan_rung rung,
                     const struct limits *limits, struct plan *plan, struct brig_error *err)
{
    if (rung == PLAN_FULL && !policy->facts->namespaces)
        return plan_explain_failure(plan, PLAN_STEP_CLONE, EPERM, err);
    if (rung == PLAN_LANDLOCK &&
        (policy->disabled_layers & BRIG_LAYER_LANDLOCK || policy->facts->landlock == 0))
        return brig_fail(
            err, BRIG_E_UNSUPPORTED, 0,
            "neither namespaces nor Landlock can be used: the filesystem would be open");
    return plan_compile(policy, rung, 0, limits, plan, err);
}

/* Down the ladder as climb_down() does. */
static int plan_jail(const struct brig_policy *policy, const struct limits *limits,
                     struct plan *plan, struct brig_error *err)
{
    int rung = policy->disabled_layers & BRIG_LAYER_NAMESPACES ? PLAN_LANDLOCK : PLAN_FULL;
    for (;; rung++) {
        struct brig_error local = {0};
        *plan = PLAN_INIT;
        int result = plan_rung(policy, (enum plan_rung)rung, limits, plan, &local);
        if (result == 0)
            return 0;
        plan_done(plan);
        if (result != BRIG_E_UNSUPPORTED || policy->on_unsupported == BRIG_UNSUPPORTED_FAIL ||
            rung == PLAN_LIMITS) {
            if (err)
                *err = local;
            return result;
        }
    }
}

static int add_command(struct plan *plan, const struct brig_policy *policy,
                       const struct brig_command *command, const struct streams *streams,
                       struct brig_error *err)
{
    const struct plan_input input = {
        .policy = policy,
        .command = command,
        .stdio_fds = {streams->fds[0], streams->fds[1], streams->fds[2]},
        .wants_pty = streams_want_pty(streams),
        .host_terminal = -1,
        .pty_fd = -1,
    };
    return plan_add_command(plan, &input, err);
}

int job_foresee(const struct brig_policy *policy, const struct brig_command *command,
                struct str *out, struct brig_error *err)
{
    struct limits limits = {0};
    struct streams streams = STREAMS_NONE;
    __attribute__((cleanup(plan_done))) struct plan plan = PLAN_INIT;
    struct identity identity;
    unsigned grouped = 0;
    int result = streams_check(command, err);
    for (int i = 0; i < 3 && result == 0; i++)
        result = streams_open(NULL, policy, &command->stdio[i], i, &streams, err);
    if (result == 0)
        result = limits_foresee(&limits, policy, &grouped, err);
    if (result == 0)
        result = plan_jail(policy, &limits, &plan, err);
    struct brig_unenforced noted = {0}; /* in the plan already */
    if (result == 0)
        result = identity_choose(policy, &plan.arena, &noted, &identity, err);
    if (result == 0)
        result = add_command(&plan, policy, command, &streams, err);
    if (result < 0)
        return result;
    return plan_print(&plan, policy, &identity, grouped, command->envp, out, err);
}
