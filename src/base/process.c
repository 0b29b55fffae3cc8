/* SPDX-License-Identifier: MIT */
/* Waiting for child processes, and the size of this one. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

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

uint64_t process_mapped(void)
{
    autoclose int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    char text[128]; /* numbers of pages: mapped, resident, … */
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}
