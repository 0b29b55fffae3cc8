/* SPDX-License-Identifier: MIT */
/* Staying alive after the end. Each holds a lock on a file in `work`: when the
 * run is over, the harness must be able to take it. Whatever is left over ends
 * itself after LINGER_MS. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#define LINGER_MS 30000

/* Waits: the harness may be looking just now. */
static bool take_lock(void)
{
    int fd = open(arg_path("work", "lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return fd >= 0 && flock(fd, LOCK_EX) == 0;
}

static void close_stdio(void)
{
    for (int fd = 0; fd < 3; fd++)
        (void)close(fd);
}

static void ignore_signals(void)
{
    for (int number = 1; number < 32; number++)
        (void)signal(number, SIG_IGN);
}

static _Noreturn void linger(void)
{
    long left = LINGER_MS;
    while (left > 0) { /* signals cut a sleep short */
        pause_ms(20);
        left -= 20;
    }
    _exit(0);
}

/* Forks; the child tells by a pipe that it stands as it wants to, then the
 * parent goes on. */
static int leave_behind(void (*prepare)(void))
{
    int fds[2];
    char byte;
    if (!take_lock() || pipe2(fds, O_CLOEXEC) < 0)
        return MISUSED;
    pid_t child = fork();
    if (child < 0)
        return MISUSED;
    if (child == 0) {
        prepare();
        (void)!write(fds[1], "x", 1);
        (void)close(fds[1]);
        linger();
    }
    (void)close(fds[1]);
    (void)!read(fds[0], &byte, 1);
    return REFUSED;
}

static void be_session(void)
{
    (void)setsid();
    close_stdio();
}

static void be_daemon(void)
{
    (void)setsid();
    if (fork() > 0)
        _exit(0);
    ignore_signals();
    close_stdio();
}

static void be_group(void)
{
    (void)setpgid(0, 0);
    ignore_signals();
    close_stdio();
}

static int outlive_session(void)
{
    return leave_behind(be_session);
}
static int outlive_daemon(void)
{
    return leave_behind(be_daemon);
}
static int outlive_group(void)
{
    return leave_behind(be_group);
}

/* Keeps standard output open instead: a caller who waits for its end must not
 * hang. */
static void keep_output(void)
{
    (void)setsid();
}
static int outlive_output(void)
{
    return leave_behind(keep_output);
}

static int outlive_stopped(void)
{
    if (!take_lock())
        return MISUSED;
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        close_stdio();
        (void)raise(SIGSTOP);
        linger();
    }
    (void)waitpid(child, NULL, WUNTRACED);
    say("stopped %d", child);
    return REFUSED;
}

/* Another process becomes the one orphans go to. */
static int outlive_subreaper(void)
{
    if (!take_lock())
        return MISUSED;
    int fds[2];
    char byte;
    (void)!pipe2(fds, O_CLOEXEC);
    if (fork() == 0) {
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        ignore_signals();
        if (fork() == 0) {
            if (fork() > 0)
                _exit(0);
            (void)setsid();
            close_stdio();
            (void)!write(fds[1], "x", 1);
        }
        close_stdio();
        (void)close(fds[1]);
        linger();
    }
    (void)close(fds[1]);
    (void)!read(fds[0], &byte, 1);
    return REFUSED;
}

/* One process at a time, each the child of the last, which is gone: hard to hit
 * by number. Ends when the harness removes the lock. Outside a jail nobody waits for the dead
 * before that: there are fewer of them. */
static int outlive_chase(void)
{
    if (!take_lock())
        return MISUSED;
    if (fork() == 0) {
        (void)setsid();
        close_stdio();
        long end = now_ms() + LINGER_MS;
        while (now_ms() < end && access(arg_path("work", "lock"), F_OK) == 0) {
            if (fork() > 0)
                _exit(0);
            if (has_arg("twin"))
                pause_ms(10);
            else
                (void)sched_yield();
        }
        _exit(0);
    }
    pause_ms(20);
    return REFUSED;
}

/* ---- not ending when told to ---- */

static int ignore_term(void)
{
    if (!take_lock())
        return MISUSED;
    ignore_signals();
    say("ready");
    linger();
}

static int block_signals(void)
{
    sigset_t all;
    if (!take_lock())
        return MISUSED;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    say("ready");
    linger();
}

static int stop_itself(void)
{
    if (!take_lock())
        return MISUSED;
    say("ready");
    if (has_arg("twin")) { /* nobody would wake it */
        pid_t self = getpid();
        if (fork() == 0) {
            pause_ms(LINGER_MS);
            (void)kill(self, SIGKILL);
            _exit(0);
        }
    }
    (void)kill(getpid(), SIGSTOP);
    linger();
}

/* The harness looks whether the group of brig's caller is stopped too. */
static int stop_caller(void)
{
    (void)kill(getpid(), SIGSTOP);
    return REFUSED;
}

static int close_and_linger(void)
{
    if (!take_lock())
        return MISUSED;
    close_stdio();
    linger();
}

static int use_cpu(void)
{
    if (!take_lock())
        return MISUSED;
    (void)signal(SIGXCPU, SIG_IGN);
    long end = now_ms() + LINGER_MS;
    while (now_ms() < end)
        ;
    return THROUGH;
}

const struct attempt attempts_outlive[] = {
    {"outlive-session", outlive_session},
    {"outlive-daemon", outlive_daemon},
    {"outlive-group", outlive_group},
    {"outlive-output", outlive_output},
    {"outlive-stopped", outlive_stopped},
    {"outlive-subreaper", outlive_subreaper},
    {"outlive-chase", outlive_chase},
    {"ignore-term", ignore_term},
    {"block-signals", block_signals},
    {"stop-itself", stop_itself},
    {"stop-caller", stop_caller},
    {"close-and-linger", close_and_linger},
    {"use-cpu", use_cpu},
    {NULL, NULL},
};
