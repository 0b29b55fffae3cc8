/* SPDX-License-Identifier: MIT */
/* What became of a call, from what was observed of it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "call/call.h"

/* Has large things on its stack, which those who do not need it shall not have on theirs. */
#define RARE __attribute__((noinline, cold))

void outcome_nothing_ran(struct brig_call_result *ret, const struct brig_error *error)
{
    *ret = (struct brig_call_result){
        .outcome =
            error->code == BRIG_E_UNSUPPORTED ? BRIG_CALL_UNSUPPORTED : BRIG_CALL_SETUP_FAILED,
        .exit_code = -1,
        .error = *error,
    };
}

/* ---- the function never ran ---- */

static bool never_ran(const struct brig_call *call)
{
    return !call->told.passed;
}

/* The failing step in words; or that it was ended, by us or by somebody, on the way. */
static RARE int explain(struct brig_call *call, struct brig_call_result *ret,
                        struct brig_error *err)
{
    struct brig_error local = {0};
    int step = call->failed_step ? call->failed_step : call->told.step;
    int sys_errno = call->failed_step ? call->failed_errno : call->told.sys_errno;
    if (step != 0 || sys_errno != 0)
        (void)plan_explain_failure(call_plan(call), step, sys_errno, &local);
    else
        (void)brig_fail(&local, BRIG_E_SETUP, 0,
                        "the call's process ended before the function began (status %#x)",
                        (unsigned)call->status);
    outcome_nothing_ran(ret, &local);
    if (err)
        *err = local;
    return local.code;
}

/* ---- it ran ---- */

static bool used_up_cpu(const struct brig_call *call, int signal)
{
    uint64_t limit = call->caller->policy->limits[BRIG_LIMIT_CPU_MS] * 1000;
    if (limit == 0)
        return false;
    uint64_t used = call->cpu_user_us + call->cpu_sys_us;
    /* For its limit the kernel counts whole ticks of who runs when they come, which may be ahead of the
     * time it reports by a tenth; by more than a quarter where many share a CPU. */
    if (signal == SIGXCPU)
        return used >= limit / 2;
    return signal == SIGKILL && used >= limit;
}

static enum brig_call_outcome by_signal(const struct brig_call *call, int signal)
{
    if (signal == SIGKILL && call->group_usage.oom_kills > 0)
        return BRIG_CALL_MEMORY;
    return used_up_cpu(call, signal) ? BRIG_CALL_CPU_TIMEOUT : BRIG_CALL_CRASHED;
}

static bool has_memory_limit(const struct brig_call *call)
{
    const uint64_t *limits = call->caller->policy->limits;
    return limits[BRIG_LIMIT_ADDRESS_SPACE] || limits[BRIG_LIMIT_MEMORY_BYTES];
}

int outcome_keep_denial(struct brig_call *call, const struct brig_call_denial *denial)
{
    struct brig_call_denial *grown =
        realloc(call->denials, (call->denial_count + 1) * sizeof *grown);
    if (!grown)
        return BRIG_E_NOMEM;
    call->denials = grown;
    grown[call->denial_count++] = *denial;
    return 0;
}

/* The last call that was refused with the very error the function names, if it names nothing else. */
static bool was_traced(const struct brig_call *call, const struct memory_failure *failure,
                       struct brig_call_denial *ret)
{
    if (failure->texts[MEMORY_PATH] || failure->texts[MEMORY_ADDRESS] || failure->sys_errno == 0)
        return false;
    for (size_t i = call->denial_count; i-- > 0;)
        if (call->denials[i].traced && call->denials[i].sys_errno == failure->sys_errno) {
            *ret = call->denials[i];
            return true;
        }
    return false;
}

/* A failure is the jail's doing if the function named what it was refused, and that is what this jail
 * refuses; or if it ran out of the memory it was limited to. */
static int judge_failure(struct brig_call *call, struct memory_failure *failure,
                         struct brig_call_result *ret, struct brig_error *err)
{
    struct brig_call_denial denial = {0};
    ret->outcome = BRIG_CALL_FAILED;
    ret->sys_errno = failure->sys_errno;
    ret->class_name = take_ptr(&failure->texts[MEMORY_CLASS]);
    ret->message = take_ptr(&failure->texts[MEMORY_MESSAGE]);
    ret->backtrace = take_ptr(&failure->texts[MEMORY_BACKTRACE]);
    if ((failure->out_of_memory || failure->sys_errno == ENOMEM) && has_memory_limit(call)) {
        ret->outcome = BRIG_CALL_MEMORY;
        return 0;
    }
    if (failure->sys_errno == EAGAIN && call->group_usage.pids_refused > 0) {
        ret->outcome = BRIG_CALL_PROCESSES;
        return 0;
    }
    if (!denial_check(call->caller, failure, &denial) && !was_traced(call, failure, &denial))
        return 0;
    if (outcome_keep_denial(call, &denial) < 0)
        return brig_fail_nomem(err);
    ret->outcome = denial.kind;
    return 0;
}

static RARE int take_failure(struct brig_call *call, const struct memory_head *head,
                             struct brig_call_result *ret, struct brig_error *err)
{
    struct memory_failure failure = {0};
    int result = memory_take_failure(call->memory, head, &failure, err);
    if (result == 0)
        result = judge_failure(call, &failure, ret, err);
    memory_failure_done(&failure);
    return result;
}

static int take_value(struct brig_call *call, const struct memory_head *head,
                      struct brig_call_result *ret, struct brig_error *err)
{
    if (head->length > call->caller->value_limit) {
        ret->outcome = BRIG_CALL_OUTPUT;
        return 0;
    }
    ret->outcome = BRIG_CALL_RETURNED;
    int result =
        memory_take_value(call->memory, (size_t)head->length, &ret->value, &ret->mapped, err);
    if (result == 0)
        ret->length = (size_t)head->length;
    return result;
}

/* It came to its end by itself. */
static int by_head(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err)
{
    struct memory_head head = {0};
    int result = memory_read_head(call->memory, &head);
    if (result < 0)
        return brig_fail(err, result, errno, "cannot read what the function left");
    bool exited = call->status_known && (WEXITSTATUS(call->status) != 0 || head.left == 0);
    if (exited) {
        ret->outcome = BRIG_CALL_EXITED;
        ret->exit_code = WEXITSTATUS(call->status);
        return 0;
    }
    if (head.left == 0) { /* somebody else has reaped it: all we know is that it is gone */
        ret->outcome = BRIG_CALL_CRASHED;
        return 0;
    }
    switch (head.state) {
    case MEMORY_RETURNED:
        return take_value(call, &head, ret, err);
    case MEMORY_FAILED:
        return take_failure(call, &head, ret, err);
    case MEMORY_TOO_LARGE:
        ret->outcome = BRIG_CALL_OUTPUT;
        return 0;
    case MEMORY_NO_ROOM:
        ret->outcome = BRIG_CALL_MEMORY;
        return 0;
    default: /* it left without a word, or wrote what is none */
        ret->outcome = BRIG_CALL_RETURNED;
        return 0;
    }
}

static int decide(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err)
{
    bool signalled = call->status_known && WIFSIGNALED(call->status);
    bool unknown = !call->status_known && call->caller->full; /* init was killed */
    if (signalled)
        ret->signal = WTERMSIG(call->status);
    if (unknown)
        ret->signal = SIGKILL;
    bool ended = signalled || unknown;
    /* Whoever was through before our signal came has its value. */
    if (call->has_reason && (ended || call->reason == BRIG_CALL_OUTPUT)) {
        ret->outcome = call->reason;
        return 0;
    }
    if (ended) {
        ret->outcome = by_signal(call, ret->signal);
        return 0;
    }
    return by_head(call, ret, err);
}

/* ---- all of it ---- */

static void fill_usage(const struct brig_call *call, struct brig_usage *usage)
{
    const struct cgroup_usage *group = &call->group_usage;
    usage->wall_us = call->ended_us - call->started_us;
    usage->cpu_user_us = call->cpu_user_us;
    usage->cpu_sys_us = call->cpu_sys_us;
    usage->peak_memory_bytes =
        group->peak_memory_bytes ? group->peak_memory_bytes : call->peak_kb * 1024;
    usage->peak_pids = group->peak_pids;
    usage->oom_kills = group->oom_kills;
    usage->pids_refused = group->pids_refused;
    usage->cpu_throttled_us = group->throttled_us;
    for (int i = 0; i < 2; i++)
        usage->out_bytes[i] = call->captures[i].seen;
}

/* The denial that is the outcome is the one the function reported, which is the last. */
static void give_denials(struct brig_call *call, struct brig_call_result *ret)
{
    ret->denial_count = call->denial_count;
    ret->denials = take_ptr(&call->denials);
    call->denial_count = 0;
    bool is_denial = ret->outcome == BRIG_CALL_FILESYSTEM || ret->outcome == BRIG_CALL_NETWORK ||
                     ret->outcome == BRIG_CALL_SYSCALL;
    if (is_denial && ret->denial_count > 0)
        ret->denial = &ret->denials[ret->denial_count - 1];
}

/* In place: of a result on the stack each page would be copied from the one that the child still has. */
int outcome_fill(struct brig_call *call, struct brig_call_result *ret, struct brig_error *err)
{
    int code = 0;
    *ret = (struct brig_call_result){.exit_code = -1};
    if (!never_ran(call))
        code = decide(call, ret, err);
    else if (call->has_reason)
        ret->outcome = call->reason;
    else
        code = explain(call, ret, err);
    fill_usage(call, &ret->usage);
    ret->unenforced = call->own ? call->own->unenforced : call->caller->unenforced;
    capture_take(&call->captures[0], &ret->out);
    capture_take(&call->captures[1], &ret->err);
    give_denials(call, ret);
    if (code < 0 && ret->error.code == 0) /* what it left could not be taken */
        brig_call_result_done(ret);
    return code;
}
