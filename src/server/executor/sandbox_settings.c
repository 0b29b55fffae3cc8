/* SPDX-License-Identifier: MIT */
/* What can be changed of a sandbox that runs: its deadline, its network, and whether it is paused. */
#include <errno.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "policy/net_rules.h"
#include "server/config/config.h"
#include "server/executor/contexts.h"
#include "server/executor/executor.h"

void executor_sandbox_set_timeout(struct sandbox *sandbox, const struct sandbox_request *request,
                                  struct caller caller)
{
    struct executor *executor = sandbox->executor;
    uint64_t most_ms = executor->config->sandboxes.max_timeout_ms;
    if (request->timeout_ms > most_ms) {
        executor_sandbox_refuse(executor, caller, SANDBOX_INVALID, "timeout",
                                "timeout is longer than %llu s, the most that is allowed "
                                "(sandboxes.max_timeout)",
                                (unsigned long long)(most_ms / 1000));
        return;
    }
    if (sandbox->state == SANDBOX_PAUSED)
        sandbox->left_ms = request->timeout_ms;
    else
        sandbox->deadline_ms = clock_now_ms() + request->timeout_ms;
    executor->sandboxes.due_ms = 0;
    executor_sandbox_tell(sandbox, caller);
}

static int write_rules(const struct runtime *runtime, const struct sandbox_request *request,
                       struct net_rules *rules, struct brig_error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(runtime->allow) && runtime->allow[i]; i++)
        result = net_rules_allow(rules, runtime->allow[i], err);
    for (size_t i = 0; result == 0 && request->network && i < request->allow_count; i++)
        result = net_rules_allow(rules, request->allow[i], err);
    if (result == 0 && request->network && request->allow_count == 0)
        result = net_rules_allow(rules, "*", err);
    return result;
}

/* Takes the request if it succeeds. */
void executor_sandbox_set_network(struct sandbox *sandbox, struct sandbox_request *request,
                                  struct caller caller)
{
    struct executor *executor = sandbox->executor;
    struct execution_request like = executor_sandbox_like(&sandbox->request);
    struct net_rules rules = {0};
    struct brig_error err = {0};
    const char *field = "";
    like.network = request->network;
    like.allow = request->allow;
    like.allow_count = request->allow_count;
    enum sandbox_fault fault = executor_sandbox_check(sandbox, &like, &field, &err);
    if (fault == SANDBOX_OK && !sandbox->job->door) {
        fault = SANDBOX_CONFLICT;
        (void)brig_fail(&err, BRIG_E_STATE, 0,
                        "the sandbox was created without a network: create it with allow");
    }
    if (fault == SANDBOX_OK && write_rules(sandbox->runtime, request, &rules, &err) < 0)
        fault = SANDBOX_INVALID;
    if (fault == SANDBOX_OK && job_set_net_rules(sandbox->job, &rules, &err) < 0)
        fault = SANDBOX_FAILED;
    net_rules_done(&rules);
    if (fault != SANDBOX_OK) {
        executor_sandbox_refuse(executor, caller, fault, field, "%s", err.message);
        return;
    }
    sandbox_request_done(&sandbox->network);
    sandbox->network = *request;
    *request = (struct sandbox_request){0};
    executor_sandbox_tell(sandbox, caller);
}

/* While a sandbox is paused its processes are frozen and keep their memory; its deadline and the time
 * limits of its commands stand still. */
static enum sandbox_fault set_paused(struct sandbox *sandbox, bool pause, struct brig_error *err)
{
    struct executor *executor = sandbox->executor;
    uint64_t now_ms = clock_now_ms();
    const struct cgroup *group = sandbox->job->limits.group;
    if ((sandbox->state == SANDBOX_PAUSED) == pause) {
        (void)brig_fail(err, BRIG_E_STATE, 0, "the sandbox is %s",
                        pause ? "paused already" : "not paused");
        return SANDBOX_CONFLICT;
    }
    int result = group ? cgroup_freeze(group, pause) : -EOPNOTSUPP;
    if (result < 0) {
        (void)brig_fail(err, BRIG_E_STATE, 0,
                        "the sandbox cannot be paused: it has no cgroup that can be frozen (%s). "
                        "Run brigd as a systemd service, or as root",
                        strerror(-result));
        return SANDBOX_UNSUPPORTED;
    }
    if (pause) {
        sandbox->left_ms = sandbox->deadline_ms > now_ms ? sandbox->deadline_ms - now_ms : 0;
        sandbox->deadline_ms = now_ms + executor->config->sandboxes.max_paused_ms;
    } else {
        sandbox->deadline_ms = now_ms + sandbox->left_ms;
    }
    sandbox->state = pause ? SANDBOX_PAUSED : SANDBOX_RUNNING;
    executor->sandboxes.paused_count += pause ? 1 : SIZE_MAX;
    executor_commands_pause(sandbox, pause);
    executor_contexts_pause(sandbox, pause);
    executor->sandboxes.due_ms = 0;
    executor_sandboxes_count(executor);
    return SANDBOX_OK;
}

void executor_sandbox_pause(struct sandbox *sandbox, bool pause, struct caller caller)
{
    struct brig_error err = {0};
    enum sandbox_fault fault = set_paused(sandbox, pause, &err);
    if (fault == SANDBOX_OK)
        executor_sandbox_tell(sandbox, caller);
    else
        executor_sandbox_refuse(sandbox->executor, caller, fault, "", "%s", err.message);
}

/* The time that is left when it goes on is what it was created with. */
bool executor_sandbox_pause_at_deadline(struct sandbox *sandbox)
{
    if (!sandbox->request.pauses || sandbox->state != SANDBOX_RUNNING ||
        set_paused(sandbox, true, NULL) != SANDBOX_OK)
        return false;
    sandbox->left_ms = sandbox->request.timeout_ms;
    return true;
}
