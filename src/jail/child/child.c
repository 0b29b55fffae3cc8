/* SPDX-License-Identifier: MIT */
/* Executing a plan: the intermediate (root and templates only) and the jail's first process, which
 * builds the jail, clones the command and becomes init. */
#include "jail/child/child.h"

#include <asm/ioctls.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#include "jail/child/child_say.h"
#include "jail/child/child_start.h"
#include "jail/nested_limits/nested_limits_guard.h"
#include "jail/net/loopback.h"
#include "jail/plan/init_image.h"
#include "jail/sys.h"
#include "jail/wire.h"

#define ROOM_FOR_FDS 1000
#define ROOM_BESIDE_SLOTS 64 /* for what is open only for a while, and rules */
#define WAIT_ALL 0x40000000  /* __WALL */

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

/* Not a path of the policy's: it fits. */
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
    /* Before anybody can send: see tools_guard.c. Kernels before 6.16 do not know it. */
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

/* Its mount is held by the fd when the jail's are gone. */
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

/* A lease: whoever opens the file waits until it is given back, or its fd is closed. Nobody wants to be
 * told of him by a signal. Without one, before 5.3, nobody can be made to wait there. */
static bool take_lease(long fd)
{
    return SYS(fcntl, fd, F_SETLEASE, F_WRLCK) >= 0 && SYS(fcntl, fd, F_SETOWN, 0) >= 0;
}

static int open_late(const struct start *start, const struct plan_step *step)
{
    long fd = SYS(openat, start->plan->slots[step->slot], step->path,
                  O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0)
        return (int)fd;
    bool leased = step->flags & PLAN_LATE_AWAITED && take_lease(fd);
    int result = child_say_fd(start->wire, WIRE_LATE, leased, (int)fd);
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

/* The steps from `from` to before `to`. 0, or the exit status after the failure was reported. */
static int take_steps(const struct start *start, const struct plan_step *steps, size_t from,
                      size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct plan_step *step = &steps[i];
        int result = step->done ? 0 : take_step(start, step);
        if (result >= 0 || (step->if_reachable && result == -ERR_EACCES))
            continue;
        if (!step->soft)
            return child_failed(start, (int)i, result);
        child_say(start->wire, WIRE_SOFT, (int)i, -result);
    }
    return 0;
}

static int build(const struct start *start)
{
    return take_steps(start, start->plan->steps, 0, start->plan->step_count);
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

/* The init program, made here where the parent had no time for it: an fd or -errno. */
long child_open_init(const struct plan *plan)
{
    if (plan->init_fd >= 0)
        return SYS(fcntl, plan->init_fd, F_DUPFD_CLOEXEC, 16);
    long low = SYS(memfd_create, "brig-init", 1 | 0x10 /* MFD_CLOEXEC | MFD_EXEC */);
    if (low == -ERR_EINVAL) /* before 6.3 */
        low = SYS(memfd_create, "brig-init", 1);
    long fd = low < 0 ? low : SYS(fcntl, low, F_DUPFD_CLOEXEC, 16);
    if (fd < 0)
        return fd;
    long result = SYS(write, fd, init_image, init_image_size);
    if (result == (long)init_image_size) /* as init_image_open() says */
        result = SYS(fchmod, fd, 0111);
    return result < 0 ? result : fd;
}

/* Where the command's process is built beside: all steps but that one. */
static size_t steps_beside(const struct plan *plan)
{
    size_t count = plan->step_count;
    return count > 0 && plan->steps[count - 1].op == PLAN_DETACH ? count - 1 : count;
}

/* Of the host's tree, as the last thing before the exec. The kernel waits for all CPUs with it, and the
 * longer the other process has been at its restrictions, the shorter. */
static int let_go(const struct plan *plan)
{
    const struct start own = {.plan = plan, .wire = WIRE_INIT_FD};
    return take_steps(&own, plan->steps, steps_beside(plan), plan->step_count);
}

static int become_init(struct start *start, long command)
{
    const struct plan *plan = start->plan;
    char number[16];
    const char *argv[] = {
        "brig-init", put_number(number + sizeof number - 1, (unsigned)command),
        start->hold.held ? WIRE_INIT_QUIET(plan->init_mode[1] == 'a') : plan->init_mode, 0};
    const char *envp[] = {0};
    /* Out of the way of the low numbers first: init_fd may be one of 0 to 3. */
    long init = child_open_init(plan);
    long wire = SYS(fcntl, start->wire, F_DUPFD_CLOEXEC, 16);
    bool piped = command > 0 && start->gate[1] >= 0;
    long gate = piped ? SYS(fcntl, start->gate[1], F_DUPFD_CLOEXEC, 16) : -1;
    if (init < 0 || wire < 0)
        return child_failed(start, PLAN_STEP_INIT, init < 0 ? init : wire);
    (void)SYS(close_range, 0, 15, 0);
    (void)SYS(openat, AT_FDCWD, "/dev/null", O_RDWR, 0); /* the lowest free number: 0 */
    (void)SYS(dup3, 0, 1, 0);
    (void)SYS(dup3, 0, 2, 0);
    (void)SYS(dup3, wire, WIRE_INIT_FD, 0);
    if (gate >= 0)
        (void)SYS(dup3, gate, WIRE_GATE_FD, 0);
    child_close_on_exec(WIRE_GATE_FD + 1);
    int result = start->apart ? let_go(plan) : 0;
    if (result != 0)
        return result;
    keep_caps(plan);
    (void)SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (plan->rung == PLAN_FULL)
        (void)SYS(chdir, "/");
    start->hold.ready = true;
    long failed = SYS(execveat, init, "", argv, envp, AT_EMPTY_PATH);
    start->hold.ready = false;
    child_say(WIRE_INIT_FD, WIRE_FAILED, PLAN_STEP_INIT, (int)-failed);
    return 125;
}

/* What the first process is cloned with: its network it may make itself, and its view of groups
 * only once it is in them. */
static unsigned long first_flags(const struct plan *plan)
{
    unsigned long flags = plan->clone_flags;
    if (plan->two_cpus)
        flags &= ~(unsigned long)CLONE_NEWNET;
    if (child_is_grouped(plan))
        flags &= ~(unsigned long)CLONE_NEWCGROUP;
    return flags;
}

/* Of these what it is born with, if it is begun with early: to make the others takes most of a clone's
 * time, and the caller has a plan to make. */
static unsigned long birth_flags(const struct plan *plan)
{
    return first_flags(plan) & (CLONE_NEWUSER | CLONE_NEWPID);
}

static int make_other_namespaces(const struct start *start)
{
    unsigned long others = first_flags(start->plan) & ~birth_flags(start->plan);
    return start->early ? (int)SYS(unshare, others) : 0;
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
    struct action standard = {0}, now = {0};
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

/* What the command's process waits at. Where it is there early, and so in our memory until its exec,
 * that we have left it is enough: either we are init then, or there is no jail. The kernel says so a
 * moment before we have another memory, and what keeps the command from looking into it until then
 * is that it has no capabilities. Where it is held, it is the supervisor who lets it go, by a socket:
 * nobody gets a signal who writes to one that nobody reads any more. */
static long close_gate(struct start *start)
{
    if (start->plan->held) {
        long made =
            SYS(socketpair, 1 /* AF_UNIX */, 1 /* SOCK_STREAM */ | O_CLOEXEC, 0, start->gate);
        return made < 0 ? made : child_say_fd(start->wire, WIRE_GATE, 0, start->gate[1]);
    }
    if (start->early && start->plan->drop_caps)
        child_hold(&start->hold);
    return start->hold.held ? 0 : SYS(pipe2, start->gate, O_CLOEXEC);
}

/* The command's process; side by side with us if clone3 can tell when it has left, else we wait
 * for its exec. The pid, or the negated exit status after the failure was reported. */
static long clone_command(struct start *start)
{
    bool together = start->handlers_cleared;
    long command = together || start->plan->held ? close_gate(start) : 0;
    start->no_fallback = together;
    unsigned long flags = CLONE_VM | (together ? 0 : CLONE_VFORK);
    if (start->apart)
        flags |= CLONE_FILES | CLONE_PIDFD;
    if (command >= 0)
        command = child_clone(start, &(struct child_clone){
                                         .flags = flags,
                                         .exit_signal = SIGNAL_CHILD,
                                         .stack = 2,
                                         .here = together ? &start->command_here : 0,
                                         .pidfd = &start->command_pidfd,
                                         .function = child_command_main,
                                     });
    return command < 0 ? -child_failed(start, PLAN_STEP_COMMAND, command) : command;
}

/* Making a network namespace takes as long as building everything else. With two CPUs they are done
 * side by side: the command's process is cloned first and makes the network while this one builds;
 * and where there is none to make, at least it is there. They share their fds meanwhile, as restrictions
 * are made of what the build opened. Not where there is a terminal, which the command would miss,
 * being older than the session, nor where groups have to be dropped in both. */
static bool is_apart(const struct start *start)
{
    const struct plan *plan = start->plan;
    return start->early || (plan->two_cpus && plan->programs && !plan->wants_pty &&
                            plan->pty_fd < 0 && !plan->parent_maps && start->handlers_cleared);
}

int child_make_network(const struct start *start)
{
    const struct plan *plan = start->plan;
    long result = 0;
    if (plan->two_cpus && plan->clone_flags & CLONE_NEWNET)
        result = SYS(unshare, CLONE_NEWNET);
    if (result < 0)
        return child_failed(start, PLAN_STEP_CLONE, result);
    if (plan->loopback && (result = sys_loopback_up()) < 0)
        return child_failed(start, PLAN_STEP_LOOPBACK, result);
    return plan->door ? child_open_door(start) : 0;
}

/* Letting go of the old tree, the last step, is left for later. The command's process need not wait
 * for it: it looks up paths from the new root only, and will wait until we are init. */
static int build_for_two(struct start *start)
{
    const struct plan *plan = start->plan;
    int result = take_steps(start, plan->steps, start->first_count, steps_beside(plan));
    if (result == 0)
        child_tell(&start->built);
    return result;
}

static bool await_go(const struct start *start)
{
    struct wire_message message;
    return SYS(read, start->wire, &message, sizeof message) == (long)sizeof message;
}

/* What is to be mounted may have been opened after we were cloned: then it comes with the word that the
 * plan is whole, in the order of its steps, and has other numbers here. */
static bool take_mounts(const struct plan *plan, const int *fds, size_t count)
{
    size_t taken = 0;
    for (size_t i = 0; i < plan->step_count && taken < count; i++)
        if (plan->steps[i].op == PLAN_PREPARED)
            plan->steps[i].fd = fds[taken++];
    return taken == count;
}

/* Until the plan is whole. */
static bool await_plan(struct start *start)
{
    int fds[CHILD_GIVEN_MAX];
    int count = child_take(start->wire, WIRE_GO, fds);
    if (count < 0 || !take_mounts(start->plan, fds, (size_t)count))
        return false;
    child_tell(&start->planned);
    child_go_anywhere(start);
    return true;
}

/* Left to itself the kernel would often put the command's process on the CPU of the caller, whose
 * place we are to take. It is to have ours. */
static void stay_here(struct start *start)
{
    unsigned cpu = 0;
    unsigned long here[CPU_WORDS] = {0};
    if (start->cpus_size <= 0 || SYS(getcpu, &cpu, 0, 0) < 0 || cpu / 64 >= CPU_WORDS)
        return;
    here[cpu / 64] = 1UL << cpu % 64;
    (void)SYS(sched_setaffinity, 0, sizeof here, here);
}

void child_go_anywhere(const struct start *start)
{
    if (start->pinned)
        (void)SYS(sched_setaffinity, 0, start->cpus_size, start->cpus);
}

/* The kernel lets a table of fds that is shared grow only after a grace period, some milliseconds
 * later. It begins with 64; a view with many grants holds more. One of the two processes keeps the table as
 * long as it lives, so it is as large as the plan needs, if that is known. */
static void make_room_for_fds(const struct start *start)
{
    long room = start->wire + start->plan->slot_count + ROOM_BESIDE_SLOTS;
    if (start->early || room > ROOM_FOR_FDS)
        room = ROOM_FOR_FDS;
    long high = SYS(fcntl, start->wire, F_DUPFD_CLOEXEC, room - 1);
    if (high >= 0)
        (void)SYS(close, high);
}

/* What is seen of groups begins where the command is, if only that is in them. */
static unsigned long late_view(const struct plan *plan)
{
    return plan->late_groups.make ? CLONE_NEWCGROUP : 0;
}

static long build_apart(struct start *start)
{
    long result = SYS(setsid);
    if (result < 0)
        return -child_failed(start, PLAN_STEP_SESSION, result);
    if (!start->plan->few_fds)
        make_room_for_fds(start);
    if (start->early)
        stay_here(start);
    long command = clone_command(start);
    if (command < 0)
        return command;
    /* Its own doing it would wait for us, who keep the list of processes busy when we pivot. */
    if ((result = SYS(setpgid, command, command)) < 0)
        return -child_failed(start, PLAN_STEP_SESSION, result);
    child_tell(&start->begun);
    if ((result = take_steps(start, start->first_steps, 0, start->first_count)) != 0)
        return -result;
    if (start->early && !await_plan(start))
        return -125;
    if ((result = build_for_two(start)) != 0)
        return -result; /* and with this process ends the other */
    if (!child_await(&start->networked))
        return -125; /* it has said why */
    unsigned long others = start->plan->clone_flags & (CLONE_NEWNET | late_view(start->plan));
    if (others)
        result = SYS(setns, start->command_pidfd, others);
    if (result >= 0)
        child_tell(&start->joined);
    if (result >= 0)
        result = SYS(unshare, CLONE_FILES);
    return result < 0 ? -child_failed(start, PLAN_STEP_CLONE, result) : command;
}

/* One thing after the other. The command's pid, 0 for none, or the negated exit status. */
static long build_alone(struct start *start)
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

/* The first act of the first clone. A caller with a thousand jails has ten thousand fds: to copy them
 * all, and close them again at each exec, would take longer than the rest. The kernel copies only what
 * is below. */
static int leave_fds(const struct start *start)
{
    if (start->fds_below == 0)
        return 0;
    long result = SYS(close_range, start->fds_below, ~0U, CLOSE_RANGE_UNSHARE);
    if (result < 0) /* before 5.9, or filtered */
        result = SYS(unshare, CLONE_FILES);
    return (int)result;
}

/* The wire and init's program were opened after that was looked at. */
static unsigned fds_to_leave(const struct plan *plan, int wire)
{
    int below = (int)plan->fds_below;
    return wire < below && plan->init_fd < below ? plan->fds_below : 0;
}

static unsigned long sharing_flag(const struct start *start)
{
    return start->fds_below > 0 ? CLONE_FILES : 0;
}

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
     * /proc/self root's; the id maps below could not be written. Who enters a jail writes none. */
    if (result == 0 && !plan->enters)
        result = SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
    return (int)result;
}

/* Those that are late the command joins, if it is there early. */
static int join_groups(const struct start *start)
{
    const struct plan *plan = start->plan;
    if (!plan->late_groups.make)
        return child_join_groups(plan, plan->join_fds);
    return is_apart(start) ? 0 : child_join_late_groups(start);
}

static int first_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    int result = child_has_intermediate(plan) ? 0 : leave_fds(start);
    if (result < 0)
        return child_failed(start, PLAN_STEP_CLONE, result);
    if (start->early)
        (void)SYS(close, start->parent_wire);
    clear_handlers(start);
    result = child_has_intermediate(plan) ? 0 : child_enter_group(start);
    if (result < 0 || (result = join_groups(start)) < 0)
        return child_failed(start, PLAN_STEP_CGROUP, result);
    if ((result = make_other_namespaces(start)) < 0)
        return child_failed(start, PLAN_STEP_CLONE, result);
    if (plan->parent_maps && !await_go(start))
        return 125;
    if (plan->range_count > 0 && (result = take_ids(plan)) < 0)
        return child_failed(start, PLAN_STEP_IDS, result);
    if (plan->init_mode[0] == 's') /* before there can be an orphan; it stays through the exec */
        (void)SYS(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    start->umask = (unsigned)SYS(umask, 0); /* the modes of the build are meant as they stand */
    start->apart = is_apart(start);
    long command = start->apart ? build_apart(start) : build_alone(start);
    return command < 0 ? (int)-command : become_init(start, command);
}

/* ---- the intermediate: other ids, or the namespaces of a template, before our own ---- */

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

/* CLONE_PARENT: the first process is the caller's child, to be waited for and signalled. */
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
    int result = leave_fds(start);
    if (result < 0)
        return child_failed(start, PLAN_STEP_CLONE, result);
    if (plan->late_groups.make) /* or a caller that is killed would be waited for */
        (void)SYS(close, start->parent_wire);
    clear_handlers(start);
    if ((result = child_enter_group(start)) < 0) /* while we may */
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

/* What a start is kept in, above the stacks. */
static struct start *start_in(void *memory)
{
    return (struct start *)(void *)((char *)memory + (size_t)CHILD_STACKS * CHILD_STACK_BYTES);
}

/* The first process of a jail that is begun with early. */
static long clone_early(struct start *start, unsigned long flags, const int *cgroup)
{
    return child_clone(start,
                       &(struct child_clone){
                           .flags = birth_flags(start->plan) | flags | CLONE_VM | CLONE_PIDFD,
                           .stack = 1,
                           .here = &start->first_here,
                           .cgroup = cgroup,
                           .function = first_main,
                       });
}

/* Joins what was made ahead for the first process, as a pid namespace belongs to the user namespace of who
 * clones it. Its fds are the caller's, who is to have the pidfd. */
static int joiner_main(void *argument)
{
    struct start *start = argument;
    int result = child_enter_group(start); /* while we may */
    if (result < 0)
        return child_failed(start, PLAN_STEP_CGROUP, result);
    if ((result = join_namespaces(start->plan)) < 0)
        return child_failed(start, PLAN_STEP_JOIN, result);
    stay_here(start); /* the caller goes on where it is */
    long first = clone_early(start, CLONE_PARENT, 0);
    start->first = (int)first;
    return first < 0 ? child_failed(start, PLAN_STEP_CLONE, first) : 0;
}

static long begin_given(struct start *start)
{
    long joiner = child_clone(start, &(struct child_clone){.flags = CLONE_VM | CLONE_FILES,
                                                           .here = &start->joiner_here,
                                                           .cgroup = group_of(start->plan),
                                                           .function = joiner_main});
    start->joiner = joiner < 0 ? 0 : (int)joiner;
    return joiner < 0 ? joiner : 0;
}

long child_settle(void *memory, int *ret_pidfd)
{
    struct start *start = start_in(memory);
    child_wait_until_gone(&start->joiner_here);
    if (start->joiner > 0)
        (void)SYS(wait4, start->joiner, 0, WAIT_ALL, 0);
    start->joiner = 0;
    if (start->first <= 0)
        return -ERR_EPERM; /* it has said why */
    *ret_pidfd = start->pidfd;
    return start->first;
}

/* Whether an intermediate can have the caller's memory and not a copy, which is most of what it costs.
 * Taking ids makes a memory undumpable, until take_ids() has made it dumpable again; one that was not must
 * stay so. And who has the caller's memory must be nobody's to trace: in a user namespace that was
 * joined it has capabilities, so that no process outside with the same ids can; there are none inside
 * but ours. Ids taken in our own namespace leave it without. */
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

static struct start *new_start(const struct plan *plan, const int wire[2], void *memory)
{
    struct start *start = start_in(memory);
    *start = (struct start){.plan = plan,
                            .parent_wire = wire[0],
                            .wire = wire[1],
                            .stack = memory,
                            .pidfd = -1,
                            .command_pidfd = -1,
                            .gate = {-1, -1},
                            .fds_below = fds_to_leave(plan, wire[0] > wire[1] ? wire[0] : wire[1])};
    return start;
}

long child_start(const struct plan *plan, const int wire[2], void *memory, int *ret_pidfd)
{
    struct start *start = new_start(plan, wire, memory);
    struct child_clone clone = {.flags = CLONE_VM | CLONE_VFORK, .cgroup = group_of(plan)};
    if (child_has_intermediate(plan)) {
        if (!may_share_memory(plan)) /* with a copy, it need not be waited for */
            clone.flags = plan->late_groups.make ? 0 : CLONE_VFORK;
        if (plan->enters) /* what it clones ends like it: see job_enter() */
            clone.exit_signal = SIGNAL_CHILD;
        clone.flags |= sharing_flag(start);
        clone.function = intermediate_main;
        return child_clone(start, &clone);
    }
    if (plan->parent_maps) /* it must wait for us, so we cannot wait for it */
        clone.flags = 0;
    clone.flags |= first_flags(plan) | CLONE_PIDFD | sharing_flag(start);
    clone.stack = 1;
    clone.function = first_main;
    long pid = child_clone(start, &clone);
    if (!plan->parent_maps)
        child_wait_until_gone(&start->command_here);
    if (pid >= 0)
        *ret_pidfd = start->pidfd;
    return pid;
}

long child_begin(const struct plan *plan, const int wire[2], void *memory, int *ret_pidfd)
{
    struct start *start = new_start(plan, wire, memory);
    start->early = start->no_fallback = true;
    start->first_steps = plan->steps;
    start->first_count = plan->first_steps;
    /* Whether it binds itself or child_go_on() does, these it may run on afterwards. */
    start->cpus_size = SYS(sched_getaffinity, 0, sizeof start->cpus, start->cpus);
    start->pinned = start->cpus_size > 0;
    if (plan->given)
        return begin_given(start);
    long pid = clone_early(start, sharing_flag(start), group_of(plan));
    start->first = (int)pid;
    if (pid >= 0)
        *ret_pidfd = start->pidfd;
    return pid;
}

/* Until the command's process is cloned, or never will be: the first would be moved to another CPU
 * before, and the command's with it. Its end is not told, but seen. */
static void await_begun(const struct start *start)
{
    const struct __kernel_timespec patience = {.tv_nsec = 2000000};
    while (__atomic_load_n(&start->begun, __ATOMIC_ACQUIRE) == 0 &&
           __atomic_load_n(&start->first_here, __ATOMIC_ACQUIRE) != 0)
        (void)SYS(futex, &start->begun, 0 /* FUTEX_WAIT */, 0, &patience, 0, 0);
}

bool child_go_on(void *memory, int wire_fd, const int *fds, size_t count)
{
    struct start *start = start_in(memory);
    await_begun(start);
    /* Left to itself the kernel would wake it on the CPU where it cloned who makes the network now,
     * to wait for the end of that. Ours is about to be free. Where there is no network to be made, it is
     * busy where it is, and to be moved takes longer. */
    unsigned cpu = 0;
    unsigned long here[CPU_WORDS] = {0};
    if (!start->plan->given && SYS(getcpu, &cpu, 0, 0) >= 0 && cpu / 64 < CPU_WORDS) {
        here[cpu / 64] = 1UL << cpu % 64;
        (void)SYS(sched_setaffinity, start->first, sizeof here, here);
    }
    if (count == 0)
        child_say(wire_fd, WIRE_GO, 0, 0);
    else if (child_give(wire_fd, WIRE_GO, fds, count) < 0)
        (void)SYS(kill, start->first, SIGNAL_KILL); /* it would wait for ever */
    /* The command's leaves last, if it is there. To be woken before would hold up the first. */
    child_wait_until_gone(&start->command_here);
    child_wait_until_gone(&start->first_here);
    child_wait_until_gone(&start->command_here);
    return start->hold.held && start->hold.ready;
}

/* ---- for a function: the same with forks of libc's in between ---- */

int child_call_outside(struct start *start)
{
    const struct plan *plan = start->plan;
    int result = child_enter_group(start); /* while we may */
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
    long result = child_join_groups(start->plan, start->plan->join_fds);
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

/* ---- for a process that is forked in the jail's first one: src/call, and src/zygote ---- */

static int forked_first_main(void *argument)
{
    struct start *start = argument;
    int status = child_call_build(start);
    if (status != 0)
        return status;
    long command = start->fork(start->fork_argument); /* only here does it return */
    if (command < 0)
        return child_failed(start, PLAN_STEP_COMMAND, command);
    return child_call_init(start, command);
}

static int forker_main(void *argument)
{
    struct start *start = argument;
    const struct plan *plan = start->plan;
    if (!start->stack) /* the caller's end must not outlive it */
        (void)SYS(close, start->parent_wire);
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

/* Not in a group: who runs out of its memory is killed, and with it whoever has the same memory. */
bool child_can_fork_call(const struct plan *plan)
{
    return plan->join_userns >= 0 && !plan->become && !plan->become_joined && !plan->parent_maps &&
           !child_is_grouped(plan);
}

long child_fork_call(struct start *start)
{
    return child_clone(
        start, &(struct child_clone){.flags = CLONE_VM | CLONE_VFORK, .function = forker_main});
}

long child_fork_jail(const struct plan *plan, int wire_fd, void *memory,
                     long (*fork_function)(void *), void *argument, struct start **ret_start)
{
    struct start *start = start_in(memory);
    *start = (struct start){.plan = plan,
                            .wire = wire_fd,
                            .stack = memory,
                            .pidfd = -1,
                            .command_pidfd = -1,
                            .gate = {-1, -1},
                            .fork = fork_function,
                            .fork_argument = argument};
    *ret_start = start;
    struct child_clone clone = {.flags = CLONE_VM | CLONE_VFORK,
                                .exit_signal = SIGNAL_CHILD, /* so that it can be ignored */
                                .cgroup = group_of(plan),
                                .function = forker_main};
    return child_clone(start, &clone);
}
