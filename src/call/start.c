/* SPDX-License-Identifier: MIT */
/* Prepares a call: everything that happens before the fork. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/path.h"
#include "call/call.h"
#include "call/caller.h"
#include "jail/confine/seccomp.h"
#include "jail/sys.h"

/* ---- streams ---- */

/* A terminal is reopened write-only. Landlock or the view keeps the child from opening it again;
 * without either, the child gets /dev/null. */
static int open_inherited(const struct brig_caller *caller, int number)
{
    if (fcntl(number, F_GETFD) < 0)
        return caller->null_fd;
    if (!isatty(number))
        return -1;
    if (number == 0 || (!caller->full && caller->ruleset < 0))
        return caller->null_fd;
    int fd = open(path_proc(number).text, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? caller->null_fd : fd;
}

static int open_streams(struct brig_call *call, struct brig_error *err)
{
    const struct brig_caller *caller = call->caller;
    uint64_t limit = caller->policy->limits[BRIG_LIMIT_OUTPUT_BYTES];
    for (int i = 0; i < 3; i++) {
        enum brig_stdio_kind kind = caller->options.stdio[i];
        if (kind == BRIG_STDIO_NULL)
            call->stdio_child[i] = caller->null_fd;
        if (kind == BRIG_STDIO_INHERIT)
            call->stdio_child[i] = open_inherited(caller, i);
        if (kind == BRIG_STDIO_INHERIT && call->stdio_child[i] >= 0)
            call->has_terminal |= call->stdio_child[i] != caller->null_fd;
        if (kind != BRIG_STDIO_CAPTURE || i == 0)
            continue;
        int result = capture_open(&call->captures[i - 1], limit ? limit : UINT64_MAX,
                                  &call->stdio_child[i], err);
        if (result < 0)
            return result;
    }
    return 0;
}

static void close_child_side(struct brig_call *call)
{
    for (int i = 0; i < 3; i++) {
        if (call->stdio_child[i] == call->caller->null_fd)
            call->stdio_child[i] = -1;
        close_fd(&call->stdio_child[i]);
    }
    close_fd(&call->wire_child);
    close_fd(&call->trace_child);
    close_fd(&call->network);
}

/* ---- the jail ---- */

static void use_group(struct brig_call *call)
{
    struct plan *plan = call->own;
    struct cgroup *group = call->limits.group;
    plan->cgroup_fd = group ? cgroup_clone_fd(group) : -1;
    plan->join_count = group ? cgroup_join_fds(group, plan->join_fds) : 0;
    plan->tool_token = call->limits.lease ? nested_limits_lease_token(call->limits.lease) : 0;
    plan->limits_missing = caller_note_limits(call->caller, &call->limits, &plan->unenforced);
}

static int make_group(struct brig_call *call, struct brig_error *err)
{
    const struct brig_caller *caller = call->caller;
    call->limits.shared = caller->full && caller->template->ready;
    if (caller->has_group)
        return limits_init(&call->limits, caller->policy, err);
    limits_skip(&call->limits, caller->policy);
    return 0;
}

static int make_own(struct brig_call *call, struct brig_error *err)
{
    call->own = calloc(1, sizeof *call->own);
    if (!call->own)
        return brig_fail_nomem(err);
    *call->own = PLAN_INIT;
    call->own->unenforced = call->caller->unenforced;
    return 0;
}

static int prepare_alone(struct brig_call *call, struct brig_error *err)
{
    if (!call->caller->has_group)
        return 0;
    int result = make_own(call, err);
    if (result < 0 || (result = make_group(call, err)) < 0)
        return result;
    struct plan *plan = call->own;
    plan->rung = PLAN_LANDLOCK;
    plan->drop_caps = call->caller->plan.drop_caps;
    plan->seccomp = call->caller->plan.seccomp;
    use_group(call);
    plan_rlimits(plan, call->caller->policy);
    return 0;
}

/* Compiles the plan of one call: from the template if there is one. */
static int compile(struct brig_call *call, struct brig_error *err)
{
    struct brig_caller *caller = call->caller;
    struct plan *plan = call->own;
    if (!caller->template->ready) {
        int result = plan_compile(caller->policy, PLAN_FULL, 0, NULL, plan, err);
        return result < 0 ? result : plan_open_init(plan, err);
    }
    call->network = template_plan(caller->template, plan);
    if (call->network >= 0)
        template_refill(caller->template);
    return 0;
}

static int prepare_full(struct brig_call *call, struct brig_error *err)
{
    static const char *const argv[] = {"function", NULL};
    const struct brig_command command = {.size = sizeof(struct brig_command), .argv = argv};
    struct plan_input input = {.policy = call->caller->policy,
                               .command = &command,
                               .stdio_fds = {PLAN_FD_NULL, PLAN_FD_NULL, PLAN_FD_NULL},
                               .host_terminal = -1,
                               .pty_fd = -1};
    int result = make_own(call, err);
    if (result < 0 || (result = make_group(call, err)) < 0 || (result = compile(call, err)) < 0)
        return result;
    use_group(call);
    caller_note_network(call->caller, &call->own->unenforced);
    if ((result = plan_add_command(call->own, &input, err)) < 0)
        return result;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket pair");
    call->wire = pair[0];
    call->wire_child = pair[1];
    return 0;
}

static int prepare(struct brig_call *call, struct brig_error *err)
{
    struct brig_caller *caller = call->caller;
    int result = child_statuses_renew(&caller->statuses, err);
    if (result < 0)
        return result;
    call->slot = child_status_take(&caller->statuses, &call->turn);
    if (!call->slot)
        return brig_fail(err, BRIG_E_STATE, 0, "too many concurrent calls of one caller (limit %d)",
                         CHILD_STATUSES);
    call->memory = memory_open(caller->value_limit, err);
    if (call->memory < 0)
        return call->memory;
    result = caller->full ? prepare_full(call, err) : prepare_alone(call, err);
    if (result == 0)
        result = open_streams(call, err);
    if (result == 0 && caller->options.trace)
        result = trace_open(call, err);
    return result;
}

int call_init(struct brig_call *call, struct brig_caller *caller, struct brig_error *err)
{
    *call = (struct brig_call){.caller = caller};
    call->memory = call->network = call->wire = call->wire_child = -1;
    call->trace = call->trace_child = call->pidfd = call->init_pidfd = call->epoll = call->timer =
        -1;
    call->captures[0].fd = call->captures[1].fd = -1;
    for (int i = 0; i < 3; i++)
        call->stdio_child[i] = -1;
    call->keep_count = caller->keep_count;
    memcpy(call->keep_fds, caller->keep_fds, caller->keep_count * sizeof(int));
    call->parent = getpid();
    int result = fds_fill_standard(err);
    if (result == 0)
        result = prepare(call, err);
    if (result < 0)
        call_done(call);
    return result;
}

int brig_call_begin(struct brig_caller *caller, struct brig_call **ret_call, struct brig_error *err)
{
    struct brig_call *call = malloc(sizeof *call);
    if (!call)
        return brig_fail_nomem(err);
    int result = call_init(call, caller, err);
    if (result < 0) {
        free(call);
        return result;
    }
    *ret_call = call;
    return 0;
}

int brig_call_keep_fd(struct brig_call *call, int fd, struct brig_error *err)
{
    if (call->state != CALL_BEGUN)
        return brig_fail(err, BRIG_E_STATE, 0, "the call is under way");
    int result = options_check_fd(call->caller->policy, fd, err);
    if (result < 0)
        return result;
    if (call->keep_count == BRIG_CALL_KEEP_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "more than %d fds to keep", BRIG_CALL_KEEP_MAX);
    call->keep_fds[call->keep_count++] = fd;
    return 0;
}

/* ---- after the fork ---- */

static void set_clocks(struct brig_call *call)
{
    const uint64_t *limits = call->caller->policy->limits;
    call->started_us = clock_now_us();
    if (limits[BRIG_LIMIT_WALL_MS])
        call->wall_deadline_us = call->started_us + limits[BRIG_LIMIT_WALL_MS] * 1000;
    if (limits[BRIG_LIMIT_CPU_MS]) /* not possible earlier, even on all CPUs */
        call->cpu_check_us =
            call->started_us + limits[BRIG_LIMIT_CPU_MS] * 1000 / call->caller->cores;
}

/* Ends a child of which there is no pidfd, as no fd was left. It may not lead its group yet. */
static void end_unwatched(struct brig_call *call)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)call->pid, &info, WEXITED | WNOWAIT | WNOHANG | __WALL) == 0) {
        (void)kill(call->pid, SIGKILL);
        while (waitpid(call->pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    call->pid = 0;
    call->state = CALL_OVER;
}

int brig_call_started(struct brig_call *call, pid_t pid, struct brig_error *err)
{
    int sys_errno = errno;
    if (call->state != CALL_BEGUN)
        return brig_fail(err, BRIG_E_STATE, 0, "the call was started already");
    close_child_side(call);
    if (pid < 0) {
        call->state = CALL_OVER;
        return brig_fail(err, BRIG_E_SYSTEM, sys_errno, "cannot fork");
    }
    if (call->limits.group)
        cgroup_joined(call->limits.group);
    set_clocks(call);
    call->pid = pid;
    call->state = CALL_RUNNING;
    call->pidfd = (int)SYS(pidfd_open, pid, 0);
    if (call->pidfd >= 0)
        return 0;
    /* Either the child has ended and was reaped already, because the caller ignores SIGCHLD or
     * reaps all children; or no pidfd can be opened, and the child must not run unsupervised. */
    sys_errno = -call->pidfd;
    call->pidfd = -1;
    group_kill(call, SIGKILL);
    if (sys_errno == ESRCH) {
        call_conclude(call);
        return 0;
    }
    end_unwatched(call);
    return brig_fail(err, BRIG_E_SYSTEM, sys_errno, "cannot watch the call's process");
}

static bool is_our_child(int pidfd)
{
    siginfo_t info = {0};
    return SYS(waitid, SYS_WAIT_PIDFD, pidfd, &info, WEXITED | WNOWAIT | WNOHANG | __WALL, 0) == 0;
}

/* ---- releasing a call ---- */

/* Kills a child whose pid was not reported: an exception was raised in the interpreter between fork
 * and brig_call_started(). Init, if there is one, ends the jail when the other end of its wire is
 * closed. */
static void end_untold(const struct brig_call *call, pid_t pid)
{
    siginfo_t info = {0};
    long opened = pid > 0 ? SYS(pidfd_open, pid, 0) : -1;
    autoclose int pidfd = opened < 0 ? -1 : (int)opened;
    if (pidfd < 0 || !is_our_child(pidfd))
        return;
    (void)kill(-pid, SIGKILL);
    (void)SYS(pidfd_send_signal, pidfd, SIGKILL, 0, 0);
    if (call->limits.group)
        (void)cgroup_kill(call->limits.group);
    while (SYS(waitid, SYS_WAIT_PIDFD, pidfd, &info, WEXITED, 0) == -EINTR)
        ;
}

static void close_fds(struct brig_call *call)
{
    close_child_side(call);
    close_fd(&call->memory);
    close_fd(&call->wire);
    close_fd(&call->trace);
    close_fd(&call->pidfd);
    close_fd(&call->init_pidfd);
    close_fd(&call->epoll);
    close_fd(&call->timer);
    capture_done(&call->captures[0]);
    capture_done(&call->captures[1]);
}

void call_done(struct brig_call *call)
{
    if (call->parent != getpid()) { /* child, status slot and cgroup are that process's */
        close_fds(call);
        return;
    }
    if (call->state == CALL_RUNNING || call->state == CALL_ENDING || call->state == CALL_KILLED) {
        (void)brig_call_cancel(call, NULL);
        (void)brig_call_wait(call, NULL);
    }
    if (call->slot && call->state == CALL_BEGUN)
        end_untold(call, child_status_close(call->slot));
    close_fds(call);
    if (call->own)
        plan_done(call->own);
    free(call->own);
    limits_done(&call->limits);
    if (call->slot) {
        (void)child_status_close(call->slot);
        child_status_return(call->slot);
    }
    trace_done(call);
    free(call->denials);
}

void brig_call_free(struct brig_call *call)
{
    if (call)
        call_done(call);
    free(call);
}
