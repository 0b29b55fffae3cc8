/* SPDX-License-Identifier: MIT */
/* Executing a plan: the intermediate (root and templates only) and the jail's first process, which
 * builds the jail, clones the command and becomes init. */
#include "jail/child.h"

#include <asm/ioctls.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>

#include "jail/child_say.h"
#include "jail/child_start.h"
#include "jail/loopback.h"
#include "jail/sys.h"
#include "jail/wire.h"

/* The builder's pid inside: out of the way, so that the command is pid 2. */
#define BUILDER_PID 300

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
            return child_failed(start, (int)i, result);
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
    if (child_set_caps(caps) != 0)
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
        return child_failed(start, PLAN_STEP_INIT, init < 0 ? init : wire);
    (void)SYS(close_range, 0, 15, 0);
    (void)SYS(openat, AT_FDCWD, "/dev/null", O_RDWR, 0); /* the lowest free number: 0 */
    (void)SYS(dup3, 0, 1, 0);
    (void)SYS(dup3, 0, 2, 0);
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
        builder = child_clone(start, &(struct child_clone){
                                         .flags = CLONE_VM | CLONE_FS | CLONE_FILES,
                                         .stack = 2,
                                         .pid = BUILDER_PID,
                                         .here = &start->builder_here,
                                         .function = builder_main,
                                     });
    }
    long result = SYS(unshare, CLONE_NEWNET);
    if (builder >= 0) {
        child_wait_until_gone(&start->builder_here); /* init will reap it */
        if (start->builder_result != 0)
            return start->builder_result;
    }
    if (result < 0)
        return child_failed(start, PLAN_STEP_CLONE, result);
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
            return child_failed(start, PLAN_STEP_SESSION, result);
        /* Side by side with us if clone3 can tell when it has left; else we wait for its exec. */
        bool together = start->handlers_cleared;
        start->gate[0] = start->gate[1] = -1;
        if (together && (result = (int)SYS(pipe2, start->gate, O_CLOEXEC)) < 0)
            return child_failed(start, PLAN_STEP_COMMAND, result);
        start->no_fallback = together;
        command = child_clone(start, &(struct child_clone){
                                         .flags = together ? CLONE_VM : CLONE_VM | CLONE_VFORK,
                                         .exit_signal = SIGNAL_CHILD,
                                         .stack = 2,
                                         .here = together ? &start->command_here : 0,
                                         .function = child_command_main,
                                     });
        if (command < 0)
            return child_failed(start, PLAN_STEP_COMMAND, command);
    }
    return become_init(start, command);
}

/* ---- the intermediate: other ids, or the namespaces of a template, before our own ---- */

static int take_ids(const struct plan *plan)
{
    if (plan->rung != PLAN_FULL && plan->drop_caps)
        child_drop_bounding_set(); /* later there is no CAP_SETPCAP left to do it with */
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
        return child_failed(start, PLAN_STEP_IDS, result);
    if ((result = join_namespaces(plan)) < 0)
        return child_failed(start, PLAN_STEP_JOIN, result);
    if (plan->only_steps)
        return take_steps(start, ALL_STEPS);
    /* CLONE_PARENT: the first process is the caller's child, to be waited for and signalled. */
    long pid = child_clone(
        start, &(struct child_clone){
                   .flags = first_flags(plan) | CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD,
                   .stack = 1,
                   .function = first_main,
               });
    if (pid < 0)
        return child_failed(start, PLAN_STEP_CLONE, pid);
    child_wait_until_gone(&start->command_here);
    return child_say_fd(start->wire, WIRE_PID, (int)pid, start->pidfd) < 0 ? 125 : 0;
}

long child_start(const struct plan *plan, int wire_fd, void *stack, int *ret_pidfd)
{
    struct start start = {.plan = plan, .wire = wire_fd, .stack = stack, .pidfd = -1};
    struct child_clone clone = {.flags = CLONE_VM | CLONE_VFORK};
    if (plan->become || plan->join_userns >= 0) {
        if (plan->become) /* changing ids would make the caller undumpable */
            clone.flags = CLONE_VFORK;
        clone.function = intermediate_main;
        return child_clone(&start, &clone);
    }
    if (plan->parent_maps) /* it must wait for us, so we cannot wait for it */
        clone.flags = 0;
    clone.flags |= first_flags(plan) | CLONE_PIDFD;
    clone.stack = 1;
    clone.function = first_main;
    long pid = child_clone(&start, &clone);
    if (!plan->parent_maps)
        child_wait_until_gone(&start.command_here);
    if (pid >= 0)
        *ret_pidfd = start.pidfd;
    return pid;
}
