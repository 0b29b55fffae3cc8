/* SPDX-License-Identifier: MIT */
/* Lists the calls that a job's syscall filter refuses. */
#include "jail/confine/denials.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/confine/seccomp.h"
#include "jail/job/result.h"

/* A notification costs the supervisor some 15 µs, which no limit of the jail counts. */
#define BURST_QUESTIONS 32
static const struct {
    uint64_t above; /* this many notifications */
    uint64_t pause_us;
} pauses[] = {
    {100000, 250000}, /* 128 per second: a negligible load */
    {10000, 50000},
    {1000, 10000},
};

uint64_t denials_pause_us(uint64_t total)
{
    for (size_t i = 0; i < ARRAY_LENGTH(pauses); i++)
        if (total > pauses[i].above)
            return pauses[i].pause_us;
    return 0;
}

/* Not told: requests of ioctl and prctl that a file or the kernel does not know (ENOTTY, EINVAL).
 * Every interpreter tries some at its start. */
static bool is_told(uint32_t action)
{
    static const int told[] = {EPERM, EACCES, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT};
    for (size_t i = 0; i < ARRAY_LENGTH(told); i++)
        if (action == (SECCOMP_RET_ERRNO | (uint32_t)told[i]))
            return true;
    return false;
}

/* libc and every runtime fall back to clone and openat, each time. */
static bool has_fallback(int number)
{
    return number == seccomp_number("clone3") || number == seccomp_number("openat2");
}

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* Goes before the filter: asks about clone and unshare with a new namespace, which every filter
 * without `allow_nested` refuses. Both have the flags in the first argument. */
#define BEFORE_COUNT 6
static void put_before(struct sock_filter before[BEFORE_COUNT])
{
    const uint32_t flags = offsetof(struct seccomp_data, args); /* the low half: little endian */
    const struct sock_filter instructions[BEFORE_COUNT] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)seccomp_number("clone"), 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)seccomp_number("unshare"), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    };
    memcpy(before, instructions, sizeof instructions);
}

int denials_prepare(struct denials *denials, struct plan *plan, bool all, struct brig_error *err)
{
    const struct sock_fprog *filter = plan->seccomp;
    plan->seccomp_told = NULL;
    denials->all = plan->tells_all = all;
    if (!filter)
        return 0;
    size_t first = all ? 0 : BEFORE_COUNT;
    struct sock_fprog *told = arena_alloc(&plan->arena, sizeof *told);
    struct sock_filter *instructions =
        arena_alloc(&plan->arena, (first + filter->len) * sizeof *instructions);
    if (!told || !instructions)
        return brig_fail_nomem(err);
    memcpy(instructions + first, filter->filter, filter->len * sizeof *instructions);
    if (!all)
        put_before(instructions);
    for (size_t i = 0; all && i < filter->len; i++)
        if (instructions[i].code == (BPF_RET | BPF_K) && is_told(instructions[i].k))
            instructions[i].k = SECCOMP_RET_USER_NOTIF;
    *told =
        (struct sock_fprog){.len = (unsigned short)(first + filter->len), .filter = instructions};
    plan->seccomp_told = told;
    denials->filter = filter;
    return 0;
}

int denials_listen(struct denials *denials, int listener, int epoll, struct brig_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    denials->listener = listener;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
        (void)brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the syscall filter");
        denials_done(denials); /* without a listener the kernel refuses the calls itself */
        return BRIG_E_SYSTEM;
    }
    denials->seen.traced = denials->all;
    return 0;
}

void denials_note(struct brig_denials *seen, int number, int sys_errno)
{
    struct brig_denial denial = {.sys_errno = sys_errno, .count = 1};
    const char *name = seccomp_name(number);
    if (name)
        (void)snprintf(denial.name, sizeof denial.name, "%s", name);
    else
        (void)snprintf(denial.name, sizeof denial.name, "syscall %d", number);
    seen->total++;
    for (size_t i = 0; i < seen->count; i++)
        if (seen->items[i].sys_errno == sys_errno &&
            strcmp(seen->items[i].name, denial.name) == 0) {
            seen->items[i].count++;
            return;
        }
    if (seen->count < BRIG_DENIALS_MAX)
        seen->items[seen->count++] = denial;
}

static void watch_for(const struct denials *denials, int epoll, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = denials->listener};
    (void)epoll_ctl(epoll, EPOLL_CTL_MOD, denials->listener, &event);
}

void denials_serve(struct denials *denials, int epoll, uint32_t events, uint64_t now_us)
{
    int number = 0;
    if (!(events & EPOLLIN)) { /* no process with the filter is left */
        (void)epoll_ctl(epoll, EPOLL_CTL_DEL, denials->listener, NULL);
        denials_done(denials);
        return;
    }
    int answered = notice_answer(denials->listener, denials->filter, &number);
    if (answered > 0 && !has_fallback(number))
        denials_note(&denials->seen, number, answered);
    uint64_t pause_us = denials_pause_us(++denials->asked);
    if (pause_us == 0 || ++denials->burst < BURST_QUESTIONS)
        return;
    denials->burst = 0;
    denials->resume_us = now_us + pause_us;
    watch_for(denials, epoll, 0);
}

void denials_wake(struct denials *denials, int epoll, uint64_t now_us)
{
    if (now_us < denials->resume_us)
        return;
    denials->resume_us = 0;
    watch_for(denials, epoll, EPOLLIN);
}

void denials_done(struct denials *denials)
{
    denials->resume_us = 0;
    if (denials->listener >= 0)
        (void)close(take_fd(&denials->listener));
}
