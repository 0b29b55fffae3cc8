/* SPDX-License-Identifier: MIT */
/* Sandboxes that are paused: their processes are frozen, and keep their memory. The deadline and the
 * time limits of commands stand still. */
#include <errno.h>
#include <string.h>

#include <brig/brig.h>

#include "base/clock.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "server/config.h"
#include "server/executor/executor.h"

enum sandbox_fault executor_sandbox_pause(struct sandbox *sandbox, bool pause,
                                          struct brig_error *err)
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
                        "the sandbox cannot be paused here: it has no cgroup that can be "
                        "frozen (%s)",
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
    executor->sandboxes.due_ms = 0;
    return SANDBOX_OK;
}

/* The time that is left when it goes on is what it was created with. */
bool executor_sandbox_pause_at_deadline(struct sandbox *sandbox)
{
    if (!sandbox->request.pauses || sandbox->state != SANDBOX_RUNNING ||
        executor_sandbox_pause(sandbox, true, NULL) != SANDBOX_OK)
        return false;
    sandbox->left_ms = sandbox->request.timeout_ms;
    return true;
}
