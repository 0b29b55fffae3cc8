/* SPDX-License-Identifier: MIT */
/* What calls have in common. */
#include "call/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "call/memory.h"
#include "jail/confine/seccomp.h"
#include "jail/confine/unenforced.h"
#include "jail/sys.h"

/* Limits for which each call gets a group, if somebody asked for them. */
#define GROUP_LIMITS                                                                               \
    (1U << BRIG_LIMIT_MEMORY_BYTES | 1U << BRIG_LIMIT_CPU_PERCENT | 1U << BRIG_LIMIT_PROCESSES |   \
     1U << BRIG_LIMIT_IO_READ_BYTES | 1U << BRIG_LIMIT_IO_WRITE_BYTES)

/* How large a value can be: as said, or what the function's memory holds. A file of ours cannot be
 * larger than our own limit allows, either. */
static uint64_t choose_value_limit(const struct brig_caller *caller)
{
    const uint64_t *limits = caller->policy->limits;
    uint64_t limit = caller->options.max_result;
    uint64_t memory = limits[BRIG_LIMIT_ADDRESS_SPACE] ? limits[BRIG_LIMIT_ADDRESS_SPACE]
                                                       : limits[BRIG_LIMIT_MEMORY_BYTES];
    if (limit == 0)
        limit = memory ? memory : MEMORY_VALUE_MAX;
    if (limit > MEMORY_VALUE_MAX)
        limit = MEMORY_VALUE_MAX;
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY &&
        limit > size.rlim_cur / 2)
        limit = size.rlim_cur / 2;
    return limit;
}

/* A default number of processes is counted by a resource limit, which is all it is meant for; and CPU
 * time is looked after by us. */
unsigned caller_note_limits(const struct brig_caller *caller, const struct limits *limits,
                            struct brig_unenforced *unenforced)
{
    struct limits shown = *limits;
    unsigned quiet = CGROUP_TIME;
    if (!(caller->policy->limits_asked & 1U << BRIG_LIMIT_PROCESSES))
        quiet |= CGROUP_PIDS;
    shown.missing &= ~quiet;
    return limits_note(&shown, caller->policy, caller->full, unenforced) |
           (limits->missing & quiet);
}

/* Without namespaces: everything that is the same for each call. */
static int prepare_alone(struct brig_caller *caller, struct brig_error *err)
{
    const struct brig_policy *policy = caller->policy;
    struct plan *plan = &caller->plan;
    plan->rung = PLAN_LANDLOCK;
    plan->drop_caps = !(policy->disabled_layers & BRIG_LAYER_CAPS);
    if (!(policy->disabled_layers & BRIG_LAYER_SECCOMP))
        plan->seccomp =
            seccomp_program_alone(policy->seccomp, policy->network, policy->unix_sockets);
    int result = confine_ruleset(policy, &caller->ruleset, &caller->unenforced, err);
    if (result == 0 && caller->ruleset >= 0 && !caller->once)
        result = confine_fill(policy, caller->ruleset, &caller->unenforced, err);
    if (result < 0)
        return result;
    confine_note_alone(policy, &caller->unenforced);
    if (caller->has_group)
        return 0; /* each call sees what its group can do */
    struct limits none = {0};
    limits_skip(&none, policy);
    plan->limits_missing = caller_note_limits(caller, &none, &caller->unenforced);
    plan_rlimits(plan, policy);
    return 0;
}

static int do_nothing(struct brig_call_child *child, void *argument)
{
    (void)child;
    (void)argument;
    return 0;
}

/* Whether this system cannot build such a jail, found out by doing it. */
static bool is_unsupported(struct brig_caller *caller)
{
    struct brig_call_result result;
    (void)brig_caller_call(caller, do_nothing, NULL, &result, NULL);
    bool unsupported = result.outcome == BRIG_CALL_UNSUPPORTED;
    brig_call_result_done(&result);
    return unsupported;
}

/* The full jail, prepared as far as it can be. Where there are no namespaces, who said so has what
 * there is without. */
static int prepare_full(struct brig_caller *caller, struct brig_error *err)
{
    struct brig_policy *policy = caller->policy;
    int result = brig_template_new(policy, &caller->template, err);
    if (result < 0)
        return result;
    if (caller->template->ready) {
        caller->unenforced = caller->template->fresh.unenforced;
        return 0;
    }
    if (policy->on_unsupported == BRIG_UNSUPPORTED_FAIL || !is_unsupported(caller))
        return 0;
    caller->full = false;
    return prepare_alone(caller, err);
}

/* Whether calls can have their groups is found out by making one: who is refused it should know now,
 * and who is to be warned, too. */
static int try_group(struct brig_caller *caller, struct brig_error *err)
{
    struct limits limits = {.shared = caller->full && caller->template->ready};
    if (!caller->has_group)
        return 0;
    int result = limits_init(&limits, caller->policy, err);
    if (result == 0)
        (void)caller_note_limits(caller, &limits, &caller->unenforced);
    limits_done(&limits);
    return result;
}

/* libc asks a file for it, which takes longer than all else that a call's clocks need. */
static uint64_t count_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (uint64_t)cores : 1;
}

static int prepare(struct brig_caller *caller, const struct brig_policy *policy,
                   const struct brig_call_options *options, struct brig_error *err)
{
    int result = options_check(options, &caller->options, err);
    if (result < 0)
        return result;
    if (options->keep_fd_count > 0)
        memcpy(caller->keep_fds, options->keep_fds, options->keep_fd_count * sizeof(int));
    caller->keep_count = options->keep_fd_count;
    if ((result = options_policy(policy, options, &caller->policy, err)) < 0)
        return result;
    if (!caller->once && (result = gates_init(&caller->gates, err)) < 0) /* or we fork */
        return result;
    caller->value_limit = choose_value_limit(caller);
    caller->has_group = caller->policy->limits_asked & GROUP_LIMITS;
    caller->full = !(caller->policy->disabled_layers & BRIG_LAYER_NAMESPACES);
    caller->once = caller->once && !caller->full;
    if (!caller->once)
        caller->cores = count_cores();
    caller->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (caller->null_fd < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open /dev/null");
    result = caller->full ? prepare_full(caller, err) : prepare_alone(caller, err);
    return result < 0 ? result : try_group(caller, err);
}

int caller_new(const struct brig_policy *policy, const struct brig_call_options *options, bool once,
               struct brig_caller **ret_caller, struct brig_error *err)
{
    struct brig_call_options standard;
    brig_call_options_init(&standard);
    struct brig_caller *caller = calloc(1, sizeof *caller);
    if (!caller)
        return brig_fail_nomem(err);
    caller->plan = PLAN_INIT;
    caller->once = once;
    caller->ruleset = caller->null_fd = caller->ending = -1;
    caller->gates = GATES_INIT;
    (void)pthread_mutex_init(&caller->lock, NULL);
    int result = prepare(caller, policy, options ? options : &standard, err);
    if (result < 0) {
        brig_caller_free(caller);
        return result;
    }
    *ret_caller = caller;
    return 0;
}

int brig_caller_new(const struct brig_policy *policy, const struct brig_call_options *options,
                    struct brig_caller **ret_caller, struct brig_error *err)
{
    return caller_new(policy, options, false, ret_caller, err);
}

int caller_finish(struct brig_caller *caller, struct brig_error *err)
{
    caller->cores = count_cores();
    if (caller->ruleset < 0)
        return 0;
    return confine_fill(caller->policy, caller->ruleset, &caller->unenforced, err);
}

static void reap(int pidfd)
{
    if (pidfd < 0)
        return;
    while (SYS(waitid, SYS_WAIT_PIDFD, pidfd, 0, WEXITED | __WALL, 0) == -EINTR)
        ;
    (void)close(pidfd);
}

void caller_reap_later(struct brig_caller *caller, int pidfd)
{
    (void)pthread_mutex_lock(&caller->lock);
    int before = caller->ending;
    caller->ending = pidfd;
    (void)pthread_mutex_unlock(&caller->lock);
    reap(before);
}

const struct brig_unenforced *brig_caller_unenforced(const struct brig_caller *caller)
{
    return &caller->unenforced;
}

void brig_caller_free(struct brig_caller *caller)
{
    if (!caller)
        return;
    if (caller->ruleset >= 0)
        (void)close(caller->ruleset);
    if (caller->null_fd >= 0)
        (void)close(caller->null_fd);
    reap(caller->ending);
    plan_done(&caller->plan);
    brig_template_free(caller->template);
    brig_policy_free(caller->policy);
    gates_done(&caller->gates);
    (void)pthread_mutex_destroy(&caller->lock);
    free(caller);
}
