/* SPDX-License-Identifier: MIT */
/* System calls that command the kernel rather than the process. Where one would
 * be dangerous it is given arguments that cannot work, and the errno tells
 * whether permission was ever the question. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/personality.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define NOWHERE "/nonexistent/brig-escape"

/* On the allowed side a call the kernel was built without is no proof of
 * anything. */
static int known(int answer)
{
    return answer == REFUSED && errno == ENOSYS && has_arg("twin") ? NOT_HERE : answer;
}

static int call_bpf(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return known(judge("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr))));
}

static int call_perf(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .exclude_kernel = 1};
    return known(judge("perf_event_open", syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)));
}

static int call_userfaultfd(void)
{
    return known(judge("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
}

static int call_io_uring(void)
{
    struct io_uring_params params = {0};
    return known(judge("io_uring_setup", syscall(SYS_io_uring_setup, 1, &params)));
}

static int call_kexec(void)
{
    return known(judge_reached("kexec_load", syscall(SYS_kexec_load, 0, 9999, NULL, ~0UL)));
}

static int call_kexec_file(void)
{
    return known(
        judge_reached("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, NULL, ~0UL)));
}

static int call_init_module(void)
{
    return known(judge_reached("init_module", syscall(SYS_init_module, NULL, 0, "")));
}

static int call_finit_module(void)
{
    return known(judge_reached("finit_module", syscall(SYS_finit_module, -1, "", 0)));
}

static int call_delete_module(void)
{
    return known(judge_reached("delete_module",
                               syscall(SYS_delete_module, "brig_no_such_module", O_NONBLOCK)));
}

static int call_swapon(void)
{
    return known(judge_reached("swapon", syscall(SYS_swapon, NOWHERE, 0)));
}

static int call_swapoff(void)
{
    return known(judge_reached("swapoff", syscall(SYS_swapoff, NOWHERE)));
}

static int call_reboot(void)
{
    return judge_reached("reboot", syscall(SYS_reboot, 0x1234, 0x1234, 0, NULL));
}

/* The time zone it already has. */
static int call_settimeofday(void)
{
    struct timezone zone = {0};
    (void)syscall(SYS_gettimeofday, NULL, &zone);
    return judge("settimeofday", syscall(SYS_settimeofday, NULL, &zone));
}

static int call_adjtimex(void)
{
    struct timex change = {.modes = ADJ_TICK, .tick = 1};
    return judge_reached("adjtimex", adjtimex(&change));
}

static int call_clock_adjtime(void)
{
    struct timex change = {.modes = ADJ_TICK, .tick = 1};
    return judge_reached("clock_adjtime", syscall(SYS_clock_adjtime, 0, &change));
}

static int call_acct(void)
{
    return known(judge_reached("acct", syscall(SYS_acct, NOWHERE)));
}

static int call_quotactl(void)
{
    int format;
    return known(judge_reached(
        "quotactl", syscall(SYS_quotactl, QCMD(Q_GETFMT, USRQUOTA), NOWHERE, 0, &format)));
}

/* 8 sets the level of the console; there is no level 99. */
static int call_syslog(void)
{
    return known(judge_reached("syslog", syscall(SYS_syslog, 8, NULL, 99)));
}

static int read_kernel_log(void)
{
    char text[2048];
    return known(judge("syslog", syscall(SYS_syslog, 3, text, sizeof(text))));
}

static int call_personality(void)
{
    return judge("personality", personality(READ_IMPLIES_EXEC));
}

static int call_fanotify(void)
{
    return known(judge("fanotify_init", fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY)));
}

static int call_iopl(void)
{
#ifdef SYS_iopl
    return known(judge("iopl", syscall(SYS_iopl, 3)));
#else
    return has_arg("twin") ? NOT_HERE : REFUSED;
#endif
}

static int call_ioperm(void)
{
#ifdef SYS_ioperm
    return known(judge("ioperm", syscall(SYS_ioperm, 0x80, 1, 1)));
#else
    return has_arg("twin") ? NOT_HERE : REFUSED;
#endif
}

static int call_modify_ldt(void)
{
#ifdef SYS_modify_ldt
    char table[16];
    return known(judge("modify_ldt", syscall(SYS_modify_ldt, 0, table, sizeof(table))));
#else
    return has_arg("twin") ? NOT_HERE : REFUSED;
#endif
}

static int call_kcmp(void)
{
    return known(judge("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0)));
}

static int call_vhangup(void)
{
    /* In a session of its own there is nothing to hang up. */
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        _exit(judge("vhangup", vhangup()));
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : MISUSED;
}

static int raise_priority(void)
{
    return judge("setpriority", setpriority(PRIO_PROCESS, 0, -20));
}

static int realtime(void)
{
    struct sched_param param = {.sched_priority = 1};
    return judge("sched_setscheduler", sched_setscheduler(0, SCHED_FIFO, &param));
}

/* ---- system calls of other architectures ---- */

#ifdef __x86_64__
static long call_i386(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static int judge_i386(const char *what, long result)
{
    if ((int)result >= 0)
        return judge(what, 0);
    errno = -(int)result;
    return judge(what, -1);
}

/* Without the emulation the instruction itself is a fault. */
static void no_emulation(int number)
{
    (void)number;
    say("int 0x80: no emulation");
    _exit(has_arg("twin") ? NOT_HERE : REFUSED);
}

static int i386_call(void)
{
    (void)signal(SIGSEGV, no_emulation);
    return judge_i386("i386 getpid", call_i386(20, 0, 0, 0));
}

static int i386_unshare(void)
{
    (void)signal(SIGSEGV, no_emulation);
    return judge_i386("i386 unshare", call_i386(310, CLONE_NEWUSER, 0, 0));
}

/* Pointers must fit into 32 bits: the program is not position independent, its
 * data lies low. */
static int i386_chmod(void)
{
    static char path[1024];
    (void)signal(SIGSEGV, no_emulation);
    (void)snprintf(path, sizeof(path), "%s", arg_path("work", "planted"));
    (void)unlink(path);
    (void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
    return judge_i386("i386 chmod", call_i386(15, (long)path, 04755, 0));
}

static int x32_call(void)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(0x40000000L + SYS_getpid)
                     : "rcx", "r11", "memory");
    return known(judge_i386("x32 getpid", result));
}
#else
static int i386_call(void)
{
    return has_arg("twin") ? NOT_HERE : REFUSED;
}
#define i386_unshare i386_call
#define i386_chmod i386_call
#define x32_call i386_call
#endif

/* The harness looks for a core file in `work`. */
static int leave_core(void)
{
    struct rlimit limit;
    (void)getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_CORE, &limit);
    pid_t child = fork();
    if (child == 0) {
        (void)!chdir(arg("work"));
        (void)signal(SIGQUIT, SIG_DFL);
        (void)raise(SIGQUIT);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    say(WCOREDUMP(status) ? "core dumped" : "no core");
    return WCOREDUMP(status) ? THROUGH : REFUSED;
}

const struct attempt attempts_kernel[] = {
    {"bpf", call_bpf},
    {"perf", call_perf},
    {"userfaultfd", call_userfaultfd},
    {"io-uring", call_io_uring},
    {"kexec", call_kexec},
    {"kexec-file", call_kexec_file},
    {"init-module", call_init_module},
    {"finit-module", call_finit_module},
    {"delete-module", call_delete_module},
    {"swapon", call_swapon},
    {"swapoff", call_swapoff},
    {"reboot", call_reboot},
    {"settimeofday", call_settimeofday},
    {"adjtimex", call_adjtimex},
    {"clock-adjtime", call_clock_adjtime},
    {"acct", call_acct},
    {"quotactl", call_quotactl},
    {"syslog", call_syslog},
    {"read-kernel-log", read_kernel_log},
    {"personality", call_personality},
    {"fanotify", call_fanotify},
    {"iopl", call_iopl},
    {"ioperm", call_ioperm},
    {"modify-ldt", call_modify_ldt},
    {"kcmp", call_kcmp},
    {"vhangup", call_vhangup},
    {"raise-priority", raise_priority},
    {"realtime", realtime},
    {"i386-call", i386_call},
    {"i386-unshare", i386_unshare},
    {"i386-chmod", i386_chmod},
    {"x32-call", x32_call},
    {"leave-core", leave_core},
    {NULL, NULL},
};
