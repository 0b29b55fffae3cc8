/* SPDX-License-Identifier: MIT */
/* Calling functions that mean harm, or are clumsy: the caller goes on, knows what happened, and
 * nothing is left behind. */
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>

#include "call/call.h"
#include "call_support.h"

static const char *const kinds[] = {"without namespaces", "in the full jail"};

/* A pipe whose writing end is kept in the child: when all who have it are dead, it ends. */
struct lifeline {
    int ends[2];
};

static struct lifeline lifeline_open(struct brig_call_options *options)
{
    static int kept; /* borrowed by the options */
    struct lifeline line;
    if (pipe2(line.ends, O_CLOEXEC) < 0)
        tap_bail("pipe2");
    kept = line.ends[1];
    options->keep_fds = &kept;
    options->keep_fd_count = 1;
    return line;
}

static bool all_dead(struct lifeline *line)
{
    (void)close(line->ends[1]);
    bool dead = await_end(line->ends[0]);
    (void)close(line->ends[0]);
    return dead;
}

/* ---- Processes ---------------------------------------------------------------------------- */

static int bomb(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    for (;;)
        (void)fork();
    return 0;
}

static int daemonise(struct brig_call_child *child, void *argument)
{
    (void)argument;
    if (fork() == 0) {
        (void)setsid();
        (void)setpgid(0, 0);
        (void)signal(SIGHUP, SIG_IGN);
        if (fork() == 0)
            for (;;)
                (void)pause();
        _exit(0);
    }
    return brig_call_return(child, "away", 4);
}

static int clone_beside(struct brig_call_child *child, void *argument)
{
    (void)argument;
    long pid = syscall(SYS_clone, 0x8000 /* CLONE_PARENT */ | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        for (;;)
            (void)pause();
    return brig_call_return(child, pid < 0 ? "no" : "yes", 2);
}

/* What a function may not do to the group it is ended by. */
static int leave_group(struct brig_call_child *child, void *argument)
{
    (void)argument;
    char text[32];
    pid_t pid = fork();
    if (pid == 0)
        _exit(setsid() < 0 ? (setpgid(0, 0) < 0 ? 3 : 1) : 2);
    int status = 0;
    (void)waitpid(pid, &status, 0);
    (void)snprintf(text, sizeof text, "%d", WEXITSTATUS(status));
    return brig_call_return(child, text, 1);
}

static void test_processes(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    struct lifeline line = lifeline_open(&options);
    options.timeout_ms = 400;
    options.cpu_timeout_ms = 0; /* which two CPUs would be at first */
    if (geteuid() == 0)         /* whose processes only cgroups count */
        options.processes = 40;
    options.on_unsupported = BRIG_UNSUPPORTED_IGNORE;
    expect(&options, bomb, NULL, BRIG_CALL_TIMEOUT, "%s: a fork bomb is ended", kinds[namespaces]);
    tap_ok(all_dead(&line), "%s: to the last process", kinds[namespaces]);

    options = new_options(namespaces);
    line = lifeline_open(&options);
    expect(&options, daemonise, NULL, BRIG_CALL_RETURNED, "%s: a daemon is left behind",
           kinds[namespaces]);
    tap_ok(all_dead(&line), "%s: and does not stay", kinds[namespaces]);

    line = lifeline_open(&options);
    (void)call(&options, clone_beside, NULL, &result);
    tap_ok(result.value && memcmp(result.value, namespaces ? "ye" : "no", 2) == 0,
           "%s: a child of its parent is %s", kinds[namespaces], namespaces ? "init's" : "refused");
    call_result_done(&result);
    tap_ok(all_dead(&line), "%s: and not left, either", kinds[namespaces]);
    tap_ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "%s: we have no children",
           kinds[namespaces]);

    options.keep_fd_count = 0;
    (void)call(&options, leave_group, NULL, &result);
    tap_ok(result.value && *(char *)result.value == (namespaces ? '2' : '3'),
           "%s: sessions and groups %s", kinds[namespaces],
           namespaces ? "can be made" : "cannot be left");
    call_result_done(&result);
}

static int wait_for_ever(struct brig_call_child *child, void *argument)
{
    (void)child, (void)argument;
    for (;;)
        (void)pause();
    return 0;
}

/* Its time is over before its jail is whole. */
static void test_ended_early(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    struct lifeline line = lifeline_open(&options);
    int in_time = 0;
    options.cpu_timeout_ms = 0; /* which may be over first: to begin takes some */
    for (int i = 0; i < 20; i++) {
        options.timeout_ms = 1 + (uint64_t)i % 4;
        (void)call(&options, wait_for_ever, NULL, &result);
        in_time += result.outcome == BRIG_CALL_TIMEOUT;
        if (result.outcome != BRIG_CALL_TIMEOUT)
            tap_diag("after %u ms: %s", (unsigned)options.timeout_ms,
                     brig_call_outcome_name(result.outcome));
        call_result_done(&result);
    }
    tap_is_int(in_time, 20, "%s: calls are ended while they begin", kinds[namespaces]);
    tap_ok(all_dead(&line), "%s: and nothing is left of them", kinds[namespaces]);
}

static int fork_until_refused(struct brig_call_child *child, void *argument)
{
    (void)argument;
    for (int i = 0; i < 200; i++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                (void)pause();
        if (pid < 0)
            return brig_call_fail_errno(child, errno, NULL, BRIG_CALL_ACCESS_UNKNOWN);
    }
    return 0;
}

static void test_process_limit(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    options.processes = 20;
    options.on_unsupported = BRIG_UNSUPPORTED_IGNORE;
    (void)call(&options, fork_until_refused, NULL, &result);
    if (result.usage.pids_refused > 0)
        (void)has_outcome(&result, BRIG_CALL_PROCESSES, "%s: a process too many is told",
                          kinds[namespaces]);
    else /* where nobody counts, nothing is claimed */
        (void)has_outcome(&result, BRIG_CALL_FAILED, "%s: a refused fork is a failure",
                          kinds[namespaces]);
    call_result_done(&result);
}

/* ---- The way it ends ---------------------------------------------------------------------- */

static int crash(struct brig_call_child *child, void *argument)
{
    (void)child;
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGABRT, SIG_DFL);
    int signal = *(int *)argument;
    if (signal == SIGSEGV)
        *(volatile char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
    (void)raise(signal);
    abort();
}

static int exit_in_the_middle(struct brig_call_child *child, void *argument)
{
    (void)brig_call_return(child, "half", 4);
    exit(*(int *)argument);
}

static int exit_at_once(struct brig_call_child *child, void *argument)
{
    (void)brig_call_return(child, "half", 4);
    _exit(*(int *)argument);
}

static void test_ends(bool namespaces)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGKILL, SIGTERM};
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        int number = signals[i];
        (void)call(&options, crash, &number, &result);
        (void)has_outcome(&result, BRIG_CALL_CRASHED, "%s: signal %d is a crash", kinds[namespaces],
                          number);
        tap_is_int(result.signal, number, "%s: and told", kinds[namespaces]);
        call_result_done(&result);
    }
    for (int code = 0; code < 8; code += 7)
        for (int i = 0; i < 2; i++) {
            (void)call(&options, i ? exit_at_once : exit_in_the_middle, &code, &result);
            (void)has_outcome(&result, BRIG_CALL_EXITED, "%s: %s(%d) in the middle",
                              kinds[namespaces], i ? "_exit" : "exit", code);
            tap_is_int(result.exit_code, code, "%s: with its code", kinds[namespaces]);
            tap_ok(!result.value, "%s: half a value is none", kinds[namespaces]);
            call_result_done(&result);
        }
}

/* ---- What it hands back ------------------------------------------------------------------- */

static int close_everything(struct brig_call_child *child, void *argument)
{
    (void)argument;
    (void)syscall(SYS_close_range, 0, ~0U, 0);
    return brig_call_return(child, "still", 5);
}

static int close_and_be_large(struct brig_call_child *child, void *argument)
{
    (void)argument;
    (void)syscall(SYS_close_range, 0, ~0U, 0);
    return brig_call_reserve(child, 1 << 20) ? 0 : 5;
}

static int unmap_everything(struct brig_call_child *child, void *argument)
{
    (void)argument;
    (void)signal(SIGSEGV, SIG_DFL);
    (void)munmap(child->head, MEMORY_SMALL_BYTES);
    return brig_call_return(child, "gone", 4);
}

/* The file is sealed: the caller can always read it. */
static int spoil_file(struct brig_call_child *child, void *argument)
{
    (void)argument;
    bool cut = ftruncate(child->fd, 0) == 0, grown = ftruncate(child->fd, (off_t)1 << 50) == 0;
    bool sealed = fcntl(child->fd, F_ADD_SEALS, F_SEAL_WRITE) == 0; /* it is mapped */
    (void)fallocate(child->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
    return brig_call_return(child, cut || grown || sealed ? "bad" : "good", 4);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Any head at all, with a word in it that a head would have. */
static int write_head(struct brig_call_child *child, void *argument)
{
    uint64_t state = *(uint64_t *)argument;
    unsigned char *bytes = (unsigned char *)child->head;
    for (size_t i = 0; i < MEMORY_SMALL_BYTES; i++)
        bytes[i] = (unsigned char)next_random(&state);
    child->head->left = 1;
    child->head->state = (uint32_t)(next_random(&state) % 6);
    if (next_random(&state) % 2)
        child->head->length %= 200000;
    for (size_t i = 0; i < MEMORY_TEXTS && next_random(&state) % 3; i++)
        child->head->text_lengths[i] %= 90000;
    _exit(0);
}

static void test_values(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    (void)call(&options, close_everything, NULL, &result);
    (void)has_outcome(&result, BRIG_CALL_RETURNED, "%s: a small value needs no fd",
                      kinds[namespaces]);
    call_result_done(&result);
    expect(&options, close_and_be_large, NULL, BRIG_CALL_MEMORY, "%s: a large one does",
           kinds[namespaces]);
    expect(&options, unmap_everything, NULL, BRIG_CALL_CRASHED,
           "%s: who unmaps the way back has none", kinds[namespaces]);
    (void)call(&options, spoil_file, NULL, &result);
    tap_ok(result.value && memcmp(result.value, "good", 4) == 0,
           "%s: the file cannot be cut, grown or sealed", kinds[namespaces]);
    call_result_done(&result);

    struct brig_caller *caller = NULL;
    int survived = 0, rounds = namespaces ? 30 : 200;
    if (brig_caller_new(NULL, &options, &caller, NULL) < 0)
        tap_bail("brig_caller_new");
    for (int i = 0; i < rounds; i++) {
        uint64_t seed = 88172645463325252u + (uint64_t)i * 7919;
        char text[256], *json = NULL;
        struct brig_error err = {0};
        int code = caller_call(caller, write_head, &seed, &result, &err);
        if (result.value && result.length > 0) /* all of it can be read */
            survived += ((volatile char *)result.value)[result.length - 1] == 0 ? 0 : 0;
        (void)brig_call_result_text(&result, text, sizeof text);
        survived += code == 0 && brig_call_result_json(&result, &json, NULL) == 0;
        brig_text_free(json);
        call_result_done(&result);
    }
    tap_is_int(survived, rounds, "%s: any head at all is a result", kinds[namespaces]);
    brig_caller_free(caller);
}

/* ---- Its caller --------------------------------------------------------------------------- */

struct against {
    pid_t pid;
    long result[24];
};

/* A signal that the kernel sends for us when there is something to read. */
static bool sends_by_owner(pid_t pid)
{
    int pair[2];
    struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = pid};
    if (pipe2(pair, O_CLOEXEC) < 0)
        return false;
    (void)fcntl(pair[0], F_SETOWN_EX, &owner);
    (void)fcntl(pair[0], F_SETSIG, SIGKILL);
    (void)fcntl(pair[0], F_SETFL, O_ASYNC);
    (void)!write(pair[1], "x", 1); /* who is hit does not get our result */
    return false;
}

static long open_of(pid_t pid, const char *name, int flags)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return open(path, flags | O_CLOEXEC);
}

static void harm_more(struct against *against, pid_t pid, int pidfd)
{
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {&byte, 1};
    siginfo_t info = {.si_code = SI_QUEUE};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    against->result[8] = syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &info);
    against->result[9] = process_vm_writev(pid, &here, 1, &there, 1, 0);
    against->result[10] = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, 0, 0);
    against->result[11] = sched_setaffinity(pid, sizeof cpus, &cpus);
    against->result[12] = syscall(SYS_ioprio_set, 1, pid, 3 << 13);
    against->result[13] = open_of(pid, "environ", O_RDONLY);
    against->result[14] = open_of(pid, "fd/0", O_RDONLY);
    against->result[15] = open_of(pid, "root/etc/passwd", O_RDONLY);
    against->result[16] = open_of(pid, "cwd", O_RDONLY);
    against->result[17] = open_of(pid, "oom_score_adj", O_WRONLY);
    against->result[18] = open_of(pid, "comm", O_WRONLY);
    against->result[19] = open_of(pid, "maps", O_RDONLY);
    against->result[20] = getppid() > 1 ? prctl(PR_SET_PDEATHSIG, 0) : -1;
    against->result[21] = sends_by_owner(pid) ? 0 : -1;
    against->result[22] = getppid() > 1 ? setpriority(PRIO_USER, 0, 19) : -1;
    against->result[23] = getppid() > 1 ? syscall(SYS_ioprio_set, 3, 0, 3 << 13) : -1;
}

static int harm_caller(struct brig_call_child *child, void *argument)
{
    pid_t pid = *(pid_t *)argument;
    struct rlimit one = {1, 1};
    struct against *against = brig_call_reserve(child, sizeof *against);
    if (!against)
        return 1;
    against->result[0] = kill(pid, SIGKILL);
    against->result[1] = syscall(SYS_tgkill, pid, pid, SIGKILL);
    against->result[2] = prlimit(pid, RLIMIT_CPU, &one, NULL);
    against->result[3] = setpriority(PRIO_PROCESS, (id_t)pid, 19);
    against->result[4] = ptrace(PTRACE_ATTACH, pid, 0, 0);
    against->result[5] = kill(getppid() ? getppid() : pid, SIGSTOP);
    char path[64], byte = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    against->result[6] = fd < 0 ? -1 : (long)pwrite(fd, &byte, 1, (off_t)(uintptr_t)&one);
    int self = (int)syscall(SYS_pidfd_open, pid, 0);
    against->result[7] = self < 0 ? -1 : syscall(SYS_pidfd_send_signal, self, SIGKILL, NULL, 0);
    harm_more(against, pid, self);
    return 0;
}

static void test_caller(bool namespaces)
{
    static const char *const names[] = {"kill",         "tgkill",
                                        "prlimit",      "setpriority",
                                        "ptrace",       "stop",
                                        "mem",          "pidfd",
                                        "sigqueue",     "process_vm_writev",
                                        "pidfd_getfd",  "sched_setaffinity",
                                        "ioprio_set",   "its environment",
                                        "its fds",      "its root",
                                        "its cwd",      "its oom_score_adj",
                                        "its comm",     "its maps",
                                        "outliving it", "the owner of a pipe",
                                        "the priority", "the I/O priority of its user"};
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    pid_t pid = getpid();
    (void)call(&options, harm_caller, &pid, &result);
    const struct against *against = result.value;
    if (tap_ok(against && result.length == sizeof *against, "%s: the caller is still there",
               kinds[namespaces]))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            tap_ok(against->result[i] < 0, "%s: and cannot be reached by %s", kinds[namespaces],
                   names[i]);
    call_result_done(&result);
    struct rlimit now;
    tap_ok(getrlimit(RLIMIT_CPU, &now) == 0 && now.rlim_cur != 1, "%s: its limits are its own",
           kinds[namespaces]);
}

struct wait {
    int fd;
    bool fork;
};

static int wait_with_lifeline(struct brig_call_child *child, void *argument)
{
    const struct wait *wait = argument;
    (void)child;
    if (write(wait->fd, "x", 1) != 1)
        return 1;
    if (wait->fork)
        (void)fork();
    for (;;)
        (void)pause();
    return 0;
}

/* The caller is killed: what it called does not go on. In the full jail init sees to all of it; without
 * namespaces that is so for the function's own process, and what it started may stay. */
static void test_death_of_caller(bool namespaces)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe2");
    pid_t caller = fork();
    if (caller == 0) {
        struct brig_call_options options = new_options(namespaces);
        struct brig_call_result result;
        struct wait wait = {.fd = ends[1], .fork = namespaces};
        options.keep_fds = &ends[1];
        options.keep_fd_count = 1;
        (void)call_run(NULL, &options, wait_with_lifeline, &wait, &result, NULL);
        _exit(0);
    }
    (void)close(ends[1]);
    tap_ok(await_byte(ends[0]), "%s: a call is under way", kinds[namespaces]);
    (void)kill(caller, SIGKILL);
    (void)waitpid(caller, NULL, 0);
    tap_ok(await_end(ends[0]), "%s: it ends with its caller", kinds[namespaces]);
    (void)close(ends[0]);
}

/* ---- Its value, afterwards ---------------------------------------------------------------- */

#define CHANGING_BYTES ((size_t)1 << 20)

/* Returns, and leaves somebody who goes on writing to what was returned. */
static int return_and_go_on(struct brig_call_child *child, void *argument)
{
    size_t length = *(size_t *)argument;
    volatile char *value = brig_call_reserve(child, length);
    struct memory_head *head = child->head;
    if (!value)
        return 1;
    if (fork() == 0)
        for (unsigned char round = 0;; round++) {
            for (size_t i = 0; i < length; i += 512)
                value[i] = (char)round;
            ((volatile struct memory_head *)head)->length = round % 2 ? UINT64_MAX : length;
        }
    return 0;
}

static void test_value_is_ours(bool namespaces, size_t length)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    int changed = 0, odd = 0;
    char *seen = malloc(length);
    for (int i = 0; i < 10; i++) {
        (void)call(&options, return_and_go_on, &length, &result);
        odd += result.outcome != BRIG_CALL_RETURNED && result.outcome != BRIG_CALL_OUTPUT;
        if (seen && result.value && result.length <= length) {
            memcpy(seen, result.value, result.length);
            for (int look = 0; look < 50; look++) {
                (void)sched_yield(); /* it would be the writer's turn */
                changed += memcmp(seen, result.value, result.length) != 0;
            }
        }
        call_result_done(&result);
    }
    free(seen);
    tap_is_int(odd, 0, "%s: %zu bytes that are written to come back, or are too many",
               kinds[namespaces], length);
    tap_is_int(changed, 0, "%s: and are the caller's alone then", kinds[namespaces]);
}

/* ---- Its terminal ------------------------------------------------------------------------- */

struct terminal {
    int asked[3];   /* 0: it was answered */
    int refused[7]; /* errno */
};

static int errno_of(int result)
{
    return result < 0 ? errno : 0;
}

static int spoil_terminal(struct brig_call_child *child, void *argument)
{
    (void)argument;
    struct terminal *terminal = brig_call_reserve(child, sizeof *terminal);
    struct termios modes = {0};
    struct winsize size = {0};
    pid_t group = getpgrp();
    if (!terminal)
        return 1;
    (void)signal(SIGTTOU, SIG_IGN);
    terminal->asked[0] = errno_of(tcgetattr(1, &modes));
    terminal->asked[1] = errno_of(ioctl(1, TIOCGWINSZ, &size));
    terminal->asked[2] = errno_of((int)write(1, "[shown]", 7));
    terminal->refused[0] = errno_of(tcsetattr(1, TCSANOW, &modes));
    terminal->refused[1] = errno_of(tcflow(1, TCOOFF));
    terminal->refused[2] = errno_of(tcflush(1, TCIOFLUSH));
    terminal->refused[3] = errno_of(ioctl(1, TIOCSPGRP, &group));
    terminal->refused[4] = errno_of(ioctl(1, TIOCSWINSZ, &size));
    terminal->refused[5] = errno_of(ioctl(1, TIOCSTI, "x"));
    terminal->refused[6] = errno_of(ioctl(1, TIOCEXCL));
    return 0;
}

/* In a session of its own, whose terminal is its standard output. */
static __attribute__((noreturn)) void call_on_terminal(const char *name, int report,
                                                       bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    (void)setsid();
    int fd = open(name, O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        if (fd < 0 || dup2(fd, i) < 0)
            _exit(1);
    (void)call_run(NULL, &options, spoil_terminal, NULL, &result, NULL);
    if (result.length == sizeof(struct terminal))
        (void)!write(report, result.value, result.length);
    _exit(0);
}

static void test_terminal(bool namespaces)
{
    static const char *const names[] = {"modes",    "flow",      "queue",      "foreground group",
                                        "its size", "its input", "its opening"};
    struct terminal terminal;
    int ends[2], master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char text[64] = "";
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("posix_openpt");
    pid_t caller = fork();
    if (caller == 0)
        call_on_terminal(ptsname(master), ends[1], namespaces);
    (void)close(ends[1]);
    bool whole = read(ends[0], &terminal, sizeof terminal) == (ssize_t)sizeof terminal;
    tap_ok(whole, "%s: a function has a terminal to print on", kinds[namespaces]);
    for (size_t i = 0; i < 3 && whole; i++)
        tap_is_int(terminal.asked[i], 0, "%s: it can be asked, and printed on (%zu)",
                   kinds[namespaces], i);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && whole; i++)
        tap_is_int(terminal.refused[i], EPERM, "%s: the terminal's %s cannot be changed",
                   kinds[namespaces], names[i]);
    tap_ok(read(master, text, sizeof text - 1) > 0 && strcmp(text, "[shown]") == 0,
           "%s: what was printed is there", kinds[namespaces]);
    (void)close(ends[0]);
    (void)close(master);
    (void)waitpid(caller, NULL, 0);
}

/* ---- Exit handlers and buffers ------------------------------------------------------------ */

static int handler_pipe = -1;

static void tell_exit(void)
{
    if (handler_pipe >= 0)
        (void)!write(handler_pipe, "!", 1);
}

static int print_and_exit(struct brig_call_child *child, void *argument)
{
    (void)child;
    (void)printf("[the function's]");
    if (*(int *)argument)
        exit(1);
    return 0;
}

/* In a process of its own, whose standard output is a file. */
static void test_buffers(bool namespaces)
{
    char path[] = "/tmp/brig-call-out.XXXXXX", text[256] = "";
    int file = mkstemp(path), ends[2];
    if (file < 0 || pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("mkstemp");
    (void)fflush(stdout);
    pid_t caller = fork();
    if (caller == 0) {
        struct brig_call_options options = new_options(namespaces);
        struct brig_call_result result;
        (void)dup2(file, 1);
        handler_pipe = ends[1];
        options.keep_fds = &ends[1];
        options.keep_fd_count = 1;
        (void)atexit(tell_exit);
        (void)printf("[the caller's]");
        for (int by_exit = 0; by_exit < 2; by_exit++) {
            (void)call_run(NULL, &options, print_and_exit, &by_exit, &result, NULL);
            call_result_done(&result);
        }
        (void)fflush(stdout);
        _exit(0);
    }
    (void)close(ends[1]);
    (void)waitpid(caller, NULL, 0);
    tap_ok(await_end(ends[0]), "%s: the caller's exit handlers do not run", kinds[namespaces]);
    (void)!pread(file, text, sizeof text - 1, 0);
    tap_is_str(text, "[the function's][the function's][the caller's]",
               "%s: what is in a buffer is written once, by whom it belongs to", kinds[namespaces]);
    (void)close(ends[0]);
    (void)close(file);
    (void)unlink(path);
}

/* ---- Odd callers -------------------------------------------------------------------------- */

static int give_value(struct brig_call_child *child, void *argument)
{
    (void)argument;
    return brig_call_return(child, "value", 5);
}

static void test_ignored_children(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    (void)signal(SIGCHLD, SIG_IGN);
    (void)call(&options, give_value, NULL, &result);
    tap_ok(result.outcome == BRIG_CALL_RETURNED && result.length == 5,
           "%s: a value comes back to who ignores SIGCHLD", kinds[namespaces]);
    call_result_done(&result);
    (void)signal(SIGCHLD, SIG_DFL);
}

static void do_nothing(int signal)
{
    (void)signal;
}

/* A program with a timer whose handler does not restart what it interrupts, as interpreters have. */
static void test_interrupted(bool namespaces)
{
    const struct sigaction handler = {.sa_handler = do_nothing};
    const struct itimerval often = {{0, 700}, {0, 700}}, never = {0};
    char place[] = "/tmp/brig-call-place.XXXXXX";
    const char *path = mkdtemp(place);
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    int returned = 0;
    options.fs_allow = &path;
    options.fs_allow_count = 1;
    (void)sigaction(SIGALRM, &handler, NULL);
    (void)setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20; i++) {
        (void)call(&options, give_value, NULL, &result);
        returned += result.outcome == BRIG_CALL_RETURNED && result.length == 5;
        call_result_done(&result);
    }
    (void)setitimer(ITIMER_REAL, &never, NULL);
    (void)signal(SIGALRM, SIG_DFL);
    tap_is_int(returned, 20, "%s: calls that are interrupted all the time return",
               kinds[namespaces]);
    tap_ok(waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD,
           "%s: and leave no child behind", kinds[namespaces]);
    (void)rmdir(place);
}

/* Its process is over, and its number nobody's, before the caller comes to look. */
static void test_gone_before_started(bool namespaces, bool by_loop)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result = {0};
    struct brig_caller *caller = NULL;
    struct brig_call *running = NULL;
    (void)signal(SIGCHLD, SIG_IGN);
    int status = brig_caller_new(NULL, &options, &caller, NULL);
    if (status == 0)
        status = brig_call_begin(caller, &running, NULL);
    if (status < 0) {
        tap_ok(false, "%s: a call for who ignores SIGCHLD begins", kinds[namespaces]);
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct brig_call_child *child = brig_call_enter(running, 0);
        (void)give_value(child, NULL);
        brig_call_leave(child);
    }
    (void)await_gone(pid);
    status = brig_call_started(running, pid, NULL);
    if (by_loop) {
        tap_ok(await_readable(brig_call_fd(running)) && brig_call_process(running, NULL) == 1,
               "%s: a loop learns that it is over", kinds[namespaces]);
    } else {
        (void)brig_call_wait(running, NULL);
    }
    (void)call_finish(running, &result, NULL);
    tap_ok(status == 0 && result.outcome == BRIG_CALL_RETURNED && result.length == 5,
           "%s: a value comes back of a process that was gone at once", kinds[namespaces]);
    call_result_done(&result);
    brig_call_free(running);
    brig_caller_free(caller);
    (void)signal(SIGCHLD, SIG_DFL);
}

/* ---- A fork that nobody told of ----------------------------------------------------------- */

/* What an exception of an interpreter leaves when it strikes between the fork and what follows. */
struct untold {
    struct brig_caller *caller;
    struct brig_call *call;
    struct lifeline line;
    int began[2]; /* from the function */
    int go[2];    /* to a child that has not entered yet */
};

static bool begin_untold(struct untold *untold, bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    untold->line = lifeline_open(&options);
    return pipe2(untold->began, O_CLOEXEC) == 0 && pipe2(untold->go, O_CLOEXEC) == 0 &&
           brig_caller_new(NULL, &options, &untold->caller, NULL) == 0 &&
           brig_call_begin(untold->caller, &untold->call, NULL) == 0 &&
           brig_call_keep_fd(untold->call, untold->began[1], NULL) == 0;
}

static __attribute__((noreturn)) void be_untold(struct untold *untold, bool waits)
{
    char byte;
    if (waits && read(untold->go[0], &byte, 1) != 1)
        _exit(1);
    (void)brig_call_enter(untold->call, 0);
    (void)!write(untold->began[1], "x", 1);
    for (;;)
        (void)pause();
}

static void end_test(struct untold *untold)
{
    for (int i = 0; i < 2; i++) {
        (void)close(untold->go[i]);
        if (i == 0)
            (void)close(untold->began[0]);
    }
    brig_caller_free(untold->caller);
}

/* It runs already: it is killed and reaped. */
static void test_untold_runs(bool namespaces)
{
    struct untold untold = {0};
    char byte;
    if (!begin_untold(&untold, namespaces))
        tap_bail("brig_call_begin");
    pid_t pid = fork();
    if (pid == 0)
        be_untold(&untold, false);
    tap_ok(read(untold.began[0], &byte, 1) == 1, "%s: a child runs that nobody was told of",
           kinds[namespaces]);
    brig_call_free(untold.call);
    (void)close(untold.began[1]);
    tap_ok(all_dead(&untold.line), "%s: it is ended with its call", kinds[namespaces]);
    tap_ok(waitpid(pid, NULL, WNOHANG) < 0 && errno == ECHILD, "%s: and reaped", kinds[namespaces]);
    end_test(&untold);
}

/* It comes to the gate when its call is gone, and another has its place. */
static void test_untold_comes_late(bool namespaces)
{
    struct untold untold = {0};
    struct brig_call *next = NULL;
    int status = 0;
    if (!begin_untold(&untold, namespaces))
        tap_bail("brig_call_begin");
    struct child_status *slot = untold.call->slot;
    pid_t pid = fork();
    if (pid == 0)
        be_untold(&untold, true);
    brig_call_free(untold.call);
    tap_ok(brig_call_begin(untold.caller, &next, NULL) == 0 && next->slot == slot,
           "%s: another call has the place of one that was given up", kinds[namespaces]);
    (void)!write(untold.go[1], "x", 1);
    (void)close(untold.began[1]);
    (void)waitpid(pid, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 125, "%s: who comes late ends",
           kinds[namespaces]);
    tap_ok(await_end(untold.began[0]), "%s: without its function", kinds[namespaces]);
    tap_ok(!child_status_read(slot).passed, "%s: and the other's place is untouched",
           kinds[namespaces]);
    tap_ok(all_dead(&untold.line), "%s: nothing is left of it", kinds[namespaces]);
    pid = fork();
    if (pid == 0) {
        struct brig_call_child *child = brig_call_enter(next, 0);
        (void)give_value(child, NULL);
        brig_call_leave(child);
    }
    struct brig_call_result result = {0};
    (void)brig_call_started(next, pid, NULL);
    (void)brig_call_wait(next, NULL);
    tap_ok(call_finish(next, &result, NULL) == 0 && result.length == 5,
           "%s: who is in time has its value", kinds[namespaces]);
    call_result_done(&result);
    brig_call_free(next);
    end_test(&untold);
}

/* ---- What is shared ----------------------------------------------------------------------- */

/* Anything that is still mapped as shared, but for the way back, would lead to the caller. */
static int find_shared(struct brig_call_child *child, void *argument)
{
    char line[1024], found[1024] = "";
    FILE *maps = fopen("/proc/self/maps", "re");
    (void)argument;
    while (maps && fgets(line, sizeof line, maps)) {
        uintptr_t start = 0;
        char mode[5] = "";
        if (sscanf(line, "%" SCNxPTR "-%*x %4s", &start, mode) == 2 && mode[3] == 's' &&
            start != (uintptr_t)child->head)
            (void)snprintf(found, sizeof found, "%s", line);
    }
    if (!maps)
        (void)snprintf(found, sizeof found, "/proc/self/maps: %s", strerror(errno));
    return brig_call_return(child, found, strlen(found) + 1);
}

static void test_shared(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_caller *other = NULL;
    struct brig_call *under_way = NULL;
    struct brig_call_result result;
    if (brig_caller_new(NULL, &options, &other, NULL) < 0 ||
        brig_call_begin(other, &under_way, NULL) < 0)
        tap_bail("brig_call_begin");
    (void)call(&options, find_shared, NULL, &result);
    tap_is_str(result.value, "", "%s: no memory of another caller's can be written",
               kinds[namespaces]);
    call_result_done(&result);
    brig_call_free(under_way);
    brig_caller_free(other);
}

/* ---- Descriptors -------------------------------------------------------------------------- */

static int list_fds(struct brig_call_child *child, void *argument)
{
    char text[256] = "";
    size_t used = 0;
    (void)argument;
    for (int fd = 3; fd < 1024 && used < sizeof text - 8; fd++)
        if (fd != child->fd && fcntl(fd, F_GETFD) >= 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%d ", fd);
    return brig_call_return(child, text, used + 1);
}

/* Under a filter that has a listener there can be no other: the call goes on without, and the socket
 * for it does not stay with the function. */
static __attribute__((noreturn)) void call_under_listener(int report, bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 1, .filter = &allow};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) <
        0)
        _exit(1);
    options.trace = 1;
    (void)call(&options, list_fds, NULL, &result);
    if (result.value)
        (void)!write(report, result.value, result.length);
    _exit(0);
}

static void test_descriptors(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    int ends[2];
    char text[256] = "nothing came back";
    for (options.trace = 0; options.trace < 2; options.trace++) {
        (void)call(&options, list_fds, NULL, &result);
        tap_is_str(result.value, "", "%s: no fd but the way back is open%s", kinds[namespaces],
                   options.trace ? ", with tracing" : "");
        call_result_done(&result);
    }
    if (pipe2(ends, O_CLOEXEC) < 0)
        tap_bail("pipe2");
    pid_t caller = fork();
    if (caller == 0)
        call_under_listener(ends[1], namespaces);
    (void)close(ends[1]);
    (void)!read(ends[0], text, sizeof text - 1);
    (void)waitpid(caller, NULL, 0);
    tap_is_str(text, "", "%s: nor where there can be no tracing", kinds[namespaces]);
    (void)close(ends[0]);
}

/* In the full jail /home and /tmp are its own. */
static int break_out(struct brig_call_child *child, void *argument)
{
    bool namespaces = *(bool *)argument;
    const char *bad = NULL;
    if (syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */) == 0)
        bad = "a user namespace";
    else if (syscall(SYS_mount, "none", "/", NULL, 0, NULL) == 0)
        bad = "mount";
    else if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        bad = "no_new_privs";
    else if (open("/root", O_RDONLY | O_CLOEXEC) >= 0)
        bad = "/root";
    else if (!namespaces && open("/home", O_RDONLY | O_CLOEXEC) >= 0)
        bad = "/home";
    else if (!namespaces &&
             open("/tmp/brig-call-escape", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0)
        bad = "/tmp";
    else if (truncate("/etc/hosts", 0) == 0 || unlink("/etc/hosts") == 0)
        bad = "/etc/hosts";
    else if (!namespaces && open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0)
        bad = "/dev/tty";
    return brig_call_return(child, bad ? bad : "nothing", bad ? strlen(bad) : 7);
}

static void test_confine(bool namespaces)
{
    struct brig_call_options options = new_options(namespaces);
    struct brig_call_result result;
    (void)call(&options, break_out, &namespaces, &result);
    tap_is_str(result.value, "nothing", "%s: what gave way", kinds[namespaces]);
    call_result_done(&result);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    for (int namespaces = 0; namespaces < 2; namespaces++) {
        test_processes(namespaces);
        test_process_limit(namespaces);
        test_ended_early(namespaces);
        test_ends(namespaces);
        test_values(namespaces);
        test_value_is_ours(namespaces, 100);
        test_value_is_ours(namespaces, CHANGING_BYTES);
        test_caller(namespaces);
        test_terminal(namespaces);
        test_death_of_caller(namespaces);
        test_buffers(namespaces);
        test_ignored_children(namespaces);
        test_interrupted(namespaces);
        test_gone_before_started(namespaces, false);
        test_gone_before_started(namespaces, true);
        test_untold_runs(namespaces);
        test_untold_comes_late(namespaces);
        test_shared(namespaces);
        test_descriptors(namespaces);
        test_confine(namespaces);
    }
    return tap_done();
}
