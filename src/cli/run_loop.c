/* SPDX-License-Identifier: MIT */
/* Drives a job to its end. */
#include "cli/run_loop.h"

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
#include "cli/terminal.h"
#include "jail/job/job.h"

/* A command that stops this soon after we were asked to stop does so because of that. */
#define STOP_FOLLOWS_MS 2000
/* At the end of a run that has a time limit, who does not read its output is waited for so long. */
#define READER_PATIENCE_MS 2000
#define FETCH_MS 1000

/* What one run of the loop knows. */
struct run_state {
    struct brig_job *job;
    struct terminal *terminal; /* NULL: the job has none */
    uint64_t grace_ms;
    uint64_t asked_ms; /* when an end was first asked for, or 0 */
    bool has_terminal;
    bool hang_up_ignored;
    bool hung_up;           /* the terminal is gone, and the command was told */
    uint64_t hang_up_ms;    /* when what is left of the command is to be ended, or 0 */
    uint64_t stop_asked_ms; /* when a signal or a key asked us to stop, or 0 */
    struct relay *relays;   /* or NULL */
    struct net_watch *net;
    struct live_masks *masks; /* or NULL */
    struct guard *guard;      /* or NULL */
    uint64_t fetch_ms;        /* when commits are looked for next */
};

static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Whether there is a controlling terminal that was not hung up. */
static bool has_terminal(void)
{
    autoclose int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    struct pollfd terminal = {.fd = fd};
    return fd >= 0 && poll(&terminal, 1, 0) >= 0 && !(terminal.revents & POLLHUP);
}

int run_loop_init(struct run_loop *loop, struct brig_error *err)
{
    /* nohup and shells without job control have these ignored, and mean it for the command too. */
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
    (void)sigaddset(&blocked, SIGPIPE); /* a write says EPIPE instead */
    if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "block signals");
    loop->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (loop->signal_fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "signalfd");
    return 0;
}

void run_loop_done(struct run_loop *loop)
{
    if (loop->signal_fd >= 0)
        (void)close(loop->signal_fd);
    loop->signal_fd = -1;
}

/* Errors of brig_job_signal only say that the command is gone already. */
static void forward(const struct run_state *state, int signal)
{
    (void)brig_job_signal(state->job, signal, NULL);
}

static void ask_for_end(struct run_state *state, int signal)
{
    uint64_t now = clock_now_ms();
    if (state->asked_ms != 0 && now - state->asked_ms <= state->grace_ms) {
        (void)brig_job_cancel(state->job, NULL);
        return;
    }
    state->asked_ms = now;
    forward(state, signal);
}

/* The terminal is gone. A command that ignores the signal, or has left its process group, would
 * otherwise go on where no one sees it. */
static void hang_up(struct run_state *state)
{
    if (state->hung_up)
        return;
    state->hung_up = true;
    forward(state, SIGHUP);
    if (!state->hang_up_ignored)
        state->hang_up_ms = clock_now_ms() + state->grace_ms;
}

/* Shortens the time to wait to that until a command whose terminal is gone is ended. */
static void wait_for_hang_up(const struct run_state *state, int *timeout_ms)
{
    if (state->hang_up_ms == 0)
        return;
    uint64_t now = clock_now_ms();
    uint64_t left = state->hang_up_ms > now ? state->hang_up_ms - now : 0;
    if (left < INT_MAX && (*timeout_ms < 0 || (uint64_t)*timeout_ms > left))
        *timeout_ms = (int)left;
}

static void end_after_hang_up(struct run_state *state)
{
    if (state->hang_up_ms == 0 || clock_now_ms() < state->hang_up_ms)
        return;
    state->hang_up_ms = 0;
    (void)brig_job_cancel(state->job, NULL);
}

/* Once a second new commits are fetched, in the background. */
static void wait_for_fetch(const struct run_state *state, int *timeout_ms)
{
    if (!state->guard)
        return;
    uint64_t now = clock_now_ms();
    int left = state->fetch_ms > now ? (int)(state->fetch_ms - now) : 0;
    if (*timeout_ms < 0 || *timeout_ms > left)
        *timeout_ms = left;
}

static void fetch_commits(struct run_state *state)
{
    if (!state->guard || clock_now_ms() < state->fetch_ms)
        return;
    guard_fetch(state->guard);
    state->fetch_ms = clock_now_ms() + FETCH_MS;
}

/* The command was stopped (Ctrl-Z): stops our own process group, as the terminal would have done,
 * so that the shell takes over; returns when it is continued. In a group nobody could continue the
 * kernel does not stop us, and the command goes on at once. */
static void stop_with_command(struct run_state *state)
{
    if (state->terminal)
        terminal_leave(state->terminal);
    sigset_t stop;
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTSTP);
    (void)kill(0, SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    if (state->terminal)
        terminal_enter(state->terminal);
    forward(state, SIGCONT);
}

/* The command stopped. That is for us to follow where a person asked for it, and at a terminal in any
 * case. But a command that stops by itself must not take its time limit with it. */
static void handle_stop(struct run_state *state)
{
    bool asked =
        state->stop_asked_ms != 0 && clock_now_ms() - state->stop_asked_ms <= STOP_FOLLOWS_MS;
    state->stop_asked_ms = 0;
    if (!asked && (!state->terminal || job_is_timed(state->job)))
        return;
    stop_with_command(state);
}

static void handle_signal(struct run_state *state, int signal)
{
    switch (signal) {
    case SIGINT:
    case SIGTERM:
        ask_for_end(state, signal);
        break;
    case SIGHUP:
        /* Without a terminal, or while it is there, it is a message for the command alone. */
        if (state->has_terminal && !has_terminal())
            hang_up(state);
        else
            forward(state, SIGHUP);
        break;
    case SIGWINCH:
        if (state->terminal)
            terminal_resize(state->terminal);
        break;
    case SIGTSTP:
        /* The job reports that the command stopped, and then so do we. */
        state->stop_asked_ms = clock_now_ms();
        forward(state, SIGTSTP);
        break;
    case SIGCONT:
        if (state->terminal)
            terminal_enter(state->terminal);
        forward(state, SIGCONT);
        break;
    default:
        forward(state, signal);
        break;
    }
}

static void handle_signals(struct run_state *state, int signal_fd)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        handle_signal(state, (int)info.ssi_signo);
}

/* Lines of ours would spoil what a program paints that has its terminal for itself. */
static bool may_print(const struct run_state *state)
{
    struct termios mode;
    return !state->terminal ||
           (tcgetattr(state->terminal->master, &mode) == 0 && (mode.c_lflag & ICANON));
}

static void tell_network(const struct run_state *state)
{
    struct brig_net_event event;
    bool any = false;
    while (brig_job_take_net_event(state->job, &event) > 0) {
        net_watch_event(state->net, &event, false);
        any = true;
    }
    if (!any || state->net->blocked_shown == state->net->blocked_count || !may_print(state))
        return;
    if (state->terminal)
        terminal_leave(state->terminal);
    net_watch_show(state->net);
    if (state->terminal)
        terminal_enter(state->terminal);
}

/* One round: waits, then lets everybody do what there is to do. 1 when the job is over. */
static int turn(struct run_state *state, int signal_fd, struct brig_error *err)
{
    enum { JOB, SIGNALS, MASKS, RELAYS = MASKS + LIVE_MASKS_POLL };
    enum { TERMINAL = RELAYS + RUN_LOOP_RELAYS };
    enum { COUNT = TERMINAL + TERMINAL_POLL_MAX };
    struct pollfd fds[COUNT] = {
        [JOB] = {.fd = brig_job_fd(state->job), .events = POLLIN},
        [SIGNALS] = {.fd = signal_fd, .events = POLLIN},
    };
    for (int i = MASKS; i < TERMINAL; i++)
        fds[i].fd = -1;
    for (int i = 0; i < RUN_LOOP_RELAYS && state->relays; i++)
        fds[RELAYS + i] = relay_poll(&state->relays[i]);
    int timeout_ms = -1;
    bool masked = state->masks && !job_is_empty(state->job);
    if (masked)
        live_masks_poll(state->masks, fds + MASKS, &timeout_ms);
    nfds_t count = TERMINAL;
    if (state->terminal) {
        terminal_poll(state->terminal, fds + TERMINAL, &timeout_ms);
        count = COUNT;
    }
    wait_for_hang_up(state, &timeout_ms);
    wait_for_fetch(state, &timeout_ms);
    if (poll(fds, count, timeout_ms) < 0 && errno != EINTR)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "poll");

    if (fds[SIGNALS].revents)
        handle_signals(state, signal_fd);
    if (state->terminal) {
        terminal_process(state->terminal, fds + TERMINAL);
        if (state->terminal->suspend_typed)
            state->stop_asked_ms = clock_now_ms();
        state->terminal->suspend_typed = false;
        if (state->terminal->hung_up)
            hang_up(state);
    }
    end_after_hang_up(state);
    fetch_commits(state);
    for (int i = 0; i < RUN_LOOP_RELAYS && state->relays; i++)
        relay_process(&state->relays[i], fds[RELAYS + i].revents);
    if (masked && !job_is_empty(state->job))
        live_masks_process(state->masks, state->job, fds + MASKS);
    int over = fds[JOB].revents ? brig_job_process(state->job, err) : 0;
    tell_network(state);
    if (over == 0 && brig_job_take_stop(state->job) != 0)
        handle_stop(state);
    return over;
}

/* How long whoever reads the output is waited for: as for any program, for ever, unless the run has
 * a time limit. */
static int reader_patience_ms(const struct brig_job *job)
{
    uint64_t now = clock_now_ms(), until_ms = job_deadline_us(job) / 1000;
    if (until_ms == 0)
        return -1;
    if (until_ms < now + READER_PATIENCE_MS)
        return READER_PATIENCE_MS;
    return until_ms - now > INT_MAX ? INT_MAX : (int)(until_ms - now);
}

/* Once the command is over there is nobody to pass signals on to. */
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

int run_loop_run(const struct run_loop *loop, struct brig_job *job, uint64_t grace_ms,
                 struct brig_error *err)
{
    struct terminal terminal;
    struct run_state state = {
        .job = job,
        .grace_ms = grace_ms,
        .has_terminal = loop->has_terminal,
        .hang_up_ignored = loop->hang_up_ignored,
        .relays = loop->relays,
        .net = loop->net,
        .masks = loop->masks,
        .guard = loop->guard,
        .fetch_ms = clock_now_ms() + FETCH_MS,
    };
    int master = brig_job_terminal(job);
    if (master >= 0) {
        terminal_init(&terminal, master);
        state.terminal = &terminal;
    }
    int over;
    if (brig_job_take_stop(job) != 0) /* heard of at its start: nothing will wake us for it */
        handle_stop(&state);
    do {
        over = turn(&state, loop->signal_fd, err);
    } while (over == 0);
    for (int i = 0; i < RUN_LOOP_RELAYS && state.relays; i++)
        drain(&state.relays[i], job, loop->signal_fd);
    if (state.terminal) {
        terminal_drain(&terminal);
        terminal_done(&terminal);
    }
    return over < 0 ? over : 0;
}
