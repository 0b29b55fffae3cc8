/* SPDX-License-Identifier: MIT */
/* Executes a plan: the intermediate (only for root, templates and entering) and the jail's first
 * process, which builds the jail, clones the command and executes init. */
#include "jail/child/child.h"

#include <asm/ioctls.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "jail/child/child_start.h"
#include "jail/nested_limits/nested_limits_wire.h"
#include "jail/sys.h"
#include "jail/wire.h"

bool child_has_intermediate(const struct plan *plan)
{
    return plan->become || plan->join_userns >= 0;
}

/* ---- the jail's first process ---- */

static int write_file(const struct plan *plan, const struct plan_step *step)
{
    int from = step->slot == PLAN_NO_SLOT ? AT_FDCWD : plan->slots[step->slot];
    long fd = SYS(openat, from, step->path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    long result = SYS(write, fd, step->data, step->length);
    (void)SYS(close, fd);
    return result < 0 ? (int)result : 0;
}

/* data: the host terminal's settings and size, as returned by the kernel. */
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

/* The path is brig's, not the policy's, so it fits. */
static int open_tools(const struct start *start, const struct plan_step *step)
{
    struct {
        unsigned short family;
        char path[108];
    } address = {.family = 1 /* AF_UNIX */};
    size_t length = 0;
    for (; step->path[length] && length + 1 < sizeof address.path; length++)
        address.path[length] = step->path[length];
    long fd = SYS(socket, 1, 5 /* SOCK_SEQPACKET */ | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return (int)fd;
    /* Set before any process can send: see nested_limits.c. Kernels before 6.16 do not have the
     * option. */
    int refuse = 0;
    (void)SYS(setsockopt, fd, 1 /* SOL_SOCKET */, GUARD_SO_PASSRIGHTS, &refuse, sizeof refuse);
    long result = SYS(bind, fd, &address, sizeof address.family + length + 1);
    if (result >= 0)
        result = SYS(listen, fd, 16);
    if (result >= 0)
        result = child_say_fd(start->wire, WIRE_TOOLS, 0, (int)fd);
    (void)SYS(close, fd);
    return (int)result;
}

/* The fd keeps the mount alive when the jail's mount namespace is gone. */
static int keep_directory(const struct start *start, const struct plan_step *step)
{
    long fd =
        SYS(openat, start->plan->slots[step->slot], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    int result = child_say_fd(start->wire, WIRE_KEPT, 0, (int)fd);
    (void)SYS(close, fd);
    return result;
}

static int open_late(const struct start *start, const struct plan_step *step)
{
    long fd = SYS(openat, start->plan->slots[step->slot], step->path,
                  O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0)
        return (int)fd;
    int result = child_say_fd(start->wire, WIRE_LATE, 0, (int)fd);
    (void)SYS(close, fd);
    return result;
}

static int take_step(const struct start *start, const struct plan_step *step)
{
    if (child_is_mount_step(step))
        return child_mount_step(start->plan, step);
    if (step->op == PLAN_WRITE)
        return write_file(start->plan, step);
    if (step->op == PLAN_SETGROUPS)
        return (int)SYS(setgroups, 0, 0);
    if (step->op == PLAN_HOSTNAME)
        return (int)SYS(sethostname, step->data, step->length);
    if (step->op == PLAN_KEEP)
        return keep_directory(start, step);
    if (step->op == PLAN_LATE)
        return open_late(start, step);
    if (step->op == PLAN_LISTEN)
        return open_tools(start, step);
    if (step->op == PLAN_PTY)
        return open_pty(start, step);
    return -ERR_ENOSYS;
}

/* Executes the steps in order. Returns 0, or the exit status after it reported the failure. */
static int build(const struct start *start)
{
    for (size_t i = 0; i < start->plan->step_count; i++) {
        const struct plan_step *step = &start->plan->steps[i];
        int result = take_step(start, step);
        bool unreachable = result == -ERR_EACCES || result == -ERR_ENOENT;
        if (result >= 0 || (step->if_reachable && unreachable))
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

/* Keeps one capability across the exec, so that the command, which has none, can neither trace nor
 * read init; a maker keeps the capabilities for creating network namespaces. They apply only in the
 * jail's user namespace. */
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

static int become_init(struct start *start, long command)
{
    const struct plan *plan = start->plan;
    char number[16];
    const char *argv[] = {"brig-init", put_number(number + sizeof number - 1, (unsigned)command),
                          plan->init_mode, 0};
    const char *envp[] = {0};
    /* Move these fds above the low numbers first: init_fd may be one of 0 to 3. */
    long init = SYS(fcntl, plan->init_fd, F_DUPFD_CLOEXEC, 16);
    long wire = SYS(fcntl, start->wire, F_DUPFD_CLOEXEC, 16);
    bool piped = command > 0 && start->gate[1] >= 0;
    long gate = piped ? SYS(fcntl, start->gate[1], F_DUPFD_CLOEXEC, 16) : -1;
    if (init < 0 || wire < 0)
        return child_failed(start, PLAN_STEP_INIT, init < 0 ? init : wire);
    (void)SYS(close_range, 0, 15, 0);
    (void)SYS(openat, AT_FDCWD, "/dev/null", O_RDWR, 0); /* gets the lowest free number: 0 */
    (void)SYS(dup3, 0, 1, 0);
    (void)SYS(dup3, 0, 2, 0);
    (void)SYS(dup3, wire, WIRE_INIT_FD, 0);
    if (gate >= 0)
        (void)SYS(dup3, gate, WIRE_GATE_FD, 0);
    child_close_on_exec(WIRE_GATE_FD + 1);
    keep_caps(plan);
    (void)SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (plan->rung == PLAN_FULL)
        (void)SYS(chdir, "/");
    long failed = SYS(execveat, init, "", argv, envp, AT_EMPTY_PATH);
    child_say(WIRE_INIT_FD, WIRE_FAILED, PLAN_STEP_INIT, (int)-failed);
    return 125;
}

/* Clone flags of the first process. The root of a cgroup namespace is its creator's cgroup, so the
 * namespace is created after the jail's cgroups are joined. */
static unsigned long first_flags(const struct plan *plan)
{
    return plan->clone_flags & ~(child_is_grouped(plan) ? (unsigned long)CLONE_NEWCGROUP : 0);
}

struct action {
    long handler; /* 0 is SIG_DFL, 1 is SIG_IGN */
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

/* No handler of the caller may run in the child. Three signals must not stay ignored: init waits
 * for SIGCHLD, and commands expect SIGPIPE and SIGXFSZ to kill them. Other ignored signals stay
 * ignored, as nohup expects. */
static void clear_handlers(const struct start *start)
{
    struct action standard = {0}, now = {0};
    (void)SYS(rt_sigaction, SIGNAL_CHILD, &standard, 0, sizeof now.mask);
    (void)SYS(rt_sigaction, SIGNAL_PIPE, &standard, 0, sizeof now.mask);
    (void)SYS(rt_sigaction, SIGNAL_FILE_SIZE, &standard, 0, sizeof now.mask);
    for (int signal = 1; !start->by_clone3 && signal <= SIGNAL_COUNT; signal++)
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

/* Creates the pipe that the command's process reads before its exec. Init writes to it: until pid 1
 * has executed init, it shares the caller's memory. */
static long close_gate(struct start *start)
{
    return SYS(pipe2, start->gate, O_CLOEXEC);
}

/* Clones the command's process, which shares this memory until its exec. Returns the pid, or the
 * negated exit status after it reported the failure. */
static long clone_command(struct start *start)
{
    long command = close_gate(start);
    if (command >= 0)
        command = child_clone(start, &(struct child_clone){
                                         .flags = CLONE_VM,
                                         .exit_signal = SIGNAL_CHILD,
                                         .stack = 2,
                                         .here = &start->command_here,
                                         .function = child_command_main,
                                     });
    return command < 0 ? -child_failed(start, PLAN_STEP_COMMAND, command) : command;
}

int child_make_network(const struct start *start)
{
    const struct plan *plan = start->plan;
    int result = plan->loopback ? sys_loopback_up() : 0;
    if (result < 0)
        return child_failed(start, PLAN_STEP_LOOPBACK, result);
    return plan->door ? child_open_door(start) : 0;
}

static bool await_go(const struct start *start)
{
    struct wire_message message;
    return SYS(read, start->wire, &message, sizeof message) == (long)sizeof message;
}

/* Builds the jail and clones the command. Returns its pid, 0 without a command, or the negated exit
 * status. */
static long build_jail(struct start *start)
{
    const struct plan *plan = start->plan;
    long result = child_make_network(start);
    if (result != 0 || (result = build(start)) != 0)
        return -result;
    if (!plan->programs)
        return 0;
    result = start_session(plan->wants_pty ? plan->slots[PLAN_PTY_SLOT] : plan->pty_fd);
    if (result < 0)
        return -child_failed(start, PLAN_STEP_SESSION, result);
    return clone_command(start);
}

static const int *group_of(const struct plan *plan)
{
    return plan->cgroup_fd >= 0 ? &plan->cgroup_fd : 0;
}

static int take_ids(const struct plan *plan)
{
    if (plan->rung != PLAN_FULL && plan->drop_caps)
        child_drop_bounding_set(); /* later there is no CAP_SETPCAP for it */
    long result = SYS(setgroups, 0, 0);
    if (result == 0)
        result = SYS(setresgid, plan->host_gid, plan->host_gid, plan->host_gid);
    if (result == 0)
        result = SYS(setresuid, plan->host_uid, plan->host_uid, plan->host_uid);
    /* Changing ids made this memory (a copy of the caller's, not shared) undumpable, and /proc/self
     * owned by root; the id maps could not be written. A process that enters a jail writes no
     * maps. */
    if (result == 0 && !plan->enters)
        result = SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
    return (int)result;
}

static int first_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    clear_handlers(start);
    int result = child_has_intermediate(plan) ? 0 : child_enter_group(start);
    if (result < 0 || (result = child_join_groups(plan)) < 0)
        return child_failed(start, PLAN_STEP_CGROUP, result);
    if (plan->parent_maps && !await_go(start))
        return 125;
    if (plan->range_count > 0 && (result = take_ids(plan)) < 0)
        return child_failed(start, PLAN_STEP_IDS, result);
    if (plan->init_mode[0] == 's') /* before there can be an orphan; the exec keeps it */
        (void)SYS(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    start->umask = (unsigned)SYS(umask, 0); /* the build's modes are exact */
    long command = build_jail(start);
    return command < 0 ? (int)-command : become_init(start, command);
}

/* ---- the intermediate: takes ids or joins namespaces before the first process ---- */

static int join_namespaces(const struct plan *plan)
{
    long result = 0;
    if (plan->join_userns >= 0)
        result = SYS(setns, plan->join_userns, CLONE_NEWUSER);
    if (result >= 0 && plan->join_mntns >= 0)
        result = SYS(setns, plan->join_mntns, CLONE_NEWNS);
    if (result >= 0 && plan->join_netns >= 0)
        result = SYS(setns, plan->join_netns, CLONE_NEWNET);
    for (size_t i = 0; i < plan->join_more_count && result >= 0; i++)
        result = SYS(setns, plan->join_more[i], 0);
    return (int)result;
}

/* CLONE_PARENT: the first process becomes a child of the caller, which waits for it. */
static long clone_first(struct start *start, int (*function)(void *))
{
    unsigned long flags = first_flags(start->plan);
    return child_clone(start,
                       &(struct child_clone){
                           .flags = flags | CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD,
                           .stack = 1,
                           .pid = &start->first,
                           .function = function,
                       });
}

static int intermediate_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    clear_handlers(start);
    int result = child_enter_group(start); /* while there is permission */
    if (result < 0)
        return child_failed(start, PLAN_STEP_CGROUP, result);
    if (plan->become && (result = take_ids(plan)) < 0)
        return child_failed(start, PLAN_STEP_IDS, result);
    if ((result = plan->enters ? child_enter(start) : join_namespaces(plan)) < 0)
        return child_failed(start, PLAN_STEP_JOIN, result);
    if (plan->become_joined && (result = take_ids(plan)) < 0)
        return child_failed(start, PLAN_STEP_IDS, result);
    if (plan->only_steps)
        return build(start);
    long pid = clone_first(start, first_main);
    if (pid < 0)
        return child_failed(start, PLAN_STEP_CLONE, pid);
    child_wait_until_gone(&start->command_here);
    return child_say_fd(start->wire, WIRE_PID, (int)pid, start->pidfd) < 0 ? 125 : 0;
}

/* Returns the struct start in `memory`, above the stacks. */
static struct start *start_in(void *memory)
{
    return (struct start *)(void *)((char *)memory + (size_t)CHILD_STACKS * CHILD_STACK_BYTES);
}

/* Returns whether an intermediate can share the caller's memory. Copying it is most of what an
 * intermediate costs. Changing ids makes memory undumpable until take_ids() makes it dumpable
 * again; memory that was undumpable before must stay so. And no other process may trace one that
 * shares the caller's memory: in a joined user namespace the intermediate has capabilities, so a
 * process outside with the same ids cannot trace it, and all processes inside are brig's. After
 * taking ids in the caller's namespace it has no capabilities, so it gets a copy. */
static bool may_share_memory(const struct plan *plan)
{
    if (plan->become || plan->enters)
        return false;
    return !plan->become_joined || SYS(prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
}

int child_first(void *memory)
{
    return start_in(memory)->first;
}

static void init_start(struct start *start, const struct plan *plan, int wire, void *memory)
{
    *start =
        (struct start){.plan = plan, .wire = wire, .stack = memory, .pidfd = -1, .gate = {-1, -1}};
}

long child_start(const struct plan *plan, const int wire[2], void *memory, int *ret_pidfd)
{
    struct start *start = start_in(memory);
    init_start(start, plan, wire[1], memory);
    struct child_clone clone = {.flags = CLONE_VM | CLONE_VFORK, .cgroup = group_of(plan)};
    if (child_has_intermediate(plan)) {
        if (!may_share_memory(plan))
            clone.flags = CLONE_VFORK;
        if (plan->enters) /* the clone has the same exit signal: see attach.h */
            clone.exit_signal = SIGNAL_CHILD;
        clone.function = intermediate_main;
        return child_clone(start, &clone);
    }
    if (plan->parent_maps) /* the child waits for the caller to write its maps */
        clone.flags = 0;
    clone.flags |= first_flags(plan) | CLONE_PIDFD;
    clone.stack = 1;
    clone.function = first_main;
    long pid = child_clone(start, &clone);
    if (!plan->parent_maps)
        child_wait_until_gone(&start->command_here);
    if (pid >= 0)
        *ret_pidfd = start->pidfd;
    return pid;
}

/* ---- for a function: the same, with libc's fork in between ---- */

int child_call_outside(struct start *start)
{
    const struct plan *plan = start->plan;
    int result = child_enter_group(start); /* while there is permission */
    if (result < 0)
        return child_failed(start, PLAN_STEP_CGROUP, result);
    if (plan->become && (result = take_ids(plan)) < 0)
        return child_failed(start, PLAN_STEP_IDS, result);
    if ((result = join_namespaces(plan)) < 0)
        return child_failed(start, PLAN_STEP_JOIN, result);
    if ((result = (int)SYS(unshare, first_flags(plan))) < 0)
        return child_failed(start, PLAN_STEP_CLONE, result);
    if (!plan->parent_maps)
        return 0;
    child_say(start->wire, WIRE_GO, 0, 0);
    return await_go(start) ? 0 : 125;
}

int child_call_build(struct start *start)
{
    long result = child_join_groups(start->plan);
    if (result < 0)
        return child_failed(start, PLAN_STEP_CGROUP, result);
    start->umask = (unsigned)SYS(umask, 0);
    if ((result = child_make_network(start)) != 0 || (result = build(start)) != 0)
        return (int)result;
    if ((result = start_session(-1)) < 0)
        return child_failed(start, PLAN_STEP_SESSION, result);
    result = close_gate(start);
    return result < 0 ? child_failed(start, PLAN_STEP_COMMAND, result) : 0;
}

int child_call_init(struct start *start, long command)
{
    clear_handlers(start);
    return become_init(start, command);
}

/* ---- for a process forked by the jail's first process: src/call, src/zygote ---- */

static int forked_first_main(void *argument)
{
    struct start *start = argument;
    int status = child_call_build(start);
    if (status != 0)
        return status;
    long command = start->fork(start->fork_argument); /* returns only in the parent */
    if (command < 0)
        return child_failed(start, PLAN_STEP_COMMAND, command);
    return child_call_init(start, command);
}

static int forker_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    int result = child_enter_group(start);
    if (result < 0)
        return child_failed(start, PLAN_STEP_CGROUP, result);
    if (plan->become_joined && (result = take_ids(plan)) < 0)
        return child_failed(start, PLAN_STEP_IDS, result);
    if ((result = join_namespaces(plan)) < 0)
        return child_failed(start, PLAN_STEP_JOIN, result);
    long pid = clone_first(start, forked_first_main);
    if (pid < 0)
        return child_failed(start, PLAN_STEP_CLONE, pid);
    return child_say_fd(start->wire, WIRE_PID, (int)pid, start->pidfd) < 0 ? 125 : 0;
}

long child_fork_jail(const struct plan *plan, int wire_fd, void *memory,
                     long (*fork_function)(void *), void *argument, struct start **ret_start)
{
    struct start *start = start_in(memory);
    init_start(start, plan, wire_fd, memory);
    start->fork = fork_function;
    start->fork_argument = argument;
    *ret_start = start;
    struct child_clone clone = {.flags = CLONE_VM | CLONE_VFORK,
                                .exit_signal = SIGNAL_CHILD, /* so that the caller can ignore it */
                                .cgroup = group_of(plan),
                                .function = forker_main};
    return child_clone(start, &clone);
}
