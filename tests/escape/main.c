/* SPDX-License-Identifier: MIT */
/* The escape probe: tries one forbidden thing and says how far it came.
 *
 *     attempt [--in userns|rawuserns] NAME [KEY=VALUE…]
 *     attempt --list
 *
 * With --in it first makes itself root of a user namespace of its own, with all
 * other namespaces (rawuserns: a bare one without id maps): there an attempt
 * may be allowed without the host being touched. One static program, so that it
 * runs where there is no libc. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"
#include "more.h"

static const struct attempt *const tables[] = {
    attempts_exec,     attempts_files,     attempts_grants,  attempts_ids,     attempts_inherited,
    attempts_init,     attempts_ipc,       attempts_kernel,  attempts_limits,  attempts_mounts,
    attempts_outlive,  attempts_processes, attempts_procfs,  attempts_sockets, attempts_streams,
    attempts_terminal, attempts_helpers,   attempts_network, attempts_calls,   attempts_shared,
    attempts_endings,
};

static const struct attempt *find(const char *name)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct attempt *at = tables[i]; at->name; at++)
            if (strcmp(at->name, name) == 0)
                return at;
    return NULL;
}

static int list(void)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (tables[i] != attempts_helpers)
            for (const struct attempt *at = tables[i]; at->name; at++)
                (void)puts(at->name);
    return 0;
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd);
    return written;
}

static bool enter_userns(void)
{
    char uids[64], gids[64];
    (void)snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
    (void)snprintf(gids, sizeof(gids), "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET |
                CLONE_NEWPID) < 0)
        return false;
    return put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", uids) &&
           put("/proc/self/gid_map", gids);
}

/* As pid 1 of the new pid namespace, with a /proc that fits. */
static int run_inside(int (*run)(void))
{
    pid_t child = fork();
    if (child < 0)
        return MISUSED;
    if (child == 0) {
        (void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
        _exit(run());
    }
    int status = 0;
    if (waitpid(child, &status, 0) < 0)
        return MISUSED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

char **attempt_arguments;

int main(int argc, char **argv)
{
    const char *in = NULL;
    if (argc > 1 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc > 3 && strcmp(argv[1], "--in") == 0) {
        in = argv[2];
        argv += 2;
        argc -= 2;
    }
    const struct attempt *attempt = argc > 1 ? find(argv[1]) : NULL;
    if (!attempt) {
        (void)fprintf(stderr, "usage: attempt [--in userns|rawuserns] NAME [KEY=VALUE...]\n");
        return MISUSED;
    }
    attempt_arguments = argv + 2;
    say("attempt %s", attempt->name);
    if (!in)
        return attempt->run();
    if (strcmp(in, "rawuserns") == 0)
        return unshare(CLONE_NEWUSER) < 0 ? NOT_HERE : attempt->run();
    if (!enter_userns()) {
        say("no user namespace: %s", strerror(errno));
        return NOT_HERE;
    }
    return run_inside(attempt->run);
}
