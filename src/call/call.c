/* SPDX-License-Identifier: MIT */
/* Theory of operation: the supervision of a call.
 *
 * The caller's thread polls the pidfd of one process, a clock, the captured streams, in the full
 * jail the socket to init, and with tracing the filter's listener. There is no signal handler and
 * no extra thread. When the process ends, everything it started is killed before it is reaped:
 * while it is a zombie, its pid cannot be reused for another process group. */
#include "call/call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/job/job.h"
#include "jail/job/spawn.h"
#include "jail/sys.h"

#define SIGNAL_PROCESS_GROUP (1U << 2) /* PIDFD_SIGNAL_PROCESS_GROUP */

#define CPU_CHECK_MIN_US 20000
#define CPU_CHECK_MAX_US 500000
#define KILL_PATIENCE_US 1000000

/* ---- ending the call ---- */

static void tell_init(struct brig_call *call, int type, int a)
{
    struct wire_message message = {.type = type, .a = a};
    if (call->wire >= 0)
        (void)send(call->wire, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* In the full jail init kills and reaps every process and exits. If it has not done so when this is
 * called again, init is killed, and its parent exits. */
static void kill_all(struct brig_call *call)
{
    bool again = call->state == CALL_KILLED;
    call->state = CALL_KILLED;
    call->kill_deadline_us = clock_now_us() + KILL_PATIENCE_US;
    limits_unthrottle(&call->limits);
    if (!call->caller->full) {
        group_kill(call, SIGKILL);
        return;
    }
    tell_init(call, WIRE_KILL, 0);
    if (!again && call->init_pidfd >= 0)
        return;
    if (call->init_pidfd >= 0)
        (void)SYS(pidfd_send_signal, call->init_pidfd, SIGKILL, 0, 0);
    else
        group_kill(call, SIGKILL); /* init is not running yet */
}

static void end_call(struct brig_call *call, enum brig_call_outcome reason)
{
    if (call->state != CALL_RUNNING)
        return;
    call->has_reason = true;
    call->reason = reason;
    uint64_t grace_us = call->caller->policy->limits[BRIG_LIMIT_GRACE_MS] * 1000;
    if (grace_us == 0) {
        kill_all(call);
        return;
    }
    call->state = CALL_ENDING;
    call->kill_deadline_us = clock_now_us() + grace_us;
    if (call->caller->full)
        tell_init(call, WIRE_SIGNAL, SIGTERM);
    else
        group_kill(call, SIGTERM);
}

static uint64_t cpu_used_us(const struct brig_call *call)
{
    uint64_t used = 0;
    if (call->limits.group && cgroup_cpu_us(call->limits.group, &used))
        return used;
    return call->caller->full ? tree_cpu_us(call->pid) : group_cpu_us(call->pid);
}

static void check_cpu(struct brig_call *call, uint64_t now)
{
    uint64_t limit = call->caller->policy->limits[BRIG_LIMIT_CPU_MS] * 1000;
    uint64_t used = cpu_used_us(call);
    if (used >= limit) {
        end_call(call, BRIG_CALL_CPU_TIMEOUT);
        return;
    }
    uint64_t wait = (limit - used) / call->caller->cores;
    wait = wait < CPU_CHECK_MIN_US ? CPU_CHECK_MIN_US : wait;
    call->cpu_check_us = now + (wait > CPU_CHECK_MAX_US ? CPU_CHECK_MAX_US : wait);
}

static void check_clocks(struct brig_call *call)
{
    uint64_t now = clock_now_us();
    if (call->state == CALL_RUNNING && call->wall_deadline_us && now >= call->wall_deadline_us)
        end_call(call, BRIG_CALL_TIMEOUT);
    if (call->state == CALL_RUNNING && call->cpu_check_us && now >= call->cpu_check_us)
        check_cpu(call, now);
    if (call->state > CALL_RUNNING && call->kill_deadline_us && now >= call->kill_deadline_us)
        kill_all(call);
}

/* Returns when the next deadline or check is due, or 0. */
static uint64_t next_due_us(const struct brig_call *call)
{
    if (call->state != CALL_RUNNING)
        return call->kill_deadline_us;
    uint64_t due = call->wall_deadline_us;
    if (call->cpu_check_us && (!due || call->cpu_check_us < due))
        due = call->cpu_check_us;
    return due;
}

/* ---- input ---- */

static void forget_fd(struct brig_call *call, int *fd)
{
    if (call->epoll >= 0)
        (void)epoll_ctl(call->epoll, EPOLL_CTL_DEL, *fd, NULL);
    close_fd(fd);
}

static void read_capture(struct brig_call *call, struct capture *capture)
{
    int ended = capture_read(capture);
    if (capture->truncated)
        end_call(call, BRIG_CALL_OUTPUT);
    if (ended)
        forget_fd(call, &capture->fd);
}

/* The child waits for newgidmap to write its group map. */
static void write_maps(struct brig_call *call)
{
    struct brig_error err = {0};
    if (spawn_newgidmap(call_plan(call), call->pid, &err) < 0) {
        call->failed_step = PLAN_STEP_IDS;
        group_kill(call, SIGKILL);
        return;
    }
    tell_init(call, WIRE_GO, 0);
}

static void take_message(struct brig_call *call, const struct wire_message *message, int *fd)
{
    switch (message->type) {
    case WIRE_FAILED:
        if (call->failed_step == 0) {
            call->failed_step = message->a;
            call->failed_errno = message->b;
        }
        break;
    case WIRE_SOFT:
        plan_note_soft_failure(call->own, message->a, message->b);
        break;
    case WIRE_PID:
        if (call->init_pidfd < 0)
            call->init_pidfd = take_fd(fd);
        break;
    case WIRE_ENDED:
        call->end = *message;
        break;
    case WIRE_GO:
        write_maps(call);
        break;
    default:
        break;
    }
}

static void read_wire(struct brig_call *call)
{
    for (;;) {
        struct wire_message message = {0};
        autoclose int fd = -1;
        int got = spawn_receive(call->wire, &message, &fd);
        if (got == 0)
            return;
        if (got < 0) {
            forget_fd(call, &call->wire);
            return;
        }
        take_message(call, &message, &fd);
    }
}

/* ---- the end of the process ---- */

static uint64_t to_us(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* All writers are dead or about to die. The remaining output is in the pipes, which hold less than
 * one call reads. */
static void drain_captures(struct brig_call *call)
{
    for (int i = 0; i < 2; i++)
        if (call->captures[i].fd >= 0)
            read_capture(call, &call->captures[i]);
}

static void note_status(struct brig_call *call, const siginfo_t *info, const struct rusage *usage)
{
    if (call->caller->full) { /* the reaped process is init or its parent */
        call->status_known = call->end.type == WIRE_ENDED && call->end.a != -1;
        call->status = call->end.a;
        call->cpu_user_us = call->end.user_us;
        call->cpu_sys_us = call->end.sys_us;
        call->peak_kb = call->end.peak_kb;
        return;
    }
    call->status_known = info->si_pid != 0;
    call->status =
        info->si_code == CLD_EXITED ? (info->si_status & 0xff) << 8 : info->si_status & 0x7f;
    call->cpu_user_us = to_us(&usage->ru_utime);
    call->cpu_sys_us = to_us(&usage->ru_stime);
    call->peak_kb = (uint64_t)usage->ru_maxrss;
}

/* Every process of the call is dead. */
static void settle(struct brig_call *call, const siginfo_t *info, const struct rusage *usage)
{
    call->ended_us = clock_now_us();
    if (call->wire >= 0)
        read_wire(call);
    note_status(call, info, usage);
    call->told = child_status_read(call->slot);
    limits_usage(&call->limits, &call->group_usage);
    drain_captures(call);
    call->pid = 0;
    call->state = CALL_OVER;
}

/* Kills the remaining processes of the group of a dead leader. Kernels before 6.9 have no
 * PIDFD_SIGNAL_PROCESS_GROUP; there use the pid, which a zombie still holds. */
static void kill_rest(const struct brig_call *call)
{
    siginfo_t info = {0};
    if (SYS(pidfd_send_signal, call->pidfd, SIGKILL, 0, SIGNAL_PROCESS_GROUP) != -EINVAL)
        return;
    if (SYS(waitid, SYS_WAIT_PIDFD, call->pidfd, &info, WEXITED | WNOWAIT | WNOHANG, 0) == 0 &&
        info.si_pid != 0)
        (void)kill(-call->pid, SIGKILL);
}

void call_conclude(struct brig_call *call)
{
    siginfo_t info = {0};
    struct rusage usage = {0};
    long result;
    if (!call->caller->full)
        kill_rest(call);
    if (call->limits.group && !call->caller->full)
        (void)cgroup_kill(call->limits.group);
    do
        result = SYS(waitid, SYS_WAIT_PIDFD, call->pidfd, &info, WEXITED | __WALL, &usage);
    while (result == -EINTR);
    settle(call, &info, &usage); /* if another thread reaped the process, its status is unknown */
}

/* ---- the loop ---- */

enum { WATCH_PROCESS, WATCH_OUT, WATCH_ERR, WATCH_WIRE, WATCH_TRACE, WATCHES };

/* Waits at most `patience`, and handles what became ready. */
static void step(struct brig_call *call, const struct timespec *patience)
{
    struct pollfd watches[WATCHES] = {
        [WATCH_PROCESS] = {.fd = call->pidfd, .events = POLLIN},
        [WATCH_OUT] = {.fd = call->captures[0].fd, .events = POLLIN},
        [WATCH_ERR] = {.fd = call->captures[1].fd, .events = POLLIN},
        [WATCH_WIRE] = {.fd = call->wire, .events = POLLIN},
        [WATCH_TRACE] = {.fd = call->trace, .events = POLLIN},
    };
    if (ppoll(watches, WATCHES, patience, NULL) > 0) {
        if (watches[WATCH_OUT].revents)
            read_capture(call, &call->captures[0]);
        if (watches[WATCH_ERR].revents)
            read_capture(call, &call->captures[1]);
        if (watches[WATCH_WIRE].revents)
            read_wire(call);
        if (watches[WATCH_TRACE].revents)
            trace_serve(call, !(watches[WATCH_TRACE].revents & POLLIN));
        if (watches[WATCH_PROCESS].revents) {
            call_conclude(call);
            return;
        }
    }
    check_clocks(call);
}

/* Returns the time until the next deadline, or until_us if that comes first; NULL: none. */
static const struct timespec *patience_of(const struct brig_call *call, uint64_t until_us,
                                          struct timespec *patience)
{
    uint64_t due = next_due_us(call), now = clock_now_us();
    if (until_us && (!due || until_us < due))
        due = until_us;
    if (due == 0)
        return NULL;
    uint64_t wait = due > now ? due - now : 0;
    *patience = (struct timespec){.tv_sec = (time_t)(wait / 1000000),
                                  .tv_nsec = (long)(wait % 1000000) * 1000};
    return patience;
}

static int check_running(const struct brig_call *call, struct brig_error *err)
{
    if (call->parent != getpid())
        return brig_fail(err, BRIG_E_STATE, 0, "the call belongs to the process that began it");
    if (call->state == CALL_BEGUN)
        return brig_fail(err, BRIG_E_STATE, 0, "the call was not started");
    if (call->state != CALL_OVER && call->pidfd < 0)
        return brig_fail(err, BRIG_E_STATE, 0, "the call's process cannot be watched");
    return 0;
}

/* until_us is 0 for no limit. */
static int wait_until(struct brig_call *call, uint64_t until_us, struct brig_error *err)
{
    int result = check_running(call, err);
    while (result == 0 && call->state != CALL_OVER && (!until_us || clock_now_us() < until_us)) {
        struct timespec patience;
        step(call, patience_of(call, until_us, &patience));
    }
    return result;
}

int brig_call_wait(struct brig_call *call, struct brig_error *err)
{
    return wait_until(call, 0, err);
}

int brig_call_wait_ms(struct brig_call *call, int64_t timeout_ms, struct brig_error *err)
{
    int result = timeout_ms == 0 ? brig_call_process(call, err)
                                 : wait_until(call, clock_until_us(timeout_ms), err);
    return result < 0 ? result : call->state == CALL_OVER;
}

int brig_call_cancel(struct brig_call *call, struct brig_error *err)
{
    if (call->state == CALL_BEGUN || call->state == CALL_OVER || call->parent != getpid())
        return brig_fail(err, BRIG_E_STATE, 0, "no call of this process is running");
    end_call(call, BRIG_CALL_CANCELLED);
    return 0;
}

/* ---- for event loops ---- */

static void arm_timer(const struct brig_call *call)
{
    struct timespec patience;
    struct itimerspec setting = {0};
    if (call->timer < 0)
        return;
    if (call->state == CALL_OVER) /* wake up the event loop: the call is over */
        setting.it_value.tv_nsec = 1;
    else if (patience_of(call, 0, &patience)) {
        setting.it_value = patience;
        if (patience.tv_sec == 0 && patience.tv_nsec == 0)
            setting.it_value.tv_nsec = 1;
    }
    (void)timerfd_settime(call->timer, 0, &setting, NULL);
}

static bool add_to_epoll(const struct brig_call *call, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 || epoll_ctl(call->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

int brig_call_fd(struct brig_call *call)
{
    if (call->epoll >= 0 || call->state == CALL_BEGUN)
        return call->epoll;
    call->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    call->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (call->timer >= 0 && call->epoll >= 0 && add_to_epoll(call, call->timer) &&
        add_to_epoll(call, call->pidfd) && add_to_epoll(call, call->captures[0].fd) &&
        add_to_epoll(call, call->captures[1].fd) && add_to_epoll(call, call->wire) &&
        add_to_epoll(call, call->trace)) {
        arm_timer(call);
        return call->epoll;
    }
    close_fd(&call->epoll);
    return -1;
}

int brig_call_process(struct brig_call *call, struct brig_error *err)
{
    const struct timespec now = {0};
    int result = check_running(call, err);
    if (result < 0 || call->state == CALL_OVER)
        return result < 0 ? result : 1;
    step(call, &now);
    arm_timer(call);
    return call->state == CALL_OVER;
}

int call_finish(struct brig_call *call, struct brig_call_result *ret_result, struct brig_error *err)
{
    if (call->state != CALL_OVER)
        return brig_fail(err, BRIG_E_STATE, 0, "the call is not over yet");
    if (call->is_taken)
        return brig_fail(err, BRIG_E_STATE, 0, "the result was taken already");
    call->is_taken = true;
    return outcome_fill(call, ret_result, err);
}

/* ---- a complete call ---- */

static __attribute__((noreturn)) void run(struct brig_call_child *child, brig_call_fn fn,
                                          void *argument)
{
    int result = fn(child, argument);
    if (child->head->state == MEMORY_NOTHING && result == 0)
        (void)brig_call_return(child, NULL, 0);
    if (child->head->state == MEMORY_NOTHING)
        (void)child_fail_number(child, result);
    brig_call_leave(child);
}

static int call_once(struct brig_caller *caller, brig_call_fn fn, void *argument,
                     struct brig_call_result *ret_result, struct brig_error *err)
{
    struct brig_call call; /* on the stack, in a page that each fork copies anyway */
    if (!fn)
        return brig_fail(err, BRIG_E_INVALID, 0, "no function to call");
    int result = call_init(&call, caller, err);
    if (result < 0)
        return result;
    pid_t pid = fork();
    if (pid == 0)
        run(brig_call_enter(&call, 0), fn, argument);
    result = brig_call_started(&call, pid, err);
    if (result == 0)
        result = brig_call_wait(&call, err);
    if (result == 0)
        result = call_finish(&call, ret_result, err);
    call_done(&call);
    return result;
}

int caller_call(struct brig_caller *caller, brig_call_fn fn, void *argument,
                struct brig_call_result *ret_result, struct brig_error *err)
{
    struct brig_error local = {0};
    *ret_result = (struct brig_call_result){.exit_code = -1};
    int result = fn ? call_once(caller, fn, argument, ret_result, &local)
                    : brig_fail(&local, BRIG_E_INVALID, 0, "there is no function to call");
    if (result < 0)
        outcome_nothing_ran(ret_result, &local);
    if (result < 0 && err)
        *err = local;
    return result;
}

int call_run(const struct brig_policy *policy, const struct brig_call_options *options,
             brig_call_fn fn, void *argument, struct brig_call_result *ret_result,
             struct brig_error *err)
{
    struct brig_error local = {0};
    struct brig_caller *caller = NULL;
    int result = brig_caller_new(policy, options, &caller, &local);
    if (result < 0) {
        outcome_nothing_ran(ret_result, &local);
        if (err)
            *err = local;
        return result;
    }
    result = caller_call(caller, fn, argument, ret_result, err);
    brig_caller_free(caller);
    return result;
}

/* ---- process group ---- */

/* The processes of a call without namespaces are one process group. The syscall filter keeps them
 * from leaving it. */

/* The leader is an unreaped child of this process, so its pid is not reused. It may not have called
 * setpgid() yet, so it is signalled separately as well. */
void group_kill(const struct brig_call *call, int signal)
{
    if (call->pid <= 0)
        return;
    (void)kill(-call->pid, signal);
    if (call->pidfd >= 0)
        (void)SYS(pidfd_send_signal, call->pidfd, signal, 0, 0);
    if (signal == SIGKILL && call->limits.group)
        (void)cgroup_kill(call->limits.group);
}
