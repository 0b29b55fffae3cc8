/* SPDX-License-Identifier: MIT */
/* Games against the jail's first process: it cannot be ended, stopped, read or
 * joined. The target is pid 1, or with target=child (the allowed side) a child
 * of ours. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#define SIGNALS 64
#define TRIES 30000 /* of a millisecond: a busy machine takes a while */

static pid_t target(void)
{
    if (!has_arg("target"))
        return in_own_pidns() ? 1 : -1;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            (void)pause();
    return child;
}

static const char *of(pid_t pid, const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    return path;
}

static int finish(pid_t pid, int answer)
{
    if (pid > 1) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    return answer;
}

/* Whether orphans are still taken care of: one is made and must vanish. */
static bool init_still_reaps(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        pid_t orphan = fork();
        if (orphan == 0)
            _exit(0);
        (void)!write(fds[1], &orphan, sizeof(orphan));
        _exit(0);
    }
    pid_t orphan = 0;
    (void)waitpid(child, NULL, 0);
    if (read(fds[0], &orphan, sizeof(orphan)) != (ssize_t)sizeof(orphan))
        return false;
    for (int tries = 0; tries < TRIES; tries++) {
        if (kill(orphan, 0) < 0 && errno == ESRCH)
            return true;
        pause_ms(1);
    }
    return false;
}

/* Every signal by one road, then proof of life. */
static int signal_all(long (*road)(pid_t, int))
{
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    for (int number = 1; number <= SIGNALS; number++)
        (void)road(pid, number);
    pause_ms(20);
    if (pid > 1) {
        bool ended = false;
        for (int tries = 0; tries < TRIES && !ended; tries++) {
            siginfo_t info = {0};
            ended = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) == 0 && info.si_pid == pid;
            if (!ended)
                pause_ms(1);
        }
        say(ended ? "it ended" : "it lives");
        return ended ? THROUGH : finish(pid, REFUSED);
    }
    bool alive = init_still_reaps();
    say(alive ? "init goes on" : "init does not reap any more");
    return alive ? REFUSED : THROUGH;
}

static long by_kill(pid_t pid, int number)
{
    return kill(pid, number);
}

static long by_tgkill(pid_t pid, int number)
{
    (void)syscall(SYS_tkill, pid, number);
    return syscall(SYS_tgkill, pid, pid, number);
}

static long by_queue(pid_t pid, int number)
{
    siginfo_t info = {.si_signo = number, .si_code = SI_QUEUE, .si_pid = getpid()};
    (void)syscall(SYS_rt_tgsigqueueinfo, pid, pid, number, &info);
    return syscall(SYS_rt_sigqueueinfo, pid, number, &info);
}

static long by_pidfd(pid_t pid, int number)
{
    long fd = syscall(SYS_pidfd_open, pid, 0);
    long result = fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
    if (fd >= 0)
        (void)close((int)fd);
    return result;
}

static int init_kill(void)
{
    return signal_all(by_kill);
}
static int init_tgkill(void)
{
    return signal_all(by_tgkill);
}
static int init_queue(void)
{
    return signal_all(by_queue);
}
static int init_pidfd(void)
{
    return signal_all(by_pidfd);
}

static int init_trace(void)
{
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    int answer = judge("PTRACE_SEIZE", ptrace(PTRACE_SEIZE, pid, NULL, NULL));
    if (answer != THROUGH)
        answer = judge("PTRACE_ATTACH", ptrace(PTRACE_ATTACH, pid, NULL, NULL));
    return finish(pid, answer);
}

/* The address of anything: the first mapping, if it is told; else where
 * programs lie. */
static long some_address(pid_t pid)
{
    FILE *maps = fopen(of(pid, "maps"), "re");
    unsigned long address = 0x400000;
    if (maps && fscanf(maps, "%lx", &address) != 1)
        address = 0x400000;
    if (maps)
        (void)fclose(maps);
    return (long)address;
}

static int init_memory(void)
{
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    char bytes[16];
    struct iovec here = {bytes, sizeof(bytes)}, there = {(void *)some_address(pid), sizeof(bytes)};
    int answer = judge("process_vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
    int fd = open(of(pid, "mem"), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fd = open(of(pid, "mem"), O_RDONLY | O_CLOEXEC);
    if (answer != THROUGH)
        answer = judge("/proc/1/mem", fd < 0 ? -1 : pread(fd, bytes, 16, some_address(pid)));
    return finish(pid, answer);
}

static int init_maps(void)
{
    pid_t pid = target();
    return pid < 0 ? UNSAFE : finish(pid, judge_read(of(pid, "maps")));
}

static int init_environ(void)
{
    pid_t pid = target();
    return pid < 0 ? UNSAFE : finish(pid, judge_read(of(pid, "environ")));
}

static int open_of(const char *name, int flags)
{
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    return finish(pid, judge(name, open(of(pid, name), flags | O_CLOEXEC)));
}

static int init_root(void)
{
    return open_of("root", O_RDONLY | O_DIRECTORY);
}
static int init_cwd(void)
{
    return open_of("cwd", O_RDONLY | O_DIRECTORY);
}
static int init_exe(void)
{
    return open_of("exe", O_RDONLY);
}
/* The directory can be opened by anybody; what is in it is the question. */
static int init_fds(void)
{
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    DIR *dir = opendir(of(pid, "fd"));
    const struct dirent *item;
    int answer = REFUSED;
    while (dir && (item = readdir(dir)))
        if (item->d_name[0] != '.')
            answer = judge(item->d_name, 0);
    if (dir)
        (void)closedir(dir);
    return finish(pid, answer);
}

/* init's socket to the supervisor is fd 3. */
static int init_getfd(void)
{
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    long pidfd = syscall(SYS_pidfd_open, pid, 0), fd = -1;
    for (int number = 0; number < 8 && fd < 0; number++)
        fd = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, number, 0);
    return finish(pid, judge("pidfd_getfd", fd));
}

/* From the first moment on, before init has settled: the doors an attacker would try, in a loop. */
static int init_early(void)
{
    static const char *const doors[] = {"mem", "environ", "root", "cwd", "exe",
                                        "fd",  "fdinfo",  "fd/0", "fd/3"};
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    for (int round = 0; round < 300; round++)
        for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
            int fd = open(of(pid, doors[i]), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
            if (fd >= 0)
                return finish(pid, judge(doors[i], fd));
        }
    return finish(pid, REFUSED);
}

/* Anybody of the same user may set another's limits: init must live with none. */
static int init_limits(void)
{
    static const int resources[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_SIGPENDING,
                                    RLIMIT_STACK,  RLIMIT_AS,    RLIMIT_DATA};
    pid_t pid = target();
    if (pid < 0)
        return UNSAFE;
    int answer = REFUSED;
    struct rlimit nothing = {0};
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
        if (judge("prlimit", prlimit(pid, resources[i], &nothing, NULL)) == THROUGH)
            answer = THROUGH;
    if (pid == 1)
        answer = init_still_reaps() ? REFUSED : THROUGH;
    return finish(pid, answer);
}

const struct attempt attempts_init[] = {
    {"init-kill", init_kill},   {"init-tgkill", init_tgkill},
    {"init-queue", init_queue}, {"init-pidfd", init_pidfd},
    {"init-trace", init_trace}, {"init-memory", init_memory},
    {"init-maps", init_maps},   {"init-environ", init_environ},
    {"init-root", init_root},   {"init-cwd", init_cwd},
    {"init-exe", init_exe},     {"init-fds", init_fds},
    {"init-getfd", init_getfd}, {"init-limits", init_limits},
    {"init-early", init_early}, {NULL, NULL},
};
