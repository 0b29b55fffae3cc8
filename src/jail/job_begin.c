/* SPDX-License-Identifier: MIT */
/* Beginning with a jail before its policy is whole. */
#include <stdlib.h>
#include <unistd.h>

#include "base/own.h"
#include "jail/begun_parts.h"
#include "jail/job.h"

/* Where a group is needed, or ids are taken first, there is more to do before. */
static bool can_begin(const struct brig_policy *policy)
{
    return geteuid() != 0 && !limits_are_asked(policy) &&
           !(policy->disabled_layers & BRIG_LAYER_NAMESPACES) && policy_validate(policy, NULL) == 0;
}

static bool begin_with(struct brig_job *job, const struct brig_policy *policy)
{
    struct job_begun *begun = job->begun;
    const struct brig_stdio inherited = {.kind = BRIG_STDIO_INHERIT};
    for (int i = 0; i < 3; i++)
        if (streams_open(job, policy, &inherited, i, &begun->streams, NULL) < 0)
            return false;
    if (streams_want_pty(&begun->streams) ||
        plan_begin(policy, PLAN_FULL, 0, &job->plan, &begun->identity, NULL) < 0 ||
        plan_begin_view(&job->plan, policy, &begun->identity, NULL) < 0)
        return false;
    spawn_begin(&job->plan, false, &begun->early);
    begun->early.gives_mounts = true;
    return begun->early.begun;
}

struct brig_job *job_begin(const struct brig_policy *policy)
{
    struct brig_job *job = can_begin(policy) ? job_at_rest(false) : NULL;
    if (!job)
        return NULL;
    job->begun = calloc(1, sizeof *job->begun);
    if (job->begun)
        job->begun->streams = STREAMS_NONE;
    if (job->begun && begin_with(job, policy))
        return job;
    job_abandon(job);
    return NULL;
}

void job_abandon(struct brig_job *job)
{
    autofree struct job_begun *begun = job ? take_ptr(&job->begun) : NULL;
    if (begun)
        spawn_abandon(&begun->early);
    brig_job_free(job);
}
