/* SPDX-License-Identifier: MIT */
/* Not ending in time by doing a lot: every loop here ends by itself after BUSY_MS. Each holds a
 * lock in `work` that the harness must be able to take when the run is over. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "more.h"

#define BUSY_MS 30000
#define BURNERS 4
#define BROOD 12

extern char **attempt_arguments;

/* Without O_CLOEXEC, for the sake of exec_storm. Waits: the harness may be looking just now. */
static bool take_lock(void)
{
    int fd =
        open(arg_path("work", "lock"), O_RDWR | O_CREAT, 0666); /* NOLINT(android-cloexec-open) */
    return fd >= 0 && flock(fd, LOCK_EX) == 0;
}

static void burn(long end)
{
    while (now_ms() < end)
        ;
}

/* None of them uses much by itself. */
static int cpu_tree(void)
{
    long end = now_ms() + BUSY_MS;
    if (!take_lock())
        return MISUSED;
    for (int i = 0; i < BURNERS; i++)
        if (fork() == 0) {
            (void)setsid();
            burn(end);
            _exit(0);
        }
    burn(end);
    return THROUGH;
}

/* Each is gone, and reaped, before it has used anything worth noticing. */
static int cpu_crumbs(void)
{
    long end = now_ms() + BUSY_MS;
    if (!take_lock())
        return MISUSED;
    while (now_ms() < end) {
        pid_t child = fork();
        if (child == 0) {
            burn(now_ms() + 10);
            _exit(0);
        }
        if (child > 0)
            (void)waitpid(child, NULL, 0);
    }
    return THROUGH;
}

/* The same program again and again: nothing that is remembered of a process stays. */
static int exec_storm(void)
{
    char end[64];
    if (!has_arg("until")) {
        if (!take_lock())
            return MISUSED;
        say("ready");
        (void)snprintf(end, sizeof(end), "until=%ld", now_ms() + BUSY_MS);
    } else {
        (void)snprintf(end, sizeof(end), "until=%ld", arg_number("until"));
        if (now_ms() > arg_number("until"))
            return THROUGH;
    }
    (void)signal(SIGTERM, SIG_IGN);
    (void)close(STDOUT_FILENO);
    (void)execl("/proc/self/exe", "attempt", "exec-storm", end, (char *)NULL);
    return MISUSED;
}

/* A few at a time, each in a session of its own and gone at once, but for its own children. Outside a
 * jail nobody waits for the dead before the harness removes the lock: there are fewer of them, so
 * that the machine has process numbers left. */
static int daemon_storm(void)
{
    long end = now_ms() + BUSY_MS;
    int pause = has_arg("twin") ? 20 : 1;
    if (!take_lock())
        return MISUSED;
    say("ready");
    for (int i = 0; i < BROOD; i++)
        if (fork() == 0) {
            (void)close(STDOUT_FILENO);
            (void)close(STDERR_FILENO);
            (void)signal(SIGTERM, SIG_IGN);
            while (now_ms() < end && access(arg_path("work", "lock"), F_OK) == 0) {
                if (fork() > 0)
                    _exit(0);
                (void)setsid();
                pause_ms(pause);
            }
            _exit(0);
        }
    (void)signal(SIGTERM, SIG_IGN);
    while (now_ms() < end)
        pause_ms(20);
    return THROUGH;
}

const struct attempt attempts_endings[] = {
    {"cpu-tree", cpu_tree},
    {"cpu-crumbs", cpu_crumbs},
    {"exec-storm", exec_storm},
    {"daemon-storm", daemon_storm},
    {NULL, NULL},
};
