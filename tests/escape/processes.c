/* SPDX-License-Identifier: MIT */
/* Reaching processes outside. `victim` is the pid, on the host, of a process of
 * the jail's own host user that holds secrets: in memory at `address`, in its
 * environment, as fd `victim_fd`. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#define SECRET_BYTES 64

static pid_t victim(void)
{
    return (pid_t)arg_number("victim");
}

static const char *of_victim(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", victim(), name);
    return path;
}

static int kill_outsider(void)
{
    return judge("kill", kill(victim(), SIGKILL));
}

static int queue_outsider(void)
{
    siginfo_t info = {.si_signo = SIGKILL, .si_code = SI_QUEUE, .si_pid = getpid()};
    return judge("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, victim(), SIGKILL, &info));
}

static int tgkill_outsider(void)
{
    int answer = judge("tgkill", syscall(SYS_tgkill, victim(), victim(), SIGKILL));
    return answer == THROUGH ? answer : judge("tkill", syscall(SYS_tkill, victim(), SIGKILL));
}

/* Everybody there is. Never where the host's processes are in sight. */
static int kill_everybody(void)
{
    if (!in_own_pidns())
        return UNSAFE;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            (void)pause();
    (void)judge("kill(-1)", kill(-1, SIGKILL));
    int status = 0;
    (void)waitpid(child, &status, 0);
    say(WIFSIGNALED(status) ? "the child died" : "the child ended");
    return REFUSED; /* its own children it may kill */
}

static int pidfd_outsider(void)
{
    long fd = syscall(SYS_pidfd_open, victim(), 0);
    return judge("pidfd_send_signal",
                 fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
}

static int proc_pidfd_outsider(void)
{
    int fd = open(of_victim(""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return judge("pidfd_send_signal",
                 fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
}

static int trace_outsider(void)
{
    return judge("ptrace", ptrace(PTRACE_SEIZE, victim(), NULL, NULL));
}

static int read_memory_of_outsider(void)
{
    char text[SECRET_BYTES + 1] = "";
    struct iovec here = {text, SECRET_BYTES};
    struct iovec there = {(void *)arg_number("address"), SECRET_BYTES};
    ssize_t length = process_vm_readv(victim(), &here, 1, &there, 1, 0);
    say("%s", text);
    return judge("process_vm_readv", length);
}

static int proc_mem_outsider(void)
{
    char text[SECRET_BYTES + 1] = "";
    int fd = open(of_victim("mem"), O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : pread(fd, text, SECRET_BYTES, arg_number("address"));
    say("%s", text);
    return judge("/proc/PID/mem", length);
}

static int proc_environ_outsider(void)
{
    return judge_read(of_victim("environ"));
}

static int proc_cmdline_outsider(void)
{
    return judge_read(of_victim("cmdline"));
}

static int proc_root_outsider(void)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "/proc/%d/root%s/secret", victim(), arg("outside"));
    return judge_read(path);
}

static int proc_cwd_outsider(void)
{
    return judge_read(of_victim("cwd/secret"));
}

static int proc_fd_outsider(void)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "fd/%ld", arg_number("victim_fd"));
    return judge_read(of_victim(name));
}

static int proc_exe_outsider(void)
{
    int fd = open(of_victim("exe"), O_RDONLY | O_CLOEXEC);
    return judge("/proc/PID/exe", fd);
}

static int getfd_outsider(void)
{
    long pidfd = syscall(SYS_pidfd_open, victim(), 0);
    long fd = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, (int)arg_number("victim_fd"), 0);
    char text[SECRET_BYTES + 1] = "";
    ssize_t length = fd < 0 ? -1 : pread((int)fd, text, SECRET_BYTES, 0);
    say("%s", text);
    return judge("pidfd_getfd", length);
}

static int limit_outsider(void)
{
    return judge("prlimit",
                 syscall(SYS_prlimit64, victim(), 7 /* NOFILE */, NULL, (unsigned long[2]){0}));
}

const struct attempt attempts_processes[] = {
    {"kill-outsider", kill_outsider},
    {"queue-outsider", queue_outsider},
    {"tgkill-outsider", tgkill_outsider},
    {"kill-everybody", kill_everybody},
    {"pidfd-outsider", pidfd_outsider},
    {"proc-pidfd-outsider", proc_pidfd_outsider},
    {"trace-outsider", trace_outsider},
    {"read-memory-of-outsider", read_memory_of_outsider},
    {"proc-mem-outsider", proc_mem_outsider},
    {"proc-environ-outsider", proc_environ_outsider},
    {"proc-cmdline-outsider", proc_cmdline_outsider},
    {"proc-root-outsider", proc_root_outsider},
    {"proc-cwd-outsider", proc_cwd_outsider},
    {"proc-fd-outsider", proc_fd_outsider},
    {"proc-exe-outsider", proc_exe_outsider},
    {"getfd-outsider", getfd_outsider},
    {"limit-outsider", limit_outsider},
    {NULL, NULL},
};
