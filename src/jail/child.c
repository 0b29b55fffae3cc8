/* SPDX-License-Identifier: MIT */
/* Executing a plan: the intermediate (root and templates only), the jail's first process, and the
 * command up to its exec. */
#include "jail/child.h"

#include <asm/ioctls.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

#include "jail/child_say.h"
#include "jail/loopback.h"
#include "jail/sys.h"
#include "jail/wire.h"

/* Values that live in headers which cannot be mixed with the kernel's. */
enum {
    ERR_EPERM = 1,
    ERR_ENOENT = 2,
    ERR_ENOEXEC = 8,
    ERR_EACCES = 13,
    ERR_ENOTDIR = 20,
    ERR_ENOSYS = 38,
    ERR_EPIPE = 32,
    SIGNAL_PIPE = 13,
    SIGNAL_CHILD = 17,
    SIGNAL_FILE_SIZE = 25,
    SIGNAL_COUNT = 64,
    BUILDER_PID = 300,     /* inside: out of the way, so that the command is pid 2 */
};

/* Everything the processes of one start share: on the caller's side of the stack, or in a copy. */
struct start {
    const struct plan *plan;
    int wire;
    char *stack;           /* three of CHILD_STACK_BYTES: intermediate, first process, command */
    bool handlers_cleared; /* clone3 did it */
    bool no_fallback;      /* clone3 or nothing */
    unsigned umask;        /* the caller's, for the command */
    /* Cleared by the kernel when the process leaves this memory, by exec or by its end. */
    int command_here, builder_here;
    int pidfd;   /* of the first process, in the table of whoever cloned it */
    int gate[2]; /* a pipe: init writes, the command waits with its exec */
    int builder_result;
};

/* ---- clone ---- */

/* Makes the system call `number` (clone3 or clone) with a stack of its own in the child, where it
 * calls function(argument) and exits with what that returns. */
#if defined(__x86_64__)
static long clone_and_call(long number, long a, long b, long c, int (*function)(void *),
                           void *argument)
{
    long result;
    register int (*fn)(void *) __asm__("r12") = function;
    register void *arg __asm__("r13") = argument;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fn),
                       "r"(arg), [exit] "i"(__NR_exit_group)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long clone_and_call(long number, long a, long b, long c, int (*function)(void *),
                           void *argument)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register int (*fn)(void *) __asm__("x20") = function;
    register void *arg __asm__("x21") = argument;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x21\n\t"
                     "blr x20\n\t"
                     "mov x8, %[exit]\n\t"
                     "svc 0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(fn),
                       "r"(arg), [exit] "i"(__NR_exit_group)
                     : "memory", "cc");
    return x0;
}
#endif

static int builder_main(void *argument);

/* clone3, or clone where clone3 is missing (old containers' filters answer ENOSYS or EPERM). */
static long clone_child(struct start *start, unsigned long flags, int exit_signal, int which_stack,
                        int *here, int (*function)(void *))
{
    bool with_pid = function == builder_main;
    int pid_wanted = BUILDER_PID;
    char *stack = start->stack + (size_t)which_stack * CHILD_STACK_BYTES;
    struct clone_args args = {
        .flags = flags | CLONE_CLEAR_SIGHAND | (here ? CLONE_CHILD_CLEARTID : 0),
        .child_tid = (uint64_t)(uintptr_t)here,
        .exit_signal = (uint64_t)exit_signal,
        .pidfd = (uint64_t)(uintptr_t)&start->pidfd,
        .set_tid = with_pid ? (uint64_t)(uintptr_t)&pid_wanted : 0,
        .set_tid_size = with_pid,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = CHILD_STACK_BYTES,
    };
    start->handlers_cleared = true;
    if (here)
        *here = 1;
    long pid = clone_and_call(__NR_clone3, (long)&args, sizeof args, 0, function, start);
    if (pid >= 0 || start->no_fallback || (pid != -ERR_ENOSYS && pid != -ERR_EPERM)) {
        if (pid < 0 && here)
            *here = 0;
        return pid;
    }
    /* Without the word that it left, the parent waits in the old way. */
    start->handlers_cleared = false;
    if (here) {
        *here = 0;
        flags |= CLONE_VFORK;
    }
    return clone_and_call(__NR_clone, (long)flags | exit_signal, (long)(stack + CHILD_STACK_BYTES),
                          (long)&start->pidfd, function, start);
}

/* Waits until the process that `here` was given to has left this memory. */
static void wait_until_gone(const int *here)
{
    while (__atomic_load_n(here, __ATOMIC_ACQUIRE) != 0)
        (void)SYS(futex, here, 0 /* FUTEX_WAIT */, 1, 0, 0, 0);
}

/* ---- reports ---- */

static int failed(const struct start *start, int step, long result)
{
    child_say(start->wire, WIRE_FAILED, step, (int)-result);
    return 125;
}

/* ---- the command ---- */

/* A process group of its own in init's session, and the terminal's foreground. Not a session of its
 * own: its group would be orphaned, and Ctrl-Z would not stop it. */
static int set_group(int pty)
{
    long result = SYS(setpgid, 0, 0);
    if (result < 0 || pty < 0)
        return (int)result;
    int group = (int)SYS(getpid); /* with SIGTTOU blocked, the background may ask for it */
    return (int)SYS(ioctl, pty, TIOCSPGRP, &group);
}

/* Moves every wanted fd out of the way, then to its number, then closes the rest on exec. */
static int set_fds(const struct plan *plan, int pty)
{
    int moved[PLAN_FD_MAX], above = 3;
    for (size_t i = 0; i < plan->fd_count; i++)
        if (plan->fds[i].number >= above)
            above = plan->fds[i].number + 1;
    long null = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    for (size_t i = 0; i < plan->fd_count; i++) {
        int fd = plan->fds[i].fd;
        if (fd == PLAN_FD_PTY)
            fd = pty;
        else if (fd == PLAN_FD_NULL)
            fd = (int)null;
        if (fd < 0)
            return fd;
        long copy = SYS(fcntl, fd, F_DUPFD_CLOEXEC, above);
        if (copy < 0)
            return (int)copy;
        moved[i] = (int)copy;
    }
    long result = SYS(close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
    if (result < 0) { /* before 5.11 */
        for (int fd = 3; fd < 65536; fd++)
            (void)SYS(fcntl, fd, F_SETFD, FD_CLOEXEC);
    }
    for (size_t i = 0; i < plan->fd_count; i++) {
        result = SYS(dup3, moved[i], plan->fds[i].number, 0);
        if (result < 0)
            return (int)result;
    }
    return 0;
}

/* Only ever lowers: a limit that is tighter already stays. */
static int set_rlimits(const struct plan *plan)
{
    for (size_t i = 0; i < plan->rlimit_count; i++) {
        struct rlimit64 now, want = plan->rlimits[i].limit;
        long result = SYS(prlimit64, 0, plan->rlimits[i].resource, 0, &now);
        if (result < 0)
            return (int)result;
        if (want.rlim_max > now.rlim_max)
            want.rlim_max = now.rlim_max;
        if (want.rlim_cur > want.rlim_max)
            want.rlim_cur = want.rlim_max;
        result = SYS(prlimit64, 0, plan->rlimits[i].resource, &want, 0);
        if (result < 0)
            return (int)result;
    }
    return 0;
}

static int set_caps(uint32_t low)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = low, .permitted = low, .inheritable = low}};
    return (int)SYS(capset, &header, data);
}

static void drop_bounding_set(void)
{
    for (int cap = 0; SYS(prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) >= 0; cap++)
        ; /* ends at the first number that is no capability */
}

static int drop_caps(const struct plan *plan)
{
    /* It wants CAP_SETPCAP, which an unprivileged caller without a user namespace lacks: there the
     * bounding set stays, and no_new_privs keeps it from mattering. */
    if (plan->rung == PLAN_FULL)
        drop_bounding_set();
    (void)SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return set_caps(0);
}

static int restrict_landlock(const struct plan *plan)
{
    long ruleset = SYS(landlock_create_ruleset, &plan->landlock_attr, plan->landlock_attr_size, 0);
    if (ruleset < 0)
        return (int)ruleset;
    for (size_t i = 0; i < plan->rule_count; i++) {
        const struct plan_rule *rule = &plan->rules[i];
        /* struct landlock_path_beneath_attr is packed. */
        struct {
            uint64_t access;
            int32_t fd;
        } __attribute__((packed)) beneath = {.access = rule->access};
        long fd = rule->slot != PLAN_NO_SLOT
                      ? plan->slots[rule->slot]
                      : SYS(openat, AT_FDCWD, rule->path, O_PATH | O_CLOEXEC, 0);
        if (fd == -ERR_ENOENT || fd == -ERR_ENOTDIR || fd == -ERR_EACCES)
            continue; /* what cannot be reached needs no right */
        if (fd < 0)
            return (int)fd;
        beneath.fd = (int32_t)fd;
        long result = SYS(landlock_add_rule, ruleset, 1 /* PATH_BENEATH */, &beneath, 0);
        if (rule->slot == PLAN_NO_SLOT)
            (void)SYS(close, fd);
        if (result < 0)
            return (int)result;
    }
    return (int)SYS(landlock_restrict_self, ruleset, 0);
}

/* As execvp does, along the candidates; the most telling error wins. */
static int execute(const struct plan *plan)
{
    long told = -ERR_ENOENT;
    for (size_t i = 0; plan->programs[i]; i++) {
        long result = SYS(execve, plan->programs[i], plan->argv, plan->envp);
        if (result == -ERR_ENOEXEC) {
            /* No interpreter line: a shell script by convention. */
            const char **script = (const char **)(uintptr_t)plan->script_argv;
            script[1] = plan->programs[i];
            result = SYS(execve, script[0], script, plan->envp);
        }
        if (result == -ERR_ENOENT || result == -ERR_ENOTDIR)
            continue;
        told = result;
        if (result != -ERR_EACCES)
            break;
    }
    return (int)told;
}

/* A session keyring of its own: the caller's may hold keys. */
static int join_keyring(void)
{
    long result = SYS(keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0);
    return result < 0 ? (int)result : 0;
}

static int command_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    int pty = plan->wants_pty ? plan->slots[PLAN_PTY_SLOT] : plan->pty_fd;
    int result;

    if (start->gate[1] >= 0)
        (void)SYS(close, start->gate[1]); /* or its end would never be seen */
    (void)SYS(umask, start->umask);
    if ((result = set_group(pty)) < 0)
        return failed(start, PLAN_STEP_SESSION, result);
    if ((result = set_fds(plan, pty)) < 0)
        return failed(start, PLAN_STEP_FDS, result);
    if (plan->drop_caps && (result = drop_caps(plan)) < 0)
        return failed(start, PLAN_STEP_CAPS, result);
    if ((result = (int)SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) < 0)
        return failed(start, PLAN_STEP_NO_NEW_PRIVS, result);
    if (plan->landlock && (result = restrict_landlock(plan)) < 0)
        return failed(start, PLAN_STEP_LANDLOCK, result);
    if ((result = set_rlimits(plan)) < 0) /* late: our own fds must not be too many for it */
        return failed(start, PLAN_STEP_RLIMIT, result);
    if ((result = join_keyring()) < 0)
        child_say(start->wire, WIRE_SOFT, PLAN_STEP_KEYRING, -result);
    unsigned long none = 0;
    (void)SYS(rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, sizeof none);
    if (plan->seccomp) {
        result = (int)SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, plan->seccomp);
        if (result < 0)
            return failed(start, PLAN_STEP_SECCOMP, result);
    }
    /* Nothing untrusted runs before init says that it is itself: until its exec, pid 1 shares the
     * caller's memory. */
    char word;
    if (start->gate[0] >= 0 && SYS(read, start->gate[0], &word, 1) != 1)
        return 125; /* there is no init, and so no jail */
    if (plan->workdir && (result = (int)SYS(chdir, plan->workdir)) < 0)
        return failed(start, PLAN_STEP_WORKDIR, result);
    return failed(start, PLAN_STEP_EXEC, execute(plan));
}

/* ---- the jail's first process ---- */

static int write_file(const struct plan_step *step)
{
    long fd = SYS(openat, AT_FDCWD, step->path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    long result = SYS(write, fd, step->data, step->length);
    (void)SYS(close, fd);
    return result < 0 ? (int)result : 0;
}

/* data: the host terminal's settings and size, as the kernel gave them. */
static int open_pty(const struct start *start, const struct plan_step *step)
{
    const struct child_terminal *host = step->data;
    long master = SYS(openat, AT_FDCWD, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
    if (master < 0)
        return (int)master;
    int unlock = 0;
    long result = SYS(ioctl, master, TIOCSPTLCK, &unlock);
    if (result < 0)
        return (int)result;
    long slave = SYS(ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return (int)slave;
    if (host->has_settings)
        (void)SYS(ioctl, slave, TCSETS, host->settings);
    if (host->has_size)
        (void)SYS(ioctl, slave, TIOCSWINSZ, host->size);
    result = child_say_fd(start->wire, WIRE_TERMINAL, 0, (int)master);
    (void)SYS(close, master);
    start->plan->slots[step->slot] = (int)slave;
    return (int)result;
}

static int take_step(const struct start *start, const struct plan_step *step)
{
    if (child_is_mount_step(step))
        return child_mount_step(start->plan, step);
    if (step->op == PLAN_WRITE)
        return write_file(step);
    if (step->op == PLAN_SETGROUPS)
        return (int)SYS(setgroups, 0, 0);
    if (step->op == PLAN_HOSTNAME)
        return (int)SYS(sethostname, step->data, step->length);
    if (step->op == PLAN_LOOPBACK)
        return start->plan->skip_loopback ? 0 : sys_loopback_up();
    if (step->op == PLAN_PTY)
        return open_pty(start, step);
    return -ERR_ENOSYS;
}

/* Steps that are about the process that takes them, or about its network. */
static bool is_own_step(const struct plan_step *step)
{
    return step->op == PLAN_LOOPBACK || step->op == PLAN_SETGROUPS;
}

enum which_steps { ALL_STEPS, OWN_STEPS, SHARED_STEPS };

/* 0, or the exit status after the failure was reported. */
static int take_steps(const struct start *start, enum which_steps which)
{
    const struct plan *plan = start->plan;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];
        if (which != ALL_STEPS && is_own_step(step) != (which == OWN_STEPS))
            continue;
        int result = take_step(start, step);
        if (result >= 0)
            continue;
        if (!step->soft)
            return failed(start, (int)i, result);
        child_say(start->wire, WIRE_SOFT, (int)i, -result);
    }
    return 0;
}

static char *put_number(char *end, unsigned value)
{
    *end = 0;
    do
        *--end = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    return end;
}

/* Keeps one capability through the exec, so that the command, which has none, can neither trace
 * nor read init; a maker keeps what making networks takes. Only ever in the jail's own user
 * namespace. */
static void keep_caps(const struct plan *plan)
{
    if (plan->rung != PLAN_FULL)
        return;
    bool maker = plan->init_mode[0] == 'm' || plan->init_mode[0] == 'M';
    int keep = maker ? CAP_SYS_ADMIN : CAP_SYS_PTRACE;
    uint32_t caps = 1U << keep;
    if (maker)
        caps |= 1U << CAP_NET_ADMIN;
    if (set_caps(caps) != 0)
        return;
    (void)SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, keep, 0, 0);
    if (maker)
        (void)SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0);
}

static int become_init(const struct start *start, long command)
{
    const struct plan *plan = start->plan;
    char number[16];
    const char *argv[] = {"brig-init", put_number(number + sizeof number - 1, (unsigned)command),
                          plan->init_mode, 0};
    const char *envp[] = {0};
    keep_caps(plan);
    (void)SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (plan->rung == PLAN_FULL)
        (void)SYS(chdir, "/");
    /* Out of the way of the low numbers first: init_fd may be one of 0 to 3. */
    long init = SYS(fcntl, plan->init_fd, F_DUPFD_CLOEXEC, 16);
    long wire = SYS(fcntl, start->wire, F_DUPFD_CLOEXEC, 16);
    long gate = command > 0 ? SYS(fcntl, start->gate[1], F_DUPFD_CLOEXEC, 16) : -1;
    if (init < 0 || wire < 0)
        return failed(start, PLAN_STEP_INIT, init < 0 ? init : wire);
    (void)SYS(close_range, 0, 15, 0);
    for (int fd = 0; fd < 3; fd++) /* the lowest free number each time, to be kept */
        (void)SYS(openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    (void)SYS(dup3, wire, WIRE_INIT_FD, 0);
    if (gate >= 0)
        (void)SYS(dup3, gate, WIRE_GATE_FD, 0);
    if (SYS(close_range, WIRE_GATE_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        for (int fd = WIRE_GATE_FD + 1; fd < 65536; fd++)
            (void)SYS(fcntl, fd, F_SETFD, FD_CLOEXEC);
    long result = SYS(execveat, init, "", argv, envp, AT_EMPTY_PATH);
    child_say(WIRE_INIT_FD, WIRE_FAILED, PLAN_STEP_INIT, (int)-result);
    return 125;
}

struct action {
    long handler; /* 0 is SIG_DFL, 1 is SIG_IGN */
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

/* No handler of the caller's may run in here, and three signals it may be ignoring must work: init
 * waits for SIGCHLD, and commands expect SIGPIPE and SIGXFSZ to end them. Others that are ignored
 * stay so, as nohup wants it. */
static void clear_handlers(const struct start *start)
{
    struct action standard = {0}, now;
    (void)SYS(rt_sigaction, SIGNAL_CHILD, &standard, 0, sizeof now.mask);
    (void)SYS(rt_sigaction, SIGNAL_PIPE, &standard, 0, sizeof now.mask);
    (void)SYS(rt_sigaction, SIGNAL_FILE_SIZE, &standard, 0, sizeof now.mask);
    for (int signal = 1; !start->handlers_cleared && signal <= SIGNAL_COUNT; signal++)
        if (SYS(rt_sigaction, signal, 0, &now, sizeof now.mask) >= 0 && now.handler > 1)
            (void)SYS(rt_sigaction, signal, &standard, 0, sizeof now.mask);
}

static int start_session(int pty)
{
    long result = SYS(setsid);
    if (result < 0 || pty < 0)
        return result < 0 ? (int)result : 0;
    return (int)SYS(ioctl, pty, TIOCSCTTY, 0);
}

static int builder_main(void *argument)
{
    struct start *start = argument;
    start->builder_result = take_steps(start, SHARED_STEPS);
    return 0;
}

/* Making a network namespace and building the rest take about as long: with two CPUs they are done
 * side by side, by this process and by one that shares everything with it but its credentials and
 * its network. */
static int build(struct start *start)
{
    const struct plan *plan = start->plan;
    if (!plan->network_apart || !(plan->clone_flags & CLONE_NEWNET))
        return take_steps(start, ALL_STEPS);
    long builder = -ERR_ENOSYS;
    if (start->handlers_cleared) {
        start->no_fallback = true;
        builder = clone_child(start, CLONE_VM | CLONE_FS | CLONE_FILES, 0, 2, &start->builder_here,
                              builder_main);
    }
    long result = SYS(unshare, CLONE_NEWNET);
    if (builder >= 0) {
        wait_until_gone(&start->builder_here); /* init will reap it */
        if (start->builder_result != 0)
            return start->builder_result;
    }
    if (result < 0)
        return failed(start, PLAN_STEP_CLONE, result);
    return take_steps(start, builder >= 0 ? OWN_STEPS : ALL_STEPS);
}

static int first_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    clear_handlers(start);
    if (plan->parent_maps) {
        struct wire_message message;
        if (SYS(read, start->wire, &message, sizeof message) != (long)sizeof message)
            return 125;
    }
    if (plan->init_mode[0] == 's') /* before there can be an orphan; it stays through the exec */
        (void)SYS(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    start->umask = (unsigned)SYS(umask, 0); /* the modes of the build are meant as they stand */
    int result = build(start);
    if (result != 0)
        return result;
    long command = 0;
    if (plan->programs) {
        int pty = plan->wants_pty ? plan->slots[PLAN_PTY_SLOT] : plan->pty_fd;
        if ((result = start_session(pty)) < 0)
            return failed(start, PLAN_STEP_SESSION, result);
        /* Side by side with us if clone3 can tell when it has left; else we wait for its exec. */
        bool together = start->handlers_cleared;
        start->gate[0] = start->gate[1] = -1;
        if (together && (result = (int)SYS(pipe2, start->gate, O_CLOEXEC)) < 0)
            return failed(start, PLAN_STEP_COMMAND, result);
        start->no_fallback = together;
        command = clone_child(start, together ? CLONE_VM : CLONE_VM | CLONE_VFORK, SIGNAL_CHILD, 2,
                              together ? &start->command_here : 0, command_main);
        if (command < 0)
            return failed(start, PLAN_STEP_COMMAND, command);
    }
    return become_init(start, command);
}

/* ---- the intermediate: other ids, or the namespaces of a template, before our own ---- */

static int take_ids(const struct plan *plan)
{
    if (plan->rung != PLAN_FULL && plan->drop_caps)
        drop_bounding_set(); /* later there is no CAP_SETPCAP left to do it with */
    long result = SYS(setgroups, 0, 0);
    if (result == 0)
        result = SYS(setresgid, plan->host_gid, plan->host_gid, plan->host_gid);
    if (result == 0)
        result = SYS(setresuid, plan->host_uid, plan->host_uid, plan->host_uid);
    /* Changing ids made this memory (a copy of the caller's, not shared) undumpable and so
     * /proc/self root's; the id maps below could not be written. */
    if (result == 0)
        result = SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
    return (int)result;
}

static int join_namespaces(const struct plan *plan)
{
    long result = 0;
    if (plan->join_userns >= 0)
        result = SYS(setns, plan->join_userns, CLONE_NEWUSER);
    if (result >= 0 && plan->join_mntns >= 0)
        result = SYS(setns, plan->join_mntns, CLONE_NEWNS);
    if (result >= 0 && plan->join_netns >= 0)
        result = SYS(setns, plan->join_netns, CLONE_NEWNET);
    return (int)result;
}

/* What the first process is cloned with: its network it may make itself. */
static unsigned long first_flags(const struct plan *plan)
{
    return plan->network_apart ? plan->clone_flags & ~(unsigned long)CLONE_NEWNET
                               : plan->clone_flags;
}

static int intermediate_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    clear_handlers(start);
    int result;
    if (plan->become && (result = take_ids(plan)) < 0)
        return failed(start, PLAN_STEP_IDS, result);
    if ((result = join_namespaces(plan)) < 0)
        return failed(start, PLAN_STEP_JOIN, result);
    if (plan->only_steps)
        return take_steps(start, ALL_STEPS);
    /* CLONE_PARENT: the first process is the caller's child, to be waited for and signalled. */
    long pid =
        clone_child(start, first_flags(plan) | CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD,
                    0, 1, 0, first_main);
    if (pid < 0)
        return failed(start, PLAN_STEP_CLONE, pid);
    wait_until_gone(&start->command_here);
    return child_say_fd(start->wire, WIRE_PID, (int)pid, start->pidfd) < 0 ? 125 : 0;
}

long child_start(const struct plan *plan, int wire_fd, void *stack, int *ret_pidfd)
{
    struct start start = {.plan = plan, .wire = wire_fd, .stack = stack, .pidfd = -1};
    if (plan->become) /* no CLONE_VM: changing ids would make the caller undumpable */
        return clone_child(&start, CLONE_VFORK, 0, 0, 0, intermediate_main);
    if (plan->join_userns >= 0)
        return clone_child(&start, CLONE_VM | CLONE_VFORK, 0, 0, 0, intermediate_main);
    unsigned long sharing = plan->parent_maps ? 0 : CLONE_VM | CLONE_VFORK;
    long pid = clone_child(&start, first_flags(plan) | sharing | CLONE_PIDFD, 0, 1, 0, first_main);
    if (!plan->parent_maps)
        wait_until_gone(&start.command_here);
    if (pid >= 0)
        *ret_pidfd = start.pidfd;
    return pid;
}
