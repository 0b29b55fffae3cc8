/* SPDX-License-Identifier: MIT */
/* Runs a job to its end. */
#include "cli/run/run_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/run/terminal.h"
#include "jail/cgroup/cgroup.h"
#include "jail/job/job.h"

/* A command that stops within this time after brig was asked to stop does so because of that. */
#define STOP_FOLLOWS_MS 2000
/* At the end of a run with a time limit, how long to wait for a reader that does not read the
 * output. */
#define READER_PATIENCE_MS 2000
#define FETCH_MS 1000

static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Whether there is a controlling terminal that has not hung up. */
static bool has_terminal(void)
{
    autoclose int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    struct pollfd terminal = {.fd = fd};
    return fd >= 0 && poll(&terminal, 1, 0) >= 0 && !(terminal.revents & POLLHUP);
}

int run_loop_init(struct run_loop *loop, struct brig_error *err)
{
    /* nohup and shells without job control ignore these signals, for the command as well. */
    static const int maybe_ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP};
    static const int always[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
    sigset_t watched;
    loop->has_terminal = has_terminal();
    loop->hang_up_ignored = is_ignored(SIGHUP);
    (void)sigemptyset(&watched);
    for (size_t i = 0; i < ARRAY_LENGTH(maybe_ignored); i++)
        if (!is_ignored(maybe_ignored[i]))
            (void)sigaddset(&watched, maybe_ignored[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(always); i++)
        (void)sigaddset(&watched, always[i]);

    sigset_t blocked = watched;
    (void)sigaddset(&blocked, SIGPIPE); /* writes fail with EPIPE instead */
    if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "block signals");
    loop->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (loop->signal_fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "signalfd");
    return 0;
}

static void run_loop_done(struct run_loop *loop)
{
    own_close(&loop->signal_fd);
}

/* Errors of brig_job_signal only mean that the command has ended already. */
static void forward(const struct run_loop *loop, int signal)
{
    (void)brig_job_signal(loop->job, signal, NULL);
}

static void ask_for_end(struct run_loop *loop, int signal)
{
    uint64_t now = clock_now_ms();
    if (loop->asked_ms != 0 && now - loop->asked_ms <= loop->grace_ms) {
        (void)brig_job_cancel(loop->job, NULL);
        return;
    }
    loop->asked_ms = now;
    forward(loop, signal);
}

/* The terminal hung up. A command that ignores SIGHUP, or has left its process group, would
 * otherwise continue unnoticed. */
static void hang_up(struct run_loop *loop)
{
    if (loop->hung_up)
        return;
    loop->hung_up = true;
    forward(loop, SIGHUP);
    if (!loop->hang_up_ignored)
        loop->hang_up_ms = clock_now_ms() + loop->grace_ms;
}

/* Reduces the timeout to the time until `at_ms`, unless that is 0. */
static void wait_until(uint64_t at_ms, int *timeout_ms)
{
    uint64_t now = clock_now_ms();
    uint64_t left = at_ms > now ? at_ms - now : 0;
    if (at_ms != 0 && left < INT_MAX && (*timeout_ms < 0 || (uint64_t)*timeout_ms > left))
        *timeout_ms = (int)left;
}

static void end_after_hang_up(struct run_loop *loop)
{
    if (loop->hang_up_ms == 0 || clock_now_ms() < loop->hang_up_ms)
        return;
    loop->hang_up_ms = 0;
    (void)brig_job_cancel(loop->job, NULL);
}

/* Fetches new commits once a second, in the background. */
static void fetch_commits(struct run_loop *loop)
{
    if (!loop->guard || clock_now_ms() < loop->fetch_ms)
        return;
    guard_fetch(loop->guard);
    loop->fetch_ms = clock_now_ms() + FETCH_MS;
}

/* The command was stopped (Ctrl-Z): stops our process group, as the terminal would have done, so
 * that the shell takes over; returns when it is continued. The kernel does not stop an orphaned
 * process group, which no shell could continue; then the command continues at once. */
static void stop_with_command(struct run_loop *loop)
{
    if (loop->terminal)
        terminal_leave(loop->terminal);
    sigset_t stop;
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTSTP);
    (void)kill(0, SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    if (loop->terminal)
        terminal_enter(loop->terminal);
    forward(loop, SIGCONT);
}

/* The command has stopped. brig stops too if the user asked for it, and always at a terminal. But a
 * command that stops by itself must not suspend its time limit. */
static void handle_stop(struct run_loop *loop)
{
    bool asked =
        loop->stop_asked_ms != 0 && clock_now_ms() - loop->stop_asked_ms <= STOP_FOLLOWS_MS;
    loop->stop_asked_ms = 0;
    if (!asked && (!loop->terminal || job_is_timed(loop->job)))
        return;
    stop_with_command(loop);
}

static void handle_signal(struct run_loop *loop, int signal)
{
    switch (signal) {
    case SIGINT:
    case SIGTERM:
        ask_for_end(loop, signal);
        break;
    case SIGHUP:
        /* Without a terminal, or while it exists, the signal is for the command only. */
        if (loop->has_terminal && !has_terminal())
            hang_up(loop);
        else
            forward(loop, SIGHUP);
        break;
    case SIGWINCH:
        if (loop->terminal)
            terminal_resize(loop->terminal);
        break;
    case SIGTSTP:
        /* The job reports when the command has stopped, and then brig stops. */
        loop->stop_asked_ms = clock_now_ms();
        forward(loop, SIGTSTP);
        break;
    case SIGCONT:
        if (loop->terminal)
            terminal_enter(loop->terminal);
        forward(loop, SIGCONT);
        break;
    default:
        forward(loop, signal);
        break;
    }
}

static void handle_signals(struct run_loop *loop)
{
    struct signalfd_siginfo info;
    while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        handle_signal(loop, (int)info.ssi_signo);
}

/* Our messages would disturb a program that uses the whole terminal. */
static bool may_print(const struct run_loop *loop)
{
    struct termios mode;
    return !loop->terminal ||
           (tcgetattr(loop->terminal->master, &mode) == 0 && (mode.c_lflag & ICANON));
}

static void tell_network(const struct run_loop *loop)
{
    struct brig_net_event event;
    bool any = false;
    while (job_take_net_event(loop->job, &event) > 0) {
        net_watch_event(loop->net, &event, false);
        if (loop->ask)
            ask_event(loop->ask, &event);
        oauth_event(loop->oauth, &event);
        any = true;
    }
    if (!any || loop->net->blocked_shown == loop->net->blocked_count)
        return;
    if (!may_print(loop)) {
        if (loop->ask)
            ask_show_title(loop->ask);
        return;
    }
    if (loop->terminal)
        terminal_leave(loop->terminal);
    net_watch_show(loop->net);
    if (loop->terminal)
        terminal_enter(loop->terminal);
}

/* One round: waits, then processes all events. Returns 1 when the job is over. */
static int turn(struct run_loop *loop, struct brig_error *err)
{
    enum { JOB, SIGNALS, ASK, MASKS, RELAYS = MASKS + LIVE_MASKS_POLL };
    enum { TOKENS = RELAYS + RUN_LOOP_RELAYS, TERMINAL = TOKENS + OAUTH_MAX };
    enum { COUNT = TERMINAL + TERMINAL_POLL_MAX };
    struct pollfd fds[COUNT] = {
        [JOB] = {.fd = brig_job_fd(loop->job), .events = POLLIN},
        [SIGNALS] = {.fd = loop->signal_fd, .events = POLLIN},
        [ASK] = {.fd = loop->ask ? loop->ask->listener : -1, .events = POLLIN},
    };
    for (int i = MASKS; i < TERMINAL; i++)
        fds[i].fd = -1;
    for (int i = 0; i < RUN_LOOP_RELAYS && loop->relays; i++)
        fds[RELAYS + i] = relay_poll(&loop->relays[i]);
    int timeout_ms = -1;
    bool masked = loop->masks && !job_is_empty(loop->job);
    if (masked)
        live_masks_poll(loop->masks, fds + MASKS, &timeout_ms);
    nfds_t count = TERMINAL;
    if (loop->terminal) {
        terminal_poll(loop->terminal, fds + TERMINAL, &timeout_ms);
        count = COUNT;
    }
    oauth_poll(loop->oauth, fds + TOKENS, &timeout_ms);
    wait_until(loop->hang_up_ms, &timeout_ms);
    wait_until(loop->guard ? loop->fetch_ms : 0, &timeout_ms);
    if (poll(fds, count, timeout_ms) < 0 && errno != EINTR)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "poll");

    if (fds[SIGNALS].revents)
        handle_signals(loop);
    if (fds[ASK].revents)
        ask_serve(loop->ask, loop->job);
    if (loop->terminal) {
        terminal_process(loop->terminal, fds + TERMINAL);
        if (loop->terminal->suspend_typed)
            loop->stop_asked_ms = clock_now_ms();
        loop->terminal->suspend_typed = false;
        if (loop->terminal->hung_up)
            hang_up(loop);
    }
    end_after_hang_up(loop);
    oauth_process(loop->oauth, fds + TOKENS);
    fetch_commits(loop);
    for (int i = 0; i < RUN_LOOP_RELAYS && loop->relays; i++)
        relay_process(&loop->relays[i], fds[RELAYS + i].revents);
    if (masked && !job_is_empty(loop->job))
        live_masks_process(loop->masks, loop->job, fds + MASKS);
    int over = fds[JOB].revents ? brig_job_process(loop->job, err) : 0;
    tell_network(loop);
    if (over == 0 && brig_job_take_stop(loop->job) != 0)
        handle_stop(loop);
    return over;
}

/* How long to wait for the reader of the output: without a limit, as any program does, unless the
 * run has a time limit. */
static int reader_patience_ms(const struct brig_job *job)
{
    uint64_t now = clock_now_ms(), until_ms = job_deadline_us(job) / 1000;
    if (until_ms == 0)
        return -1;
    if (until_ms < now + READER_PATIENCE_MS)
        return READER_PATIENCE_MS;
    return until_ms - now > INT_MAX ? INT_MAX : (int)(until_ms - now);
}

/* After the end of the command there is no process to forward signals to. */
static bool is_told_to_end(int signal_fd)
{
    struct signalfd_siginfo info;
    bool told = false;
    while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int signal = (int)info.ssi_signo;
        told =
            told || signal == SIGINT || signal == SIGTERM || signal == SIGQUIT || signal == SIGHUP;
    }
    return told;
}

static void drain(struct relay *relay, const struct brig_job *job, int signal_fd)
{
    while (!relay_drain(relay, reader_patience_ms(job), signal_fd))
        if (is_told_to_end(signal_fd))
            return;
}

/* Returns 0 when the job is over. */
static int run(struct run_loop *loop, struct brig_error *err)
{
    struct terminal terminal;
    loop->fetch_ms = clock_now_ms() + FETCH_MS;
    int master = brig_job_terminal(loop->job);
    if (master >= 0) {
        terminal_init(&terminal, master);
        loop->terminal = &terminal;
    }
    int over;
    if (brig_job_take_stop(loop->job) != 0) /* it stopped at its start: no event will follow */
        handle_stop(loop);
    do {
        over = turn(loop, err);
    } while (over == 0);
    for (int i = 0; i < RUN_LOOP_RELAYS && loop->relays; i++)
        drain(&loop->relays[i], loop->job, loop->signal_fd);
    if (loop->terminal) {
        terminal_drain(&terminal);
        terminal_done(&terminal);
        loop->terminal = NULL;
    }
    return over < 0 ? over : 0;
}

void run_loop_finish(struct run_loop *loop, struct brig_job *job, int status,
                     struct brig_result *ret_result, struct brig_error *err)
{
    loop->job = job;
    if (status == 0)
        status = run(loop, err);
    if (status == 0)
        status = job_take_result(job, ret_result, err);
    brig_job_free(job);
    run_loop_done(loop);
    if (status < 0)
        *ret_result =
            (struct brig_result){.outcome = BRIG_SETUP_FAILED, .exit_code = -1, .error = *err};
}

void run_loop_enter_scope(void)
{
    struct cgroup_support support;
    cgroup_probe(false, &support);
    if (support.kind == CGROUP_NONE && support.ask_systemd)
        (void)cgroup_systemd_join(NULL);
}
