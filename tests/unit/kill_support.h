/* SPDX-License-Identifier: MIT */
/* Kills an action at one of its system calls. The test is the subreaper of what a killed child has started. */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

/* Lets a child go on to the beginning or end of a system call, with a signal or 0, and waits. */
static inline int go_on(pid_t pid, int sent)
{
    int status = 0;
    if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)sent) < 0 ||
        waitpid(pid, &status, 0) != pid)
        tap_bail("ptrace: %s", strerror(errno));
    return status;
}

/* Runs `act` in a child, and kills it when it begins its Nth system call; 0: never. Processes that it has started go on
 * to their end, which is waited for. Returns the number of calls if it ended by itself, and 0 if it was killed. */
static inline long run_until(long nth, void (*act)(void))
{
    int status = 0;
    long calls = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
            _exit(126);
        act();
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
        tap_bail("cannot trace a child: %s", strerror(errno));
    bool entered = false;
    for (status = go_on(pid, 0); WIFSTOPPED(status);) {
        bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
        entered = entered != is_call;
        if (is_call && entered && ++calls == nth) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            while (waitpid(-1, NULL, 0) > 0)
                ;
        } else {
            status = go_on(pid, is_call ? 0 : WSTOPSIG(status));
        }
    }
    if (nth == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        tap_bail("a child that was not killed has failed");
    return WIFEXITED(status) ? calls : 0;
}

/* The calls at which an action is killed: every Nth, so that there are at most `rounds`. */
static inline long stride(long calls, int rounds)
{
    return calls / rounds + 1;
}
