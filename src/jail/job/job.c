/* SPDX-License-Identifier: MIT */
/* Supervises a job until its end: signals, limits, captured streams, the result. */
#include "jail/job/job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
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
#include "base/fds.h"
#include "jail/job/spawn.h"
#include "jail/job/streams.h"
#include "jail/sys.h"

#define CPU_CHECK_MIN_US 20000
#define CPU_CHECK_MAX_US 500000
/* How long init may take to kill all processes before init itself is killed. */
#define KILL_PATIENCE_US 1000000
#define KILL_AGAIN_US 50000
/* How long killed processes may take to die before the job looks for one that is stuck. */
#define STUCK_PATIENCE_US 2000000

uint64_t job_deadline_us(const struct brig_job *job)
{
    return job->wall_deadline_us;
}

/* Returns whether the jail has a pid namespace, so that the end of its first process ends all
 * others. */
static bool job_has_namespace(const struct brig_job *job)
{
    return job->plan.rung == PLAN_FULL && !job->plan.enters;
}

bool job_is_timed(const struct brig_job *job)
{
    return job->wall_deadline_us != 0 || job->cpu_limit_us != 0;
}

bool job_is_awaited(const struct brig_job *job)
{
    return job->late >= 0 || job->late_input >= 0;
}

void job_start_clock(struct brig_job *job, uint64_t wall_ms)
{
    if (wall_ms)
        job->wall_deadline_us = job->started_us + wall_ms * 1000;
    if (job->cpu_limit_us)
        job->cpu_check_us = job->started_us + 1;
}

/* ---- prepared runs ---- */

bool job_is_waiting(const struct brig_job *job)
{
    return job->state == JOB_RUNNING && job_is_awaited(job) && !job->building;
}

int job_take_kept(struct brig_job *job)
{
    return take_fd(&job->kept);
}

static int fill_late(struct brig_job *job, const struct job_late *late, struct brig_error *err)
{
    int result = 0;
    if (job->late_input >= 0)
        result = streams_fill_input(job->late_input, late->input, late->input_length, err);
    if (result < 0)
        return result;
    if (job->late >= 0 && (result = write_all(job->late, late->code, late->code_length)) < 0)
        return brig_fail(err, BRIG_E_SETUP, -result, "cannot write the code into its jail");
    int *const fds[] = {&job->late, &job->late_input};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        close_fd(fds[i]);
    return 0;
}

int job_release(struct brig_job *job, const struct job_late *late, struct brig_error *err)
{
    if (!job_is_waiting(job))
        return brig_fail(err, BRIG_E_STATE, 0, "the command does not wait");
    job->started_us = clock_now_us();
    int result = fill_late(job, late, err);
    if (result < 0)
        return result;
    job_start_clock(job, late->wall_ms);
    if (job->gate >= 0 && send(job->gate, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        return brig_fail(err, BRIG_E_STATE, 0, "the jail is gone");
    job_arm_timer(job);
    return 0;
}

/* ---- time ---- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return a ? a : b;
    return a < b ? a : b;
}

void job_arm_timer(struct brig_job *job)
{
    uint64_t due = sooner(job->kill_deadline_us, job->stuck_deadline_us);
    if (job->nested_limits)
        due = sooner(due, nested_limits_due_us(job->nested_limits));
    due = sooner(due, job->denials.resume_us);
    if (job->state == JOB_RUNNING)
        due = sooner(due,
                     sooner(job->wall_deadline_us, sooner(job->cpu_check_us, job->watch_due_us)));
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(due / 1000000), .tv_nsec = (long)(due % 1000000) * 1000}};
    (void)timerfd_settime(job->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void job_wake(const struct brig_job *job)
{
    const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
    (void)timerfd_settime(job->timer, 0, &at_once, NULL);
}

/* ---- killing the jail ---- */

static void tell(struct brig_job *job, int type, int a)
{
    struct wire_message message = {.type = type, .a = a};
    if (job->wire >= 0)
        (void)send(job->wire, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Init kills and reaps all processes, so that their resource usage is counted, and exits. If it
 * does not, it is killed itself, and its namespace with it. */
static void kill_tree(struct brig_job *job)
{
    job->state = JOB_KILLED;
    job->kill_deadline_us = clock_now_us() + KILL_PATIENCE_US;
    limits_unthrottle(&job->limits);
    tell(job, WIRE_KILL, 0);
    job_arm_timer(job);
}

/* Sends SIGTERM and, after the grace period, SIGKILL. SIGCONT wakes a stopped command so that it
 * can clean up. */
static void end_tree(struct brig_job *job, enum brig_outcome reason)
{
    if (job->state != JOB_RUNNING)
        return;
    if (job->end.type != WIRE_ENDED) { /* what has ended by itself keeps its outcome */
        job->has_reason = true;
        job->reason = reason;
    }
    if (job->grace_us == 0) {
        kill_tree(job);
        return;
    }
    job->state = JOB_ENDING;
    job->kill_deadline_us = clock_now_us() + job->grace_us;
    tell(job, WIRE_SIGNAL, SIGTERM);
    tell(job, WIRE_SIGNAL, SIGCONT);
    job_arm_timer(job);
}

static void check_cpu(struct brig_job *job, uint64_t now)
{
    uint64_t used = 0;
    if (!job->limits.group || !cgroup_cpu_us(job->limits.group, &used))
        used = tree_cpu_us(job->pid);
    if (used >= job->cpu_limit_us) {
        end_tree(job, BRIG_CPU_TIMEOUT);
        return;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t wait = (job->cpu_limit_us - used) / (uint64_t)(cores > 0 ? cores : 1);
    wait = wait < CPU_CHECK_MIN_US ? CPU_CHECK_MIN_US : wait;
    job->cpu_check_us = now + (wait > CPU_CHECK_MAX_US ? CPU_CHECK_MAX_US : wait);
}

/* Init did not end the jail in time. With a pid namespace, killing init kills every process.
 * Without one, init must stay alive to adopt orphans, so the supervisor kills the tree
 * repeatedly. */
static void lose_patience(struct brig_job *job, uint64_t now)
{
    limits_unthrottle(&job->limits);
    if (job_has_namespace(job)) {
        if (job->stuck_deadline_us == 0)
            job->stuck_deadline_us = now + STUCK_PATIENCE_US;
        job->kill_deadline_us = 0;
        (void)SYS(pidfd_send_signal, job->pidfd, SIGKILL, 0, 0);
        return;
    }
    tree_kill(job->pid);
    if (job->plan.enters) /* a process that is traced inside the jail ends with the jail */
        (void)SYS(pidfd_send_signal, job->pidfd, SIGKILL, 0, 0);
    if (job->limits.group)
        (void)cgroup_kill(job->limits.group);
    job->kill_deadline_us = now + KILL_AGAIN_US;
}

/* Returns a process of the jail in uninterruptible sleep, or 0. */
static pid_t find_stuck(const struct brig_job *job)
{
    pid_t pid = job->limits.group ? cgroup_stuck_pid(job->limits.group) : 0;
    return pid ? pid : tree_stuck_pid(job->pid);
}

/* Some processes are alive after SIGKILL. If one of them is in uninterruptible sleep, it cannot be
 * killed, and the job ends without it. The group is killed once more, because no one checks it
 * later. It stays, and a later brig process sweeps it. */
static void look_for_stuck(struct brig_job *job, uint64_t now)
{
    pid_t pid = find_stuck(job);
    job->stuck_deadline_us = now + STUCK_PATIENCE_US;
    if (pid == 0)
        return;
    if (job->limits.group)
        (void)cgroup_kill(job->limits.group);
    job->stuck_pid = pid;
    job->stuck_deadline_us = 0;
}

/* Called when the run has lasted long enough to watch its mounts, or names on the host. */
static void watch_on(struct brig_job *job)
{
    bool names = job->watch.mounts >= 0;
    watch_rest(&job->watch, &job->plan, job->pid, &job->notices);
    int fd = names ? job->watch.names.fd : job->watch.mounts;
    struct epoll_event event = {.events = names ? EPOLLIN : EPOLLPRI, .data.fd = fd};
    if (fd >= 0)
        (void)epoll_ctl(job->epoll, EPOLL_CTL_ADD, fd, &event);
    uint64_t delay = fd >= 0 ? watch_delay_us(&job->watch, &job->plan) : 0;
    job->watch_due_us = delay > 0 ? job->started_us + delay : 0;
}

static void handle_timer(struct brig_job *job)
{
    uint64_t expirations, now = clock_now_us();
    (void)!read(job->timer, &expirations, sizeof expirations);
    if (job->state == JOB_RUNNING && job->wall_deadline_us && now >= job->wall_deadline_us)
        end_tree(job, BRIG_TIMEOUT);
    if (job->state == JOB_RUNNING && job->watch_due_us && now >= job->watch_due_us)
        watch_on(job);
    if (job->state == JOB_RUNNING && job->cpu_check_us && now >= job->cpu_check_us)
        check_cpu(job, now);
    if (job->state == JOB_ENDING && job->kill_deadline_us && now >= job->kill_deadline_us)
        kill_tree(job);
    else if (job->state == JOB_KILLED && job->kill_deadline_us && now >= job->kill_deadline_us)
        lose_patience(job, now);
    if (job->stuck_deadline_us && now >= job->stuck_deadline_us)
        look_for_stuck(job, now);
    if (job->nested_limits)
        nested_limits_wake(job->nested_limits, now);
    if (job->denials.resume_us != 0)
        denials_wake(&job->denials, job->epoll, now);
    job_arm_timer(job);
}

/* ---- messages ---- */

/* Handles messages while the jail is being built. Returns 1 when it is complete, 0 when there are
 * no more messages, or an error. */
static int hear_builder(struct brig_job *job, struct brig_error *err)
{
    while (job->building) {
        struct wire_message message = {0};
        int fd = -1, got = spawn_receive(job->wire, &message, &fd);
        if (got == 0)
            return 0;
        int result = got < 0 ? brig_fail(err, BRIG_E_SETUP, 0,
                                         "the zygote or the jail's first process ended before the "
                                         "command was started")
                             : job_build(job, &message, fd, err);
        if (result < 0)
            return result;
    }
    return 1;
}

/* After this, only the pidfd reports the jail's end. */
static void close_wire(struct brig_job *job)
{
    close_fd(&job->wire); /* the only copy, so this also removes it from the epoll set */
}

/* Init's last message: all other processes are dead. Do as much as possible while init exits. The
 * wire is closed here, because an extra wakeup for its end would delay the result. */
static void note_end(struct brig_job *job, const struct wire_message *message)
{
    job->end = *message;
    watch_leave(&job->watch);
    close_wire(job);
    close_fd(&job->entry_fd); /* the jail cannot be entered any more; closing is slow */
    limits_usage(&job->limits, &job->group_usage); /* without init */
    job->usage_known = true;
}

static void handle_wire(struct brig_job *job)
{
    for (;;) {
        struct wire_message message = {0};
        int fd = -1, got = spawn_receive(job->wire, &message, &fd);
        if (got > 0 && message.type == WIRE_DENIALS && fd >= 0 && job->denials.listener < 0)
            (void)denials_listen(&job->denials, fd, job->epoll, NULL);
        else
            close_fd(&fd); /* no further fd is sent */
        if (got == 0)
            return;
        if (got > 0 && message.type == WIRE_STOPPED)
            job->stop_signal = message.a;
        if (got > 0 && message.type == WIRE_ENDED)
            note_end(job, &message);
        if (got > 0 && message.type == WIRE_STUCK) {
            job->stuck_deadline_us = clock_now_us() + 1;
            job_arm_timer(job);
        }
        if (got < 0)
            close_wire(job);
        if (job->wire < 0)
            return;
    }
}

static void read_capture(struct brig_job *job, struct capture *capture)
{
    if (capture_read(capture) == 0)
        return;
    (void)epoll_ctl(job->epoll, EPOLL_CTL_DEL, capture->fd, NULL);
    close_fd(&capture->fd);
}

/* The fd may be closed already, if it was reported together with other events. */
static void serve_capture(struct brig_job *job, int fd)
{
    for (int i = 0; i < 2; i++)
        if (job->captures[i].fd == fd)
            read_capture(job, &job->captures[i]);
}

/* Every writer is dead: the remaining bytes are in the pipes, which hold less than one call
 * reads. */
static void drain_captures(struct brig_job *job)
{
    for (int i = 0; i < 2; i++)
        if (job->captures[i].fd >= 0)
            read_capture(job, &job->captures[i]);
}

static int conclude(struct brig_job *job)
{
    job->ended_us = clock_now_us();
    if (!job->usage_known)
        limits_usage(&job->limits, &job->group_usage);
    /* If the init of a command in a running jail was killed there, its processes are left. */
    if (job->plan.enters && job->limits.group && job->end.type != WIRE_ENDED)
        (void)cgroup_kill(job->limits.group);
    drain_captures(job);
    watch_conclude(&job->watch, &job->plan, &job->notices);
    if (job->door)
        door_conclude(job->door, &job->notices);
    job->state = JOB_OVER;
    return 1;
}

/* The first process has exited, and the jail with it; or a stuck process keeps it from exiting. */
static int reap(struct brig_job *job, struct brig_error *err)
{
    long result;
    int options = WEXITED | __WALL | (job->stuck_pid ? WNOHANG : 0);
    do
        result = SYS(waitid, SYS_WAIT_PIDFD, job->pidfd, 0, options, 0);
    while (result == -EINTR);
    /* With ECHILD the caller ignores SIGCHLD or has reaped the process: it is gone all the same,
     * and init has sent its wait status and usage. */
    if (result < 0 && result != -ECHILD)
        return brig_fail(err, BRIG_E_SYSTEM, (int)-result, "cannot wait for the jail");
    if (job->wire >= 0)
        handle_wire(job);
    job->pid = 0;
    return conclude(job);
}

/* Init has reported that no process is left, and the command's status: the result need not wait for
 * the kernel to destroy the namespaces. */
static bool is_answered(const struct brig_job *job)
{
    return job->is_early && job->end.type == WIRE_ENDED && !job->door;
}

/* From now on only the exit of the first process is watched. */
static void watch_only_end(struct brig_job *job)
{
    close_fd(&job->timer);
    denials_done(&job->denials);
    if (job->nested_limits)
        nested_limits_free(take_ptr(&job->nested_limits));
}

void job_answer_early(struct brig_job *job)
{
    job->is_early = true;
}

bool job_is_gone(const struct brig_job *job)
{
    struct pollfd ended = {.fd = job->pidfd, .events = POLLIN};
    return job->pid <= 0 || poll(&ended, 1, 0) > 0;
}

static bool serve_tool(struct brig_job *job, int fd)
{
    if (!job->nested_limits || !nested_limits_serve(job->nested_limits, fd, clock_now_us()))
        return false;
    if (nested_limits_due_us(job->nested_limits) != 0)
        job_arm_timer(job);
    return true;
}

static void serve_denials(struct brig_job *job, uint32_t events)
{
    denials_serve(&job->denials, job->epoll, events, clock_now_us());
    if (job->denials.resume_us != 0)
        job_arm_timer(job);
}

bool job_is_empty(const struct brig_job *job)
{
    return job->wire < 0 && job->end.type == WIRE_ENDED;
}

/* The epoll set and the wire are shared with a forked process: what it read would be missing here. */
static int check_owner(const struct brig_job *job, struct brig_error *err)
{
    return job->owner == getpid()
               ? 0
               : brig_fail(err, BRIG_E_STATE, 0, "the job belongs to the process that started it");
}

int brig_job_process(struct brig_job *job, struct brig_error *err)
{
    if (job->state == JOB_OVER)
        return 1;
    int checked = check_owner(job, err);
    if (checked < 0)
        return checked;
    struct epoll_event events[8];
    int count = epoll_wait(job->epoll, events, 8, 0);
    bool ended = false, due = false;
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        int built = job->building && fd == job->wire ? hear_builder(job, err) : 1;
        if (built < 0)
            return built;
        if (fd == job->wire && built > 0)
            handle_wire(job);
        else if (fd == job->wire)
            continue;
        else if (fd == job->pidfd)
            ended = true;
        else if (fd == job->timer)
            due = true;
        else if (fd == job->watch.names.fd)
            watch_process(&job->watch, &job->plan, job->pid, &job->notices);
        else if (fd == job->watch.mounts)
            watch_mounts_changed(&job->watch, &job->plan, job->pid, &job->notices);
        else if (fd == job->denials.listener)
            serve_denials(job, events[i].events);
        else if (!serve_tool(job, fd) && !(job->door && door_serve(job->door, fd, &job->notices)))
            serve_capture(job, fd);
    }
    /* After the other events: a caller that is late finds the end and the time limit at once. */
    if (due && !ended)
        handle_timer(job);
    if (ended || job->stuck_pid)
        return reap(job, err);
    if (!is_answered(job))
        return 0;
    watch_only_end(job);
    return conclude(job);
}

/* ---- the caller's side ---- */

bool job_take_net_event(struct brig_job *job, struct brig_net_event *ret_event)
{
    return job->door && door_take_event(job->door, ret_event);
}

int job_add_net_rule(struct brig_job *job, const char *line, struct brig_error *err)
{
    return job->door ? door_add_rule(job->door, line, err)
                     : brig_fail(err, BRIG_E_INVALID, 0, "the jail has no network door");
}

int job_set_net_rules(struct brig_job *job, const struct net_rules *rules, struct brig_error *err)
{
    return job->door ? door_set_rules(job->door, rules, err)
                     : brig_fail(err, BRIG_E_INVALID, 0, "the jail has no network door");
}

int brig_job_signal(struct brig_job *job, int signal, struct brig_error *err)
{
    if (signal < 1 || signal > 64)
        return brig_fail(err, BRIG_E_INVALID, 0, "no such signal: %d", signal);
    if (job->state == JOB_OVER)
        return brig_fail(err, BRIG_E_STATE, 0, "the job is over");
    int checked = check_owner(job, err);
    if (checked == 0)
        tell(job, WIRE_SIGNAL, signal);
    return checked;
}

int brig_job_cancel(struct brig_job *job, struct brig_error *err)
{
    if (job->state == JOB_OVER)
        return brig_fail(err, BRIG_E_STATE, 0, "the job is over");
    int checked = check_owner(job, err);
    if (checked == 0)
        end_tree(job, BRIG_CANCELLED);
    return checked;
}

int brig_job_wait(struct brig_job *job, struct brig_error *err)
{
    int result = brig_job_wait_ms(job, -1, err);
    return result < 0 ? result : 0;
}

int brig_job_wait_ms(struct brig_job *job, int64_t timeout_ms, struct brig_error *err)
{
    uint64_t until_us = clock_until_us(timeout_ms);
    for (;;) {
        int result = brig_job_process(job, err);
        uint64_t now_us = clock_now_us();
        if (result != 0 || (until_us && now_us >= until_us))
            return result;
        uint64_t left_us = until_us - now_us;
        struct timespec left = {.tv_sec = (time_t)(left_us / 1000000),
                                .tv_nsec = (long)(left_us % 1000000) * 1000};
        struct pollfd waiting = {.fd = job->epoll, .events = POLLIN};
        if (ppoll(&waiting, 1, until_us ? &left : NULL, NULL) < 0 && errno != EINTR)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for the job");
    }
}

/* ---- the result ---- */

/* The cgroup counts all processes of the jail, also those that init could not wait for. */
static void fill_group_usage(const struct cgroup_usage *group, struct brig_usage *usage)
{
    if (group->peak_memory_bytes > 0)
        usage->peak_memory_bytes = group->peak_memory_bytes;
    usage->peak_pids = group->peak_pids > 0 ? group->peak_pids - 1 : 0; /* without init */
    if (group->cpu_user_us + group->cpu_sys_us > usage->cpu_user_us + usage->cpu_sys_us) {
        usage->cpu_user_us = group->cpu_user_us;
        usage->cpu_sys_us = group->cpu_sys_us;
    }
    usage->oom_kills = group->oom_kills;
    usage->pids_refused = group->pids_refused;
    usage->cpu_throttled_us = group->throttled_us;
}

static void fill_usage(const struct brig_job *job, struct brig_usage *usage)
{
    usage->wall_us = job->ended_us - job->started_us;
    usage->cpu_user_us = job->end.user_us;
    usage->cpu_sys_us = job->end.sys_us;
    /* The kernel counts memory shared between clone and exec as the child's: a peak no higher than
     * the caller's says nothing. */
    uint64_t peak_kb = job->end.peak_kb;
    usage->peak_memory_bytes = peak_kb > job->own_peak_kb ? peak_kb * 1024 : 0;
    for (int i = 0; i < 2; i++)
        usage->out_bytes[i] = job->captures[i].seen;
    fill_group_usage(&job->group_usage, usage);
    usage->stuck_pid = job->stuck_pid;
}

static bool ended_by_cpu_limit(const struct brig_job *job, int signal)
{
    if (job->cpu_limit_us == 0)
        return false;
    uint64_t used = job->end.user_us + job->end.sys_us;
    return signal == SIGXCPU || (signal == SIGKILL && used >= job->cpu_limit_us);
}

static void fill_outcome(const struct brig_job *job, struct brig_result *result)
{
    result->exit_code = -1;
    int status = job->end.type == WIRE_ENDED ? job->end.a : -1;
    if (status == -1)
        result->signal = SIGKILL; /* init was killed, and all other processes with it */
    else if (WIFSIGNALED(status))
        result->signal = WTERMSIG(status);
    else
        result->exit_code = WEXITSTATUS(status);
    if (job->has_reason) {
        result->outcome = job->reason;
        return;
    }
    if (result->signal == 0)
        result->outcome = BRIG_EXITED;
    else if (result->signal == SIGKILL && job->group_usage.oom_kills > 0)
        result->outcome = BRIG_OOM;
    else
        result->outcome =
            ended_by_cpu_limit(job, result->signal) ? BRIG_CPU_TIMEOUT : BRIG_SIGNALLED;
}

int job_take_result(struct brig_job *job, struct brig_result *ret_result, struct brig_error *err)
{
    if (job->state != JOB_OVER)
        return brig_fail(err, BRIG_E_STATE, 0, "the job is not over yet");
    if (job->is_taken)
        return brig_fail(err, BRIG_E_STATE, 0, "the result was taken already");
    job->is_taken = true;
    struct brig_result result = {0};
    fill_outcome(job, &result);
    fill_usage(job, &result.usage);
    capture_take(&job->captures[0], &result.out);
    capture_take(&job->captures[1], &result.err);
    result.unenforced = job->plan.unenforced;
    result.notices = job->notices;
    if (job->door)
        door_take_result(job->door, &result.net);
    result.denials = job->denials.seen;
    result.inside_jail = job->limits.lease != NULL;
    *ret_result = result;
    return 0;
}

/* Waits until the killed processes are dead, but not for stuck ones. */
static void await_end(const struct brig_job *job)
{
    struct pollfd ended = {.fd = job->pidfd, .events = POLLIN};
    while (poll(&ended, 1, STUCK_PATIENCE_US / 1000) <= 0 && find_stuck(job) == 0)
        ;
    while (SYS(waitid, SYS_WAIT_PIDFD, job->pidfd, 0, WEXITED | __WALL | WNOHANG, 0) == -EINTR)
        ;
}

static void close_fds(struct brig_job *job)
{
    int *const fds[] = {&job->denials.listener,
                        &job->pidfd,
                        &job->wire,
                        &job->terminal,
                        &job->kept,
                        &job->gate,
                        &job->late,
                        &job->late_input,
                        &job->entry_fd,
                        &job->epoll,
                        &job->timer,
                        &job->streams[0],
                        &job->streams[1],
                        &job->streams[2]};
    for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
        close_fd(fds[i]);
    capture_done(&job->captures[0]);
    capture_done(&job->captures[1]);
}

void brig_job_free(struct brig_job *job)
{
    if (!job)
        return;
    if (check_owner(job, NULL) < 0) { /* its cgroup, its broker and its zygote are the owner's */
        close_fds(job);
        free(job);
        return;
    }
    if (job->pid <= 0 && job->building) /* the jail ends with its socket, at an unknown time */
        close_fd(&job->wire);
    if (job->pid > 0) {
        limits_unthrottle(&job->limits);
        if (job_has_namespace(job))
            (void)SYS(pidfd_send_signal, job->pidfd, SIGKILL, 0, 0);
        close_fd(&job->wire); /* init ends the jail when its socket closes */
        await_end(job);
    }
    if (job->nested_limits)
        nested_limits_free(job->nested_limits); /* before the epoll set is closed */
    if (job->door)
        door_free(job->door);
    if (job->building)
        job_building_free(job->building);
    close_fds(job);
    watch_done(&job->watch);
    plan_done(&job->plan);
    limits_done(&job->limits);
    free(job);
}
