/* SPDX-License-Identifier: MIT */
/* Waits for child processes. */
#include "base/process.h"

#include <errno.h>
#include <sys/wait.h>

int process_wait(pid_t pid)
{
    int status = 0;
    if (pid <= 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
