/* SPDX-License-Identifier: MIT */
/* Starts a job: its fds, its plan, and the rung of the ladder that works here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "jail/attach/attach.h"
#include "jail/cgroup/limits.h"
#include "jail/job/job.h"
#include "jail/job/result.h"
#include "jail/job/spawn.h"
#include "jail/job/streams.h"
#include "jail/plan/effects.h"
#include "jail/plan/facts.h"
#include "jail/plan/plan_print.h"
#include "jail/prepare/template.h"
#include "jail/prepare/zygote.h"

/* ---- the ladder ---- */

/* Without namespaces there is no network door, and the result says so. */
static int take_door(struct brig_job *job, const struct brig_policy *policy,
                     struct door_sockets *sockets, struct brig_error *err)
{
    if (!job->door)
        return 0;
    const struct cgroup *group = job->limits.group;
    if (job->plan.rung == PLAN_FULL)
        return door_begin(job->door, policy, sockets, job->plan.host_uid, job->plan.host_gid,
                          group && cgroup_kind(group) != CGROUP_NONE, err);
    door_free(take_ptr(&job->door));
    return 0;
}

/* Completes job->plan with the command, starts it, and takes over its fds. */
static int launch(struct brig_job *job, const struct brig_policy *policy,
                  const struct brig_command *command, struct streams *streams,
                  struct brig_error *err)
{
    struct plan_input input = {
        .policy = policy,
        .command = command,
        .stdio_fds = {streams->fds[0], streams->fds[1], streams->fds[2]},
        .wants_pty = streams_want_pty(streams),
        .host_terminal = streams->terminal,
        .pty_fd = job->plan.rung == PLAN_FULL ? -1 : streams->pty_slave,
    };
    int result = plan_add_command(&job->plan, &input, err);
    if (result < 0 || (result = watch_start(&job->watch, &job->plan, err)) < 0)
        return result;
    bool watch = policy->watch_nested && !policy->allow_nested && job->plan.rung == PLAN_FULL;
    if ((policy->trace || watch) &&
        (result = denials_prepare(&job->denials, &job->plan, policy->trace, err)) < 0)
        return result;
    struct spawned spawned;
    job->started_us = clock_now_us();
    if ((result = spawn_jail(&job->plan, &spawned, err)) < 0)
        return result;
    job->pid = spawned.pid;
    watch_mounts(&job->watch, &job->plan, job->pid);
    job->pidfd = fds_keep_high(spawned.pidfd);
    job->wire = fds_keep_high(spawned.wire);
    job->terminal = spawned.terminal;
    job->kept = fds_keep_high(spawned.kept);
    job->late = fds_keep_high(spawned.late);
    job->denials.listener = fds_keep_high(spawned.listener);
    if (spawned.nested_limits >= 0) /* if memory runs out, tools have no separate limits */
        job->nested_limits =
            nested_limits_new(spawned.nested_limits, job->limits.group, spawned.pid);
    result = take_door(job, policy, &spawned.door, err);
    job->end = spawned.end;
    job->stop_signal = spawned.stop_signal;
    if (job->terminal < 0 && input.wants_pty)
        job->terminal = take_fd(&streams->pty_master);
    if (policy->jail_name) /* a jail without name cannot be entered */
        job->entry_fd = attach_publish(&job->plan, policy, job->pid, job->limits.group);
    int trimmed = plan_trim(&job->plan, err);
    return result < 0 ? result : trimmed;
}

static int try_rung(struct brig_job *job, const struct brig_policy *policy,
                    const struct brig_command *command, struct streams *streams,
                    enum plan_rung rung, unsigned missing, struct brig_error *err)
{
    if (rung == PLAN_LANDLOCK &&
        ((policy->disabled_layers & BRIG_LAYER_LANDLOCK) || landlock_abi() == 0))
        return brig_fail(
            err, BRIG_E_UNSUPPORTED, 0,
            "neither namespaces nor Landlock can be used: the filesystem would be open");
    if (streams_want_pty(streams) && rung != PLAN_FULL && streams->pty_slave < 0) {
        int result = streams_open_pty(streams, err);
        if (result < 0)
            return result;
    }
    int result = plan_compile(policy, rung, missing, &job->limits, &job->plan, err);
    return result < 0 ? result : launch(job, policy, command, streams, err);
}

static int start_from_template(struct brig_job *job, struct brig_template *template,
                               const struct brig_policy *policy, const struct brig_command *command,
                               struct streams *streams, struct brig_error *err)
{
    int network = template_plan(template, &job->plan);
    plan_use_limits(&job->plan, policy, &job->limits);
    int result = policy == template->policy ? 0 : template_adapt(template, policy, &job->plan, err);
    if (result == 0)
        result = launch(job, policy, command, streams, err);
    if (network >= 0) {
        (void)close(network);
        template_refill(template);
    }
    return result;
}

static int start_in_jail(struct brig_job *job, const struct job_source *source,
                         const struct brig_command *command, struct streams *streams,
                         struct brig_error *err)
{
    const struct limits *leaf = source->jail ? &job->limits : NULL;
    int result =
        leaf ? limits_init_leaf(&job->limits, source->policy, source->jail->limits.group, err) : 0;
    if (result == 0)
        result = attach_plan(source->attach, leaf, &job->plan, err);
    if (result < 0)
        return result;
    if (leaf)
        job->plan.limits_missing |= limits_note(leaf, source->policy, true, &job->plan.unenforced);
    return launch(job, source->policy, command, streams, err);
}

/* Private directories need a mount namespace, so a lower rung cannot provide them. An earlier
 * failure, if any, is reported as the reason. */
static int refuse_private(const struct brig_policy *policy, struct brig_error *err)
{
    const struct policy_private *private = &policy->privates[0];
    if (!err || !err->message[0])
        return brig_fail(err, BRIG_E_SETUP, 0,
                         "without namespaces the jail cannot have a private '%s' [%s]",
                         private->dest, private->origin);
    err->code = BRIG_E_SETUP;
    return brig_wrap(err, BRIG_E_SETUP, "no private '%s' [%s]", private->dest, private->origin);
}

/* Whether a file of the host was replaced while the jail was built, as /etc/ld.so.cache is by
 * ldconfig. Then everything is looked up again, unless something was used up: a tree, which may be
 * the caller's, or the lease of a jail inside a jail. */
static bool was_replaced(const struct brig_job *job, const struct brig_error *error)
{
    const struct plan *plan = &job->plan;
    if (error->sys_errno != ESTALE || plan->failed_step <= 0 || job->limits.lease)
        return false;
    for (int i = 0; i < plan->failed_step; i++)
        if (plan->steps[i].op == PLAN_PREPARED)
            return false;
    return true;
}

/* Tries lower rungs as far as the policy allows; lost restrictions are listed in the plan. */
static int climb_down(struct brig_job *job, const struct brig_policy *policy,
                      const struct brig_command *command, struct streams *streams,
                      struct brig_error *err)
{
    enum plan_rung rung =
        policy->disabled_layers & BRIG_LAYER_NAMESPACES ? PLAN_LANDLOCK : PLAN_FULL;
    unsigned missing = 0;
    for (int replaced = 0;;) {
        struct brig_error local = {0};
        if (rung != PLAN_FULL && policy->private_count > 0)
            return refuse_private(policy, err);
        int result = try_rung(job, policy, command, streams, rung, missing, &local);
        if (result == 0)
            return 0;
        if (err)
            *err = local;
        bool again = was_replaced(job, &local) && replaced++ < PLAN_REPEATS;
        if (rung == PLAN_FULL && local.sys_errno == ENOSPC &&
            !(missing & PLAN_NO_CGROUP_NAMESPACE)) { /* inside a jail this is the reason */
            missing |= PLAN_NO_CGROUP_NAMESPACE;
            again = true;
        }
        if (again) {
            watch_done(&job->watch);
            plan_done(&job->plan);
            continue;
        }
        /* Inside a jail a second jail has no namespaces, but the restrictions of the first
         * apply. */
        bool inside = job->limits.lease && rung == PLAN_FULL;
        if (result != BRIG_E_UNSUPPORTED ||
            (policy->on_unsupported == BRIG_UNSUPPORTED_FAIL && !inside))
            return result;
        bool no_seccomp = job->plan.failed_step == PLAN_STEP_SECCOMP;
        watch_done(&job->watch);
        plan_done(&job->plan);
        if (no_seccomp && !(missing & BRIG_LAYER_SECCOMP))
            missing |= BRIG_LAYER_SECCOMP; /* not tied to a rung: try again without it */
        else if (rung++ == PLAN_LIMITS)
            return result;
    }
}

/* ---- the job ---- */

static int add_to_epoll(struct brig_job *job, int fd, struct brig_error *err)
{
    if (fd < 0)
        return 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(job->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the job");
    return 0;
}

static int supervise(struct brig_job *job, const struct brig_policy *policy, struct brig_error *err)
{
    const uint64_t *limits = policy->limits;
    job->grace_us = limits[BRIG_LIMIT_GRACE_MS] * 1000;
    job->cpu_limit_us = limits[BRIG_LIMIT_CPU_MS] * 1000;
    if (!job_is_awaited(job)) /* otherwise job_release() starts the clock */
        job_start_clock(job, limits[BRIG_LIMIT_WALL_MS]);
    if (watch_delay_us(&job->watch, &job->plan) > 0)
        job->watch_due_us = job->started_us + watch_delay_us(&job->watch, &job->plan);
    job->epoll = fds_keep_high(epoll_create1(EPOLL_CLOEXEC));
    job->timer = fds_keep_high(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (job->epoll < 0 || job->timer < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the job");
    int fds[] = {job->wire,           job->pidfd,          job->timer,
                 job->captures[0].fd, job->captures[1].fd, job->watch.names.fd};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++) {
        int result = add_to_epoll(job, fds[i], err);
        if (result < 0)
            return result;
    }
    if (job->nested_limits)
        nested_limits_watch(job->nested_limits, job->epoll, job->started_us);
    if (job->denials.listener >= 0) {
        int result = denials_listen(&job->denials, job->denials.listener, job->epoll, err);
        if (result < 0)
            return result;
    }
    int watched = job->door ? door_watch(job->door, job->epoll, err) : 0;
    if (watched < 0)
        return watched;
    struct epoll_event mounts = {.events = EPOLLPRI, .data.fd = job->watch.mounts};
    if (mounts.data.fd >= 0 && epoll_ctl(job->epoll, EPOLL_CTL_ADD, mounts.data.fd, &mounts) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the jail's mounts");
    job_arm_timer(job);
    if (job->stop_signal != 0)
        job_wake(job); /* its message was read during the start */
    return 0;
}

static int make_jail(struct brig_job *job, const struct job_source *source,
                     const struct brig_command *command, struct streams *streams,
                     struct brig_error *err)
{
    if (source->attach)
        return start_in_jail(job, source, command, streams, err);
    if (source->zygote)
        return zygote_start(source->zygote, source->host_id, job, streams, err);
    if (policy_has_door(source->policy)) {
        int result = door_new(source->policy, &job->door, err);
        if (result < 0)
            return result;
    }
    bool prepared = source->template && source->template->ready;
    job->limits.shared = prepared && !source->template->nested;
    int result = limits_init(&job->limits, source->policy, err);
    if (result < 0)
        return result;
    if (prepared)
        return start_from_template(job, source->template, source->policy, command, streams, err);
    return climb_down(job, source->policy, command, streams, err);
}

static struct brig_job *new_job(void)
{
    struct brig_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    *job = (struct brig_job){.plan = PLAN_INIT,
                             .owner = getpid(),
                             .pidfd = -1,
                             .wire = -1,
                             .terminal = -1,
                             .kept = -1,
                             .gate = -1,
                             .late = -1,
                             .late_input = -1,
                             .entry_fd = -1,
                             .epoll = -1,
                             .timer = -1,
                             .captures = {{.fd = -1}, {.fd = -1}},
                             .streams = {-1, -1, -1},
                             .denials = DENIALS_INIT,
                             .watch = WATCH_INIT,
                             .limits = {.settled_later = true}};
    return job;
}

static void note_own_peak(struct brig_job *job)
{
    struct rusage own;
    if (getrusage(RUSAGE_SELF, &own) == 0)
        job->own_peak_kb = (uint64_t)own.ru_maxrss;
}

/* Finds the policy of a source that brings one; other policies are checked here. */
static int settle_policy(struct job_source *source, struct brig_error *err)
{
    struct brig_template *template = source->template;
    if (source->zygote && !zygote_is_ready(source->zygote))
        return brig_fail(err, BRIG_E_STATE, 0, "the zygote is not ready");
    if (source->zygote)
        source->policy = zygote_policy(source->zygote);
    else if (source->attach && !source->policy)
        source->policy = source->attach->record.policy;
    else if (source->attach)
        return 0; /* a variant of a policy that was checked */
    else if (template && !source->policy)
        source->policy = template->policy;
    else if (template && !template_fits(template, source->policy))
        return brig_fail(err, BRIG_E_STATE, 0, "the policy is not that of the template");
    else
        return policy_validate(source->policy, err);
    return 0;
}

int job_start(const struct job_source *from, const struct brig_command *given,
              struct brig_job **ret_job, struct brig_error *err)
{
    struct job_source own = *from, *source = &own;
    struct brig_command known, *command = &known;
    int result = fds_fill_standard(err);
    if (result == 0)
        result = settle_policy(source, err);
    if (result == 0)
        result = streams_read(given, command, err);
    if (result == 0 && source->policy->facts) /* recorded facts do not describe this machine */
        result = brig_fail(err, BRIG_E_STATE, 0, "a policy with recorded facts cannot be run");
    if (result < 0)
        return result;
    struct brig_job *job = new_job();
    if (!job)
        return brig_fail_nomem(err);
    note_own_peak(job);
    struct streams streams = STREAMS_NONE;
    for (int i = 0; i < 3 && result == 0; i++)
        result = streams_open(job, source->policy, &command->stdio[i], i, &streams, err);
    if (result == 0)
        result = make_jail(job, source, command, &streams, err);
    if (result == 0)
        result = limits_settle(&job->limits, err);
    if (result == 0 && job->limits.group)
        cgroup_joined(job->limits.group);
    if (result == 0)
        result = supervise(job, source->policy, err);
    streams_done(&streams);
    if (result < 0) {
        brig_job_free(job);
        return result;
    }
    *ret_job = job;
    return 0;
}

int brig_start(const struct brig_policy *policy, const struct brig_command *command,
               struct brig_job **ret_job, struct brig_error *err)
{
    if (policy)
        return job_start(&(struct job_source){.policy = policy}, command, ret_job, err);
    struct brig_policy *sealed = brig_policy_new(BRIG_MODE_SEALED);
    if (!sealed)
        return brig_fail_nomem(err);
    int result = job_start(&(struct job_source){.policy = sealed}, command, ret_job, err);
    brig_policy_free(sealed);
    return result;
}

int brig_template_start(struct brig_template *template, const struct brig_command *command,
                        struct brig_job **ret_job, struct brig_error *err)
{
    return job_start(&(struct job_source){.template = template}, command, ret_job, err);
}

/* ---- the plan without a run ---- */

/* The steps of a start that change nothing on the host. */

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

/* Tries lower rungs, like climb_down(). */
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

int job_foresee(const struct brig_policy *policy, const struct brig_command *given, struct str *out,
                struct brig_error *err)
{
    struct limits limits = {0};
    struct streams streams = STREAMS_NONE;
    __attribute__((cleanup(plan_done))) struct plan plan = PLAN_INIT;
    struct jail_identity identity;
    unsigned grouped = 0;
    struct brig_command known, *command = &known;
    int result = streams_read(given, command, err);
    for (int i = 0; i < 3 && result == 0; i++)
        result = streams_open(NULL, policy, &command->stdio[i], i, &streams, err);
    if (result == 0)
        result = limits_foresee(&limits, policy, &grouped, err);
    if (result == 0)
        result = plan_jail(policy, &limits, &plan, err);
    struct brig_unenforced noted = {0}; /* already in the plan */
    if (result == 0)
        result = identity_choose(policy, &plan.arena, &noted, &identity, err);
    if (result == 0)
        result = add_command(&plan, policy, command, &streams, err);
    if (result < 0)
        return result;
    return plan_print(&plan, policy, &identity, grouped, command->envp, out, err);
}

int job_foresee_effects(const struct brig_policy *policy, struct effects *ret_effects,
                        struct brig_error *err)
{
    struct limits limits = {0};
    __attribute__((cleanup(plan_done))) struct plan plan = PLAN_INIT;
    unsigned grouped = 0;
    int result = limits_foresee(&limits, policy, &grouped, err);
    if (result == 0)
        result = plan_jail(policy, &limits, &plan, err);
    if (result == 0)
        result = effects_of(&plan, ret_effects, err);
    if (result < 0)
        return result;
    ret_effects->texts = plan.arena; /* the effects point into it */
    plan.arena = (struct arena){0};
    return 0;
}
