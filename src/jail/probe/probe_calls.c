/* SPDX-License-Identifier: MIT */
/* Attempts at single system calls, each in a process that is thrown away. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/confine/landlock.h"
#include "jail/probe/probe_checks.h"
#include "jail/sys.h"

/* From here on signals and abstract sockets are scoped as well. */
#define LANDLOCK_ABI_WANTED 6

void check_landlock(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct landlock_attr attr;
    struct brig_unenforced ignored = {0};
    int abi = landlock_abi();
    if (abi == 0) {
        probe_failed(answer, errno, "landlock_create_ruleset");
        return;
    }
    landlock_fill_attr(abi, BRIG_NET_NONE, false, &attr, &ignored);
    autoclose int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attr, landlock_attr_size(abi), 0);
    if (ruleset < 0) {
        probe_failed(answer, errno, "landlock_create_ruleset");
        return;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) < 0) {
        probe_failed(answer, errno, "landlock_restrict_self");
        return;
    }
    autoclose int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0 || errno != EACCES) {
        probe_failed(answer, EINVAL, "the rules are not obeyed");
        return;
    }
    answer->limited = abi < LANDLOCK_ABI_WANTED;
    probe_note(answer, "ABI %d%s", abi,
               answer->limited ? ", signals and abstract sockets need 6" : "");
}

void check_seccomp(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LENGTH(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        probe_failed(answer, errno, "seccomp");
    else if (syscall(SYS_getppid) != -1 || errno != EDOM)
        probe_failed(answer, EINVAL, "the filter is not obeyed");
}

void check_clone3(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct clone_args args = {.exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        probe_failed(answer, errno, "clone3");
    else
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
}

void check_pidfd(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    siginfo_t info = {0};
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        probe_failed(answer, errno, "pidfd_open");
    else if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) < 0)
        probe_failed(answer, errno, "pidfd_send_signal");
    else if (waitid((idtype_t)SYS_WAIT_PIDFD, (id_t)fd, &info, WEXITED) < 0 ||
             info.si_status != SIGKILL)
        probe_failed(answer, errno, "waitid");
}

void check_openat2(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    autoclose int fd = (int)syscall(SYS_openat2, AT_FDCWD, "..", &how, sizeof how);
    if (fd >= 0)
        probe_failed(answer, EINVAL, "RESOLVE_BENEATH is not obeyed");
    else if (errno != EXDEV)
        probe_failed(answer, errno, "openat2");
}

void check_close_range(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
    if (fd < 0)
        fd = open("/", O_PATH | O_CLOEXEC);
    if (fd < 0 || syscall(SYS_close_range, fd, fd, 0) < 0)
        probe_failed(answer, errno, "close_range");
    else if (fcntl(fd, F_GETFD) >= 0)
        probe_failed(answer, EINVAL, "close_range is not obeyed");
}

/* An executable in memory: a copy of a small program of the system, or -1. */
static int copy_of_true(void)
{
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* from 6.3 on; older kernels refuse the flag and need none */
#endif
    static const char *const programs[] = {"/bin/true", "/usr/bin/true"};
    struct stat status;
    autoclose int source = -1;
    for (size_t i = 0; source < 0 && i < ARRAY_LENGTH(programs); i++)
        source = open(programs[i], O_RDONLY | O_CLOEXEC);
    autoclose int fd = memfd_create("brig-probe", MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("brig-probe", MFD_CLOEXEC);
    if (fd < 0 || source < 0 || fstat(source, &status) < 0)
        return -1;
    for (off_t left = status.st_size; left > 0;) {
        ssize_t copied = sendfile(fd, source, NULL, (size_t)left);
        if (copied <= 0)
            return -1;
        left -= copied;
    }
    return take_fd(&fd);
}

void check_memfd_exec(const struct probe_context *context, struct probe_answer *answer)
{
    (void)context;
    int status = 0;
    autoclose int fd = copy_of_true();
    if (fd < 0) {
        probe_failed(answer, errno, "memfd_create");
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {(char[]){"true"}, NULL};
        char *const envp[] = {NULL};
        (void)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
        _exit(errno);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        probe_failed(answer, errno, "fork");
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        probe_failed(answer, WIFEXITED(status) ? WEXITSTATUS(status) : EIO, "execveat");
}
