/* SPDX-License-Identifier: MIT */
/* Running programs that are outside, or in no filesystem at all, and undoing the filters that hold
 * the process. `outside/tool` is this program, `outside/echo` the system's: told to, they print
 * "ran-outside". */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attempt.h"

static int exec_outside(void)
{
    (void)execl(arg_path("outside", "tool"), "tool", "say", (char *)NULL);
    return judge("execve", -1);
}

static int exec_path_fd(void)
{
    char *argv[] = {(char[]){"tool"}, (char[]){"say"}, NULL};
    int fd = open(arg_path("outside", "tool"), O_PATH | O_CLOEXEC);
    if (fd < 0)
        return judge("open O_PATH", -1);
    (void)syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
    return judge("execveat", -1);
}

static int exec_by_loader(void)
{
    (void)execl(arg("loader"), "ld.so", arg_path("outside", "echo"), "ran-outside", (char *)NULL);
    return judge("loader", -1);
}

/* A script's interpreter is opened by the kernel. */
static int exec_by_interpreter(void)
{
    const char *script = arg_path("work", "script");
    int fd = open(script, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (fd < 0 || dprintf(fd, "#!%s say\n", arg_path("outside", "tool")) < 0)
        return MISUSED;
    (void)close(fd);
    (void)execl(script, "script", (char *)NULL);
    return judge("script", -1);
}

static int exec_memory(void)
{
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    long memory = syscall(SYS_memfd_create, "program", 0);
    struct stat info;
    if (memory < 0)
        return judge("memfd_create", -1);
    if (fstat(program, &info) < 0 ||
        sendfile((int)memory, program, NULL, (size_t)info.st_size) != info.st_size)
        return MISUSED;
    char *argv[] = {(char[]){"attempt"}, (char[]){"say"}, NULL};
    (void)syscall(SYS_execveat, (int)memory, "", argv, environ, AT_EMPTY_PATH);
    return judge("execveat", -1);
}

/* ---- filters add up, they do not replace each other ---- */

static int widen_landlock(void)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE |
                                                              LANDLOCK_ACCESS_FS_WRITE_FILE};
    long ruleset = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    struct landlock_path_beneath_attr all = {.allowed_access = attr.handled_access_fs,
                                             .parent_fd = open("/", O_PATH | O_CLOEXEC)};
    if (ruleset >= 0) {
        (void)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &all, 0);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)syscall(SYS_landlock_restrict_self, ruleset, 0);
    }
    return judge_read(arg_path("outside", "secret"));
}

static int widen_seccomp(void)
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)judge("filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
    return judge("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
}

/* A supervisor of one's own children's calls could answer for the kernel. */
static int seccomp_listener(void)
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return judge("listener", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                     SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

const struct attempt attempts_exec[] = {
    {"exec-outside", exec_outside},
    {"exec-path-fd", exec_path_fd},
    {"exec-by-loader", exec_by_loader},
    {"exec-by-interpreter", exec_by_interpreter},
    {"exec-memory", exec_memory},
    {"widen-landlock", widen_landlock},
    {"widen-seccomp", widen_seccomp},
    {"seccomp-listener", seccomp_listener},
    {NULL, NULL},
};
