/* SPDX-License-Identifier: MIT */
/* Cloning with a stack of one's own, waiting for the other, and saying what failed. */
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/sched.h>

#include "jail/child/child_say.h"
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

/* Makes the system call `number` (clone3 or clone). In the child, which has a stack of its own or begins
 * far enough below what its suspended parent has on this one, it calls function(argument) and exits
 * with what that returns. */
#if defined(__x86_64__)
static long clone_and_call(long number, long a, long b, long c, int (*function)(void *),
                           void *argument)
{
    long result;
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
    size_t size = start->stack ? CHILD_STACK_BYTES : 0; /* 0: it stays on ours */
    char *stack = start->stack ? start->stack + (size_t)clone->stack * size : NULL;
    unsigned long clear = start->stack ? CLONE_CLEAR_SIGHAND : 0;
    int *here = clone->here, *pidfd = clone->pidfd ? clone->pidfd : &start->pidfd;
    struct clone_args args = {
        .flags = clone->flags | clear | (here ? CLONE_CHILD_CLEARTID : 0) |
                 (clone->cgroup ? CLONE_INTO_CGROUP : 0) | (clone->pid ? CLONE_PARENT_SETTID : 0),
        .parent_tid = (uint64_t)(uintptr_t)clone->pid,
        .child_tid = (uint64_t)(uintptr_t)here,
        .exit_signal = (uint64_t)clone->exit_signal,
        .pidfd = (uint64_t)(uintptr_t)pidfd,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = size,
        .cgroup = clone->cgroup ? (uint64_t)*clone->cgroup : 0,
    };
    start->handlers_cleared = true;
    if (here)
        *here = 1;
    long pid = clone_and_call(__NR_clone3, (long)&args, sizeof args, 0, clone->function, start);
    if (pid >= 0 || start->no_fallback || (pid != -ERR_ENOSYS && pid != -ERR_EPERM)) {
        if (pid < 0 && here)
            *here = 0;
        return pid;
    }
    /* Without the word that it left, the parent waits in the old way. */
    start->handlers_cleared = false;
    unsigned long flags = clone->flags;
    if (here) {
        *here = 0;
        flags |= CLONE_VFORK;
    }
    return clone_and_call(__NR_clone, (long)flags | clone->exit_signal, (long)stack + (long)size,
                          (long)pidfd, clone->function, start);
}

void child_wait_until_gone(const int *here)
{
    while (__atomic_load_n(here, __ATOMIC_ACQUIRE) != 0)
        (void)SYS(futex, here, 0 /* FUTEX_WAIT */, 1, 0, 0, 0);
}

void child_hold(struct child_hold *hold)
{
    hold->head.list.next = &hold->entry;
    hold->entry.next = &hold->head.list;
    hold->head.futex_offset =
        (long)offsetof(struct child_hold, word) - (long)offsetof(struct child_hold, entry);
    hold->word = (int)SYS(getpid) | (int)FUTEX_WAITERS;
    hold->held = SYS(set_robust_list, &hold->head, sizeof hold->head) >= 0;
}

bool child_await_exec(const struct child_hold *hold)
{
    int now;
    while (!((now = __atomic_load_n(&hold->word, __ATOMIC_ACQUIRE)) & FUTEX_OWNER_DIED))
        (void)SYS(futex, &hold->word, 0 /* FUTEX_WAIT */, now, 0, 0, 0);
    return hold->ready;
}

enum { AWAITED = 0, DONE = 1, NEVER = 2 };

static void settle(int *state, int value)
{
    __atomic_store_n(state, value, __ATOMIC_RELEASE);
    (void)SYS(futex, state, 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
}

void child_tell(int *state)
{
    settle(state, DONE);
}

void child_tell_never(int *state)
{
    settle(state, NEVER);
}

bool child_await(const int *state)
{
    int now;
    while ((now = __atomic_load_n(state, __ATOMIC_ACQUIRE)) == AWAITED)
        (void)SYS(futex, state, 0 /* FUTEX_WAIT */, AWAITED, 0, 0, 0);
    return now == DONE;
}

void child_close_on_exec(int first)
{
    if (SYS(close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) >= 0)
        return;
    for (int fd = first; fd < 65536; fd++) /* before 5.11 */
        (void)SYS(fcntl, fd, F_SETFD, FD_CLOEXEC);
}

int child_failed(const struct start *start, int step, long result)
{
    child_say(start->wire, WIRE_FAILED, step, (int)-result);
    return 125;
}
