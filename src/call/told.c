/* SPDX-License-Identifier: MIT */
/* Words between a caller and its child. */
#include "call/told.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/sys.h"

/* The word of a failure: its step above its errno. None is 0, which is no word. */
#define PASSED (UINT64_C(1) << 62)
#define FAILED (UINT64_C(1) << 61)
#define STEP_SHIFT 16
#define ERRNO_MASK 0xffff

#define RULES_MADE 1
#define RULES_NONE 2

#define FIRST_FD 3 /* the child puts other things below */

int told_open(bool waits, struct brig_error *err)
{
    autoclose int fd = eventfd(0, EFD_CLOEXEC | (waits ? 0 : EFD_NONBLOCK));
    int high = fd >= 0 && fd < FIRST_FD ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD) : take_fd(&fd);
    return high < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make an eventfd") : high;
}

static void say(int fd, uint64_t word)
{
    (void)SYS(write, fd, &word, sizeof word);
}

void told_passed(int fd)
{
    say(fd, PASSED);
}

void told_failed(int fd, int step, int sys_errno)
{
    say(fd, FAILED | (uint64_t)(uint32_t)step << STEP_SHIFT | (uint64_t)(sys_errno & ERRNO_MASK));
}

struct told told_read(int fd)
{
    uint64_t word = 0;
    if (SYS(read, fd, &word, sizeof word) != (long)sizeof word || word & PASSED)
        return (struct told){.passed = word & PASSED};
    return (struct told){.step = (int)(uint32_t)(word >> STEP_SHIFT),
                         .sys_errno = (int)(word & ERRNO_MASK)};
}

void told_rules(int fd, bool made)
{
    say(fd, made ? RULES_MADE : RULES_NONE);
}

bool told_await_rules(int fd)
{
    uint64_t word = 0;
    while (SYS(read, fd, &word, sizeof word) == -EINTR)
        ;
    return word == RULES_MADE;
}
