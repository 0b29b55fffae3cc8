/* SPDX-License-Identifier: MIT */
/* Beginning with a jail before its policy is whole. */
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "jail/job/begun_parts.h"
#include "jail/job/job.h"
#include "jail/prepare/ready.h"

/* Where a group is needed, or ids are taken first, there is more to do before. */
static bool can_begin(const struct brig_policy *policy)
{
    return geteuid() != 0 && !limits_are_asked(policy) &&
           !(policy->disabled_layers & BRIG_LAYER_NAMESPACES) && policy_validate(policy, NULL) == 0;
}

/* Asks for namespaces that were made ahead: how many steps the plan had then, or 0 if there is nobody to ask. */
static size_t ask_for_set(const struct plan *plan, const struct job_source *source)
{
    autostr struct str shape = {0};
    if (!source || !ready_describe(plan, &shape))
        return 0;
    source->ask(source->arg, shape.data, shape.length);
    return plan->step_count;
}

/* It was asked for, so an answer comes in any case, and is to be taken. */
static void take_set(struct brig_job *job, const struct job_source *source, size_t described)
{
    struct ready_set set = READY_SET_NONE;
    if (!source->take(source->arg, &set))
        return;
    job->given = malloc(sizeof *job->given);
    if (!job->given) {
        ready_set_done(&set);
        return;
    }
    ready_use(&job->plan, described, &set);
    *job->given = set;
}

static bool begin_with(struct brig_job *job, const struct brig_policy *policy,
                       const struct job_source *source)
{
    struct job_begun *begun = job->begun;
    const struct brig_stdio inherited = {.kind = BRIG_STDIO_INHERIT};
    for (int i = 0; i < 3; i++)
        if (streams_open(job, policy, &inherited, i, &begun->streams, NULL) < 0)
            return false;
    if (streams_want_pty(&begun->streams) ||
        plan_begin(policy, PLAN_FULL, 0, &job->plan, &begun->identity, NULL) < 0)
        return false;
    size_t described = ask_for_set(&job->plan, source);
    int viewed = plan_begin_view(&job->plan, policy, &begun->identity, NULL);
    if (described > 0)
        take_set(job, source, described);
    if (viewed < 0)
        return false;
    spawn_begin(&job->plan, false, &begun->early);
    begun->early.gives_mounts = true;
    return begun->early.begun;
}

struct brig_job *job_begin(const struct brig_policy *policy, const struct job_source *source)
{
    struct brig_job *job = can_begin(policy) ? job_at_rest(false) : NULL;
    if (!job)
        return NULL;
    job->begun = calloc(1, sizeof *job->begun);
    if (job->begun)
        job->begun->streams = STREAMS_NONE;
    if (job->begun && begin_with(job, policy, source))
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
