/* SPDX-License-Identifier: MIT */
/* Hiding more of the host in a jail that runs. */
#include "jail/job/job_hide.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "jail/confine/unenforced.h"
#include "jail/job/job.h"
#include "jail/view/view.h"
#include "policy/policy.h"

/* The directory of the jail that a path lies in: of several at one place the last. */
static const struct plan_place *place_above(const struct plan *plan, const char *path)
{
    const struct plan_place *best = NULL;
    size_t most = 0, path_length = strlen(path);
    for (size_t i = 0; i < plan->place_count; i++) {
        const struct plan_place *place = &plan->places[i];
        size_t length = place->dest[1] ? strlen(place->dest) : 0;
        if (length < path_length && strncmp(place->dest, path, length) == 0 &&
            path[length] == '/' && length >= most) {
            most = length;
            best = place;
        }
    }
    return best;
}

static bool is_hidden(const struct plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->mask_count; i++)
        if (plan->masks[i].cover == PLAN_COVER_MASK && strcmp(plan->masks[i].path, path) == 0)
            return true;
    return false;
}

/* Adds a path of the jail to the masks of the plan, if the host is behind it. */
static int add_path(struct plan *plan, const char *path, struct brig_error *err)
{
    const struct plan_place *place = place_above(plan, path);
    if (!place || !place->host || is_hidden(plan, path))
        return 0;
    const char *rest = place->dest[1] ? path + strlen(place->dest) : path;
    const char *dest = arena_strdup(&plan->arena, path);
    const char *host = arena_concat(&plan->arena, place->host, rest);
    if (dest && host)
        plan_watch_cover(plan, PLAN_COVER_MASK, place, host, dest);
    return plan->arena.failed ? brig_fail_nomem(err) : 0;
}

/* As in a plan, what is granted at another place is hidden there, too. */
static int add_paths(struct plan *plan, const struct brig_policy *policy, const char *path,
                     struct brig_error *err)
{
    bool frame = policy->view == BRIG_VIEW_SYSTEM || policy->view == BRIG_VIEW_EMPTY;
    const char *real = frame ? view_without_alias(&plan->arena, path) : path;
    int status = real ? add_path(plan, real, err) : brig_fail_nomem(err);
    for (size_t i = 0; i < policy->grant_count && status == 0; i++) {
        const struct policy_grant *grant = &policy->grants[i];
        size_t length = strlen(grant->source);
        if (grant->access == BRIG_MASK || strcmp(grant->source, grant->dest) == 0 ||
            strncmp(path, grant->source, length) != 0 || path[length] != '/')
            continue;
        const char *dest = arena_concat(&plan->arena, grant->dest, path + length);
        if (dest && frame)
            dest = view_without_alias(&plan->arena, dest);
        status = dest ? add_path(plan, dest, err) : brig_fail_nomem(err);
    }
    return status;
}

static void poll_for(const struct brig_job *job, int before, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (before < 0 && fd >= 0)
        (void)epoll_ctl(job->epoll, EPOLL_CTL_ADD, fd, &event);
}

int job_hide(struct brig_job *job, const struct brig_policy *policy, const char *path,
             struct brig_error *err)
{
    struct plan *plan = &job->plan;
    size_t from = plan->mask_count;
    if (plan->rung != PLAN_FULL || job->state == JOB_OVER)
        return 0;
    int status = add_paths(plan, policy, path, err);
    if (status < 0 || plan->mask_count == from)
        return status;
    const struct watch before = job->watch;
    status = watch_more(&job->watch, plan, from, job->pid, err);
    poll_for(job, before.fd, job->watch.fd, EPOLLIN);
    poll_for(job, before.mounts, job->watch.mounts, EPOLLPRI);
    job->watch_due_us = 0; /* all of it is watched now */
    return status;
}

void job_note(struct brig_job *job, const char *text)
{
    unenforced_add(&job->notices, "%s", text);
}
