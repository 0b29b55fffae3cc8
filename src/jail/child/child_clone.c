/* SPDX-License-Identifier: MIT */
/* Clones processes with separate stacks, waits for them, reports failures, and joins the cgroups
 * with the jail's limits and the namespaces of a running jail. */
#include <errno.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/time_types.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "jail/child/child_start.h"
#include "jail/nested_limits/nested_limits_wire.h"
#include "jail/sys.h"
#include "jail/wire.h"

/* Ends a backtrace from the child here: the frames above belong to the parent. */
#ifdef __GCC_HAVE_DWARF2_CFI_ASM
#define END_OF_STACK(address) ".cfi_remember_state\n\t.cfi_undefined " #address "\n\t"
#define GO_ON_AS_BEFORE ".cfi_restore_state\n\t"
#else
#define END_OF_STACK(address) ""
#define GO_ON_AS_BEFORE ""
#endif

/* Makes the system call `number` (clone3, or clone, the only one that uses child_tid). The child
 * has a separate stack, or starts far enough below its suspended parent's frames on this one. It
 * calls function(argument) and exits with the return value. */
#if defined(__x86_64__)
static long clone_and_call(long number, long a, long b, long c, long child_tid,
                           int (*function)(void *), void *argument)
{
    long result;
    register long tid __asm__("r10") = child_tid;
    register int (*fn)(void *) __asm__("r12") = function;
    register void *arg __asm__("r13") = argument;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t" END_OF_STACK(16) /* the return address */
                     "xor %%ebp, %%ebp\n\t"
                     "lea -256(%%rsp), %%rsp\n\t"
                     "and $-16, %%rsp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n\t"
                     "hlt\n\t" GO_ON_AS_BEFORE "1:"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(tid), "r"(fn),
                       "r"(arg), [exit] "i"(__NR_exit_group)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long clone_and_call(long number, long a, long b, long c, long child_tid,
                           int (*function)(void *), void *argument)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = child_tid;
    register int (*fn)(void *) __asm__("x20") = function;
    register void *arg __asm__("x21") = argument;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t" END_OF_STACK(30) /* the link register */
                     "mov x29, #0\n\t"
                     "sub sp, sp, #256\n\t"
                     "mov x0, x21\n\t"
                     "blr x20\n\t"
                     "mov x8, %[exit]\n\t"
                     "svc 0\n\t" GO_ON_AS_BEFORE "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(fn),
                       "r"(arg), [exit] "i"(__NR_exit_group)
                     : "memory", "cc");
    return x0;
}
#endif

long child_clone(struct start *start, const struct child_clone *clone)
{
    size_t size = CHILD_STACK_BYTES;
    char *stack = start->stack + (size_t)clone->stack * size;
    unsigned long flags = clone->flags | (clone->here ? CLONE_CHILD_CLEARTID : 0);
    struct clone_args args = {
        .flags = flags | CLONE_CLEAR_SIGHAND | (clone->cgroup ? CLONE_INTO_CGROUP : 0) |
                 (clone->pid ? CLONE_PARENT_SETTID : 0),
        .parent_tid = (uint64_t)(uintptr_t)clone->pid,
        .child_tid = (uint64_t)(uintptr_t)clone->here,
        .exit_signal = (uint64_t)clone->exit_signal,
        .pidfd = (uint64_t)(uintptr_t)&start->pidfd,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = size,
        .cgroup = clone->cgroup ? (uint64_t)*clone->cgroup : 0,
    };
    start->by_clone3 = true;
    if (clone->here)
        *clone->here = 1;
    long pid = clone_and_call(__NR_clone3, (long)&args, sizeof args, 0, 0, clone->function, start);
    if (pid == -ERR_ENOSYS || pid == -ERR_EPERM) {
        start->by_clone3 = false;
        pid = clone_and_call(__NR_clone, (long)flags | clone->exit_signal, (long)stack + (long)size,
                             (long)&start->pidfd, (long)clone->here, clone->function, start);
    }
    if (pid < 0 && clone->here)
        *clone->here = 0;
    return pid;
}

void child_wait_until_gone(const int *here)
{
    while (__atomic_load_n(here, __ATOMIC_ACQUIRE) != 0)
        (void)SYS(futex, here, 0 /* FUTEX_WAIT */, 1, 0, 0, 0);
}

#define FD_END 65536U /* without close_range(), before 5.9 */

static void close_between(unsigned first, unsigned last)
{
    if (first > last || SYS(close_range, first, last, 0) >= 0)
        return;
    for (unsigned fd = first; fd <= last && fd < FD_END; fd++)
        (void)SYS(close, fd);
}

void child_close_all_but(int first, const int *kept, size_t count)
{
    for (int at = first;;) {
        int next = -1; /* the lowest kept fd from here on */
        for (size_t i = 0; i < count; i++)
            if (kept[i] >= at && (next < 0 || kept[i] < next))
                next = kept[i];
        if (next < 0) {
            close_between((unsigned)at, ~0U);
            return;
        }
        if (next > at)
            close_between((unsigned)at, (unsigned)next - 1);
        at = next + 1;
    }
}

void child_close_on_exec(int first)
{
    if (SYS(close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) >= 0)
        return;
    for (int fd = first; fd < (int)FD_END; fd++) /* before 5.11 */
        (void)SYS(fcntl, fd, F_SETFD, FD_CLOEXEC);
}

int child_failed(const struct start *start, int step, long result)
{
    child_say(start->wire, WIRE_FAILED, step, (int)-result);
    return 125;
}

/* ---- messages ---- */

void child_say(int wire, int type, int a, int b)
{
    struct wire_message message = {.type = type, .a = a, .b = b};
    (void)SYS(write, wire, &message, sizeof message);
}

int child_say_fd(int wire, int type, int a, int fd)
{
    struct wire_message message = {.type = type, .a = a};
    struct iovec part = {.iov_base = &message, .iov_len = sizeof message};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    *(int *)(void *)CMSG_DATA(&control.header) = fd;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};
    long result = SYS(sendmsg, wire, &header, MSG_NOSIGNAL);
    return result < 0 ? (int)result : 0;
}

/* ---- groups ---- */

/* Socket constants; the system's headers for them need libc. */
enum {
    FAMILY_UNIX = 1,
    TYPE_SEQPACKET = 5,
    LEVEL_SOCKET = 1,
    OPTION_RECEIVE_TIMEOUT = 20,
    OPTION_SEND_TIMEOUT = 21,
};

bool child_is_grouped(const struct plan *plan)
{
    return plan->cgroup_fd >= 0 || plan->join_count > 0 || plan->tool_token != 0;
}

/* Nice values are inherited, as by every process; giving up a real-time policy needs no privilege. */
void child_leave_real_time(void)
{
    struct {
        int priority;
    } ordinary = {0};
    long policy = SYS(sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        (void)SYS(sched_setscheduler, 0, SCHED_NORMAL, &ordinary);
}

int child_enter_group(const struct start *start)
{
    const struct plan *plan = start->plan;
    child_leave_real_time();
    if (plan->cgroup_fd < 0 || start->by_clone3)
        return 0;
    long procs = SYS(openat, plan->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC, 0);
    long result = procs < 0 ? procs : SYS(write, procs, "0", 1);
    if (procs >= 0)
        (void)SYS(close, procs);
    return result < 0 ? (int)result : 0;
}

/* Sends the request over a socket that is connected to the surrounding jail's supervisor. */
static long ask_to_join(long fd, uint64_t token)
{
    struct nested_limits_request request = {
        .magic = NESTED_LIMITS_MAGIC, .type = NESTED_LIMITS_JOIN, .token = token};
    struct nested_limits_reply reply;
    long result = SYS(write, fd, &request, sizeof request);
    if (result == (long)sizeof request)
        result = SYS(read, fd, &reply, sizeof reply);
    if (result < 0)
        return result;
    return result == (long)sizeof reply ? -(long)reply.error : -ERR_EPROTO;
}

/* The supervisor moves the process that connects, so each process has to connect for itself. */
static long join_tool(uint64_t token)
{
    struct {
        unsigned short family;
        char path[sizeof NESTED_LIMITS_SOCKET];
    } address = {.family = FAMILY_UNIX, .path = NESTED_LIMITS_SOCKET};
    const struct __kernel_old_timeval patience = {.tv_sec = NESTED_LIMITS_PATIENCE_SECONDS};
    long fd = SYS(socket, FAMILY_UNIX, TYPE_SEQPACKET | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    (void)SYS(setsockopt, fd, LEVEL_SOCKET, OPTION_SEND_TIMEOUT, &patience, sizeof patience);
    (void)SYS(setsockopt, fd, LEVEL_SOCKET, OPTION_RECEIVE_TIMEOUT, &patience, sizeof patience);
    long result = SYS(connect, fd, &address, sizeof address);
    if (result >= 0)
        result = ask_to_join(fd, token);
    (void)SYS(close, fd);
    return result;
}

int child_join_groups(const struct plan *plan)
{
    long result = plan->tool_token != 0 ? join_tool(plan->tool_token) : 0;
    for (size_t i = 0; i < plan->join_count && result >= 0; i++)
        result = SYS(write, plan->join_fds[i], "0", 1);
    if (result >= 0 && child_is_grouped(plan) && plan->clone_flags & CLONE_NEWCGROUP)
        result = SYS(unshare, CLONE_NEWCGROUP);
    if (result == -ERR_ENOSPC && plan->tool_token != 0) /* the surrounding jail allows no more */
        result = 0;
    return result < 0 ? (int)result : 0;
}

/* ---- entering a running jail ---- */

/* From the first joined namespace on, hostile processes with the same uid can see this process, and
 * until the exec it has capabilities there and a copy of the caller's memory. So it is made
 * undumpable first, which denies them access to its memory and fds and ptrace, and it closes all
 * fds that the start and the command do not need. */

/* The fds of the plan and its namespaces, and the wire. */
#define KEPT_MAX (PLAN_FD_MAX + CGROUP_JOIN_MAX + PLAN_JOIN_MAX + 5)

struct kept {
    int fds[KEPT_MAX];
    size_t count;
};

static void keep(struct kept *kept, int fd)
{
    if (fd >= 0 && kept->count < KEPT_MAX)
        kept->fds[kept->count++] = fd;
}

static void close_others(const struct start *start)
{
    const struct plan *plan = start->plan;
    struct kept kept;
    kept.count = 0;
    keep(&kept, start->wire);
    keep(&kept, plan->init_fd);
    keep(&kept, plan->join_userns);
    keep(&kept, plan->join_mntns);
    keep(&kept, plan->join_netns);
    for (size_t i = 0; i < plan->join_more_count; i++)
        keep(&kept, plan->join_more[i]);
    for (size_t i = 0; i < plan->join_count; i++)
        keep(&kept, plan->join_fds[i]);
    for (size_t i = 0; i < plan->fd_count; i++)
        keep(&kept, plan->fds[i].fd);
    child_close_all_but(0, kept.fds, kept.count);
    /* Fds opened later must not get the numbers of the command's streams. */
    for (long fd = 0; fd >= 0 && fd <= 2;)
        fd = SYS(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
}

/* The fd of a joined namespace is not needed any more. */
static long join(int fd, int type)
{
    if (fd < 0)
        return 0;
    long result = SYS(setns, fd, type);
    (void)SYS(close, fd);
    return result;
}

int child_enter(const struct start *start)
{
    const struct plan *plan = start->plan;
    close_others(start);
    long result = SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (result >= 0)
        result = join(plan->join_userns, CLONE_NEWUSER);
    for (size_t i = 0; i < plan->join_more_count && result >= 0; i++)
        result = join(plan->join_more[i], 0);
    if (result >= 0)
        result = join(plan->join_netns, CLONE_NEWNET);
    if (result >= 0)
        result = join(plan->join_mntns, CLONE_NEWNS); /* also sets the root and working directory */
    return (int)result;
}
