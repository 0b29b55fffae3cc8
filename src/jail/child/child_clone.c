/* SPDX-License-Identifier: MIT */
/* Cloning with a stack of one's own, waiting for the other, and saying what failed. */
#include <errno.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "jail/child/child_start.h"
#include "jail/sys.h"
#include "jail/wire.h"

/* A backtrace from the child ends there: whose frames come next is another process. */
#ifdef __GCC_HAVE_DWARF2_CFI_ASM
#define END_OF_STACK(address) ".cfi_remember_state\n\t.cfi_undefined " #address "\n\t"
#define GO_ON_AS_BEFORE ".cfi_restore_state\n\t"
#else
#define END_OF_STACK(address) ""
#define GO_ON_AS_BEFORE ""
#endif

/* Makes the system call `number` (clone3, or clone, which alone looks at child_tid). In the child, which has a stack of its own or begins
 * far enough below what its suspended parent has on this one, it calls function(argument) and exits
 * with what that returns. */
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

#define FD_END 65536U /* where close_range() is missing, before 5.9 */

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
        int next = -1; /* the lowest that is kept, from there on */
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

/* ---- child say ---- */

/* What the child says on its socket. */

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
