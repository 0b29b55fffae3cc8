/* SPDX-License-Identifier: MIT */
/* What the caller of brig has that must not come along: file descriptors it
 * forgot to close, and its environment. The harness leaves a file and a
 * directory open in the numbers `leaked_file` and `leaked_dir`, and puts a
 * secret into the environment. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attempt.h"

static int leaked_file(void)
{
    return judge_read_fd("leaked file", (int)arg_number("leaked_file"));
}

static int leaked_directory(void)
{
    int fd = openat((int)arg_number("leaked_dir"), "secret", O_RDONLY | O_CLOEXEC);
    return judge_read_fd("beneath a leaked directory", fd);
}

static int leaked_fchdir(void)
{
    if (fchdir((int)arg_number("leaked_dir")) < 0)
        return judge("fchdir", -1);
    return judge_read("secret");
}

/* Any at all beyond 0 to 2. */
static int leaked_any(void)
{
    int answer = REFUSED;
    for (int fd = 3; fd < 1024; fd++) {
        char link[64], target[256] = "";
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        (void)!readlink(link, target, sizeof(target) - 1);
        say("fd %d is open: %s", fd, target);
        answer = THROUGH;
    }
    return answer;
}

static int environment(void)
{
    for (char **at = environ; *at; at++)
        say("%s", *at);
    return REFUSED;
}

static int environment_of_all(void)
{
    DIR *proc = opendir("/proc");
    const struct dirent *item;
    while (proc && (item = readdir(proc))) {
        char path[300];
        if (item->d_name[0] < '0' || item->d_name[0] > '9')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%s/environ", item->d_name);
        (void)judge_read(path);
    }
    if (proc)
        (void)closedir(proc);
    return REFUSED;
}

const struct attempt attempts_inherited[] = {
    {"leaked-file", leaked_file},
    {"leaked-directory", leaked_directory},
    {"leaked-fchdir", leaked_fchdir},
    {"leaked-any", leaked_any},
    {"environment", environment},
    {"environment-of-all", environment_of_all},
    {NULL, NULL},
};
