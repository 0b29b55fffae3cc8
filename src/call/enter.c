/* SPDX-License-Identifier: MIT */
/* Theory of operation: the child, from its fork to the function.
 *
 * The child is a copy of the caller made by libc's fork(), so it may use libc. Without namespaces
 * it leads a new process group, by which everything it starts is killed; the filter keeps processes
 * in the group. After a fork each page that is written is copied, and each library page that was
 * not used yet faults, at 1 to 2 us each. So this file makes system calls directly and writes as
 * little memory as possible.
 *
 * In the full jail there are three processes. The first, forked by the caller or an interpreter,
 * makes the namespaces. Its vfork() child builds the jail and becomes init. A fork of that process
 * runs the function. The function starts only when all restrictions are in force, and the child
 * keeps only the fds that the caller asked to keep. */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "call/call.h"
#include "jail/child/child_start.h"
#include "jail/sys.h"

/* glibc registers rseq with this size since 2.35. */
#if defined(__GLIBC__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAS_SEQUENCES
#define SEQUENCES_BYTES 32
#endif

#define FIRST_FD 3

/* Ends a child that could not be confined; records the failed step in its status slot. */
__attribute__((noreturn)) static void enter_failed(struct brig_call *call, int step, int error)
{
    call->slot->step = step;
    call->slot->sys_errno = error < 0 ? -error : error;
    _exit(125);
}

/* ---- descriptors ---- */

/* Closes all fds except the kept ones and the shared file. */
static void close_others(struct brig_call *call)
{
    int keep[BRIG_CALL_KEEP_MAX + 1];
    size_t count = 0;
    for (size_t i = 0; i < call->keep_count; i++)
        keep[count++] = call->keep_fds[i];
    keep[count++] = call->memory;
    child_close_all_but(FIRST_FD, keep, count);
}

/* Fds 0 to 2 are always open, so that no other file gets these numbers; also in a program that the
 * function executes. */
static void set_streams(struct brig_call *call)
{
    for (int i = 0; i < 3; i++)
        if (call->stdio_child[i] >= 0)
            (void)SYS(dup3, call->stdio_child[i], i, 0);
        else
            (void)SYS(fcntl, i, F_SETFD, 0);
}

static int guard_terminal(const struct brig_call *call)
{
    bool unfiltered = call->caller->policy->disabled_layers & BRIG_LAYER_SECCOMP;
    return call->has_terminal && !unfiltered ? terminal_guard() : 0;
}

/* ---- limit of address space ---- */

static uint64_t first_number(const char *text, long length)
{
    uint64_t number = 0;
    for (long i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(text[i] - '0');
    return number;
}

/* Returns the bytes of address space that this process has mapped; 0 where /proc cannot be read. */
static uint64_t mapped_bytes(struct brig_call *call)
{
    char text[64]; /* numbers of pages, the first of which counts all that are mapped */
    long fd = SYS(openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
    if (fd == -ENOENT || fd == -EACCES)
        return 0;
    if (fd < 0)
        enter_failed(call, PLAN_STEP_RLIMIT, (int)fd);
    long length = SYS(read, fd, text, sizeof text);
    (void)SYS(close, fd);
    return first_number(text, length) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The limit is for what the function maps itself: a program may have mapped more than that before, as
 * glibc reserves 64 MB for each thread that allocates memory. Changes the child's copy of the plan. */
static void raise_address_space(struct brig_call *call)
{
    struct plan *plan = call->own ? call->own : &call->caller->plan;
    for (size_t i = 0; i < plan->rlimit_count; i++)
        if (plan->rlimits[i].resource == RLIMIT_AS) {
            uint64_t mapped = mapped_bytes(call);
            plan->rlimits[i].limit.rlim_cur += mapped;
            plan->rlimits[i].limit.rlim_max += mapped;
        }
}

/* ---- without namespaces ---- */

static void join_group(struct brig_call *call)
{
    const struct plan *plan = call_plan(call);
    struct start start = {.plan = plan, .wire = -1};
    int result = child_enter_group(&start);
    if (result >= 0)
        result = child_join_groups(plan);
    if (result < 0)
        enter_failed(call, PLAN_STEP_CGROUP, result);
}

/* Not inlined: the copy of the plan takes a page of stack, which would be copied in every call. */
static __attribute__((noinline)) int apply_traced(struct brig_call *call, int *ret_error)
{
    struct plan unfiltered = *call_plan(call);
    unfiltered.seccomp = NULL;
    int step = confine_apply(&unfiltered, call->caller->ruleset, ret_error);
    if (step == 0 && (*ret_error = trace_install(call)) < 0)
        step = PLAN_STEP_SECCOMP;
    return step;
}

static void enter_alone(struct brig_call *call, unsigned flags)
{
    const struct plan *plan = call_plan(call);
    /* setsid() is slower, because the kernel makes an autogroup for each session. It is needed only
     * to detach from the caller's terminal, and under Landlock the terminal cannot be opened. */
    long begun = call->caller->ruleset < 0 ? SYS(setsid) : SYS(setpgid, 0, 0);
    if (begun < 0)
        enter_failed(call, PLAN_STEP_SESSION, (int)begun);
    if (!(flags & BRIG_CALL_OUTLIVE))
        (void)SYS(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (SYS(getppid) != call->parent)
        _exit(125); /* the caller is dead */
    child_leave_real_time();
    if (child_is_grouped(plan))
        join_group(call);
    set_streams(call);
    int error = guard_terminal(call);
    if (error < 0)
        enter_failed(call, PLAN_STEP_SECCOMP, error);
    int step = call->traced ? apply_traced(call, &error)
                            : confine_apply(plan, call->caller->ruleset, &error);
    if (step != 0)
        enter_failed(call, step, error);
}

/* ---- the full jail ---- */

/* Waits for the jail's init to exit, then exits. Init itself reports over the wire. */
static __attribute__((noreturn)) void wait_outside(const struct brig_call *call, pid_t first)
{
    int pidfd = (int)SYS(pidfd_open, first, 0);
    if (pidfd >= 0)
        (void)child_say_fd(call->wire_child, WIRE_PID, first, pidfd);
    child_close_all_but(0, NULL, 0);
    (void)process_wait(first);
    _exit(0);
}

#ifdef HAS_SEQUENCES
static char *thread_pointer(void)
{
#ifdef __x86_64__
    char *pointer; /* not all compilers have __builtin_thread_pointer() on x86-64 */
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return __builtin_thread_pointer();
#endif
}
#endif

/* The kernel unregisters rseq in a child that shares memory, and its forks inherit that. libc's
 * rseq area in the copied memory still looks registered, so register it again. */
static void renew_sequences(void)
{
#ifdef HAS_SEQUENCES
    char *area = thread_pointer() + __rseq_offset;
    if (__rseq_size > 0)
        (void)SYS(rseq, area, SEQUENCES_BYTES, 0, RSEQ_SIG);
#endif
}

/* Runs in the function's process. */
static void enter_confine(struct brig_call *call, const struct start *start)
{
    renew_sequences();
    set_streams(call);
    int status = guard_terminal(call);
    if (status < 0)
        _exit(child_failed(start, PLAN_STEP_SECCOMP, status));
    if ((status = child_call_confine(start)) != 0 || (status = child_call_wait(start)) != 0)
        _exit(status);
    if (call->traced && (status = trace_install(call)) < 0)
        _exit(child_failed(start, PLAN_STEP_SECCOMP, status));
}

static void enter_full(struct brig_call *call)
{
    struct start start = {.plan = call_plan(call), .wire = call->wire_child, .pidfd = -1};
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    if (getppid() != call->parent)
        _exit(125);
    (void)close(call->wire); /* close the caller's end, so that init sees when the caller dies */
    int status = child_call_outside(&start);
    if (status != 0)
        _exit(status);
    /* vfork() shares memory and suspends this process until the child becomes init: copying the
     * page tables of a large caller takes longer than building the jail. */
    pid_t first = vfork();
    if (first < 0)
        _exit(child_failed(&start, PLAN_STEP_CLONE, -errno));
    if (first > 0)
        wait_outside(call, first);
    /* The parent is suspended and its memory is already a copy of the caller's, so the child may
     * call any function. Its pid is not known to the caller yet, so it must die with its parent. */
    (void)SYS(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* NOLINT(clang-analyzer-unix.Vfork) */
    if ((status = child_call_build(&start)) != 0)
        _exit(status);
    pid_t function = fork();
    if (function < 0)
        _exit(child_failed(&start, PLAN_STEP_COMMAND, -errno));
    if (function > 0)
        _exit(child_call_init(&start, function));
    enter_confine(call, &start);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---- both ---- */

/* If the function calls exit(), this handler runs first and ends the process, so that the exit
 * handlers of the caller never run in the child. */
#ifdef __GLIBC__
/* A process whose allocator has just failed cannot map this much. */
#define SHORT_OF_MEMORY_BYTES (1 << 20)

/* Returns whether a memory limit is reached. The mapping is writable because RLIMIT_DATA, which is
 * used where there is no cgroup, counts private writable mappings only. */
static bool is_out_of_memory(void)
{
    void *room = mmap(NULL, SHORT_OF_MEMORY_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return errno == ENOMEM;
    (void)munmap(room, SHORT_OF_MEMORY_BYTES);
    return false;
}

/* Ruby exits with status 1 if it has no memory for an exception, so a failure without memory is
 * reported as such. */
static void leave_early(int status, void *argument)
{
    const struct brig_call_child *child = argument;
    (void)fflush(stdout);
    (void)fflush(stderr);
    if (status == 0 || !is_out_of_memory())
        _exit(status);
    child->head->state = MEMORY_NO_ROOM;
    child->head->left = 1;
    _exit(0);
}
#else
static void leave_early(void)
{
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(1); /* atexit() handlers do not get the exit status */
}
#endif

static void set_stdio(struct brig_call *call)
{
    if (__fpending(stdout) > 0) /* the caller's buffered output is written by the caller */
        __fpurge(stdout);
    if (__fpending(stderr) > 0)
        __fpurge(stderr);
#ifdef __GLIBC__
    (void)on_exit(leave_early, &call->child);
#else
    (void)call;
    (void)atexit(leave_early);
#endif
}

static void open_memory(struct brig_call *call)
{
    void *head = NULL;
    int result = memory_map(call->memory, MEMORY_SMALL_BYTES, &head);
    if (result < 0)
        enter_failed(call, PLAN_STEP_FDS, result);
    call->child = (struct brig_call_child){.head = head,
                                           .small = (char *)head + MEMORY_HEAD_BYTES,
                                           .fd = call->memory,
                                           .limit = call->caller->value_limit};
}

/* The caller's mapping is not inherited (MADV_DONTFORK). This mapping lasts until the function
 * runs. */
static struct child_status *open_status(struct brig_call *call)
{
    struct child_status *all = child_status_map(&call->caller->statuses);
    if (!all)
        _exit(125); /* the reason cannot be reported */
    call->slot = all + (call->slot - call->caller->statuses.slots);
    if (!child_status_enter(call->slot, call->turn, (pid_t)SYS(getpid)))
        _exit(125); /* the caller has freed the call */
    return all;
}

/* Called when all restrictions are in force. */
static void pass(struct brig_call *call, struct child_status *all)
{
    if (!child_status_pass(call->slot, call->turn))
        _exit(125); /* the caller has freed the call */
    (void)SYS(munmap, all, CHILD_STATUS_BYTES);
    close_others(call);
}

struct brig_call_child *brig_call_enter(struct brig_call *call, unsigned flags)
{
    struct child_status *all = open_status(call);
    open_memory(call); /* before the address space is limited */
    set_stdio(call);
    raise_address_space(call);
    if (call->caller->full)
        enter_full(call);
    else
        enter_alone(call, flags);
    pass(call, all);
    return &call->child;
}

/* ---- terminal ---- */

/* A function that may print to the caller's terminal may do nothing else to it: ioctls on the fd
 * can stop its output, change its modes, or put the caller in the background. A second filter,
 * besides the profile's, refuses them. It is installed only if one of the streams is a terminal. */

/* All terminal ioctls have 'T' in the second byte of their number. */
#define LETTER_MASK 0xff00U
#define LETTER 0x5400U
#define TCGETS2_REQUEST 0x802c542aU /* struct termios2 is not in libc */
/* Allows requests that only read, or that concern the fd and not the terminal. Checks only the low
 * 32 bits of the request, as the kernel does. */
static const struct sock_filter guard[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETS, 14, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETA, 13, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCGETS2_REQUEST, 12, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGPGRP, 11, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGSID, 10, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCOUTQ, 9, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGWINSZ, 8, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONREAD, 7, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONBIO, 6, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIOCLEX, 5, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONCLEX, 4, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIOASYNC, 3, 0),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, LETTER_MASK),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LETTER, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int terminal_guard(void)
{
    const struct sock_fprog program = {.len = ARRAY_LENGTH(guard),
                                       .filter = (struct sock_filter *)(uintptr_t)guard};
    long result = SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)(result < 0 ? result : SYS(seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}
