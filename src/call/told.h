/* SPDX-License-Identifier: MIT */
/* Theory of operation: words between a caller and the child that it has forked itself.
 *
 * Where we are who forks, no exception of an interpreter can come between, so that nobody comes late, and
 * a gate (gate.h) is more than is needed: an eventfd does. No other fork's function can write to it:
 * all fds are closed before one runs. To map a file and unmap it again would cost more than to make, write
 * and read one. */
#pragma once

#include <stdbool.h>

struct brig_error;

/* How far a child came. */
struct told {
    bool passed; /* it was confined: what came after is the function's doing */
    int step;    /* what failed, as plan_explain_failure() has it, */
    int sys_errno;
};

/* An fd for one word, which is neither 0, 1 nor 2; `waits`: until there is one. */
int told_open(bool waits, struct brig_error *err);

/* In the child. */
void told_passed(int fd);
void told_failed(int fd, int step, int sys_errno);
/* In the caller, when the child is dead. */
struct told told_read(int fd);

/* The other way round: whether the rules of a call without a caller object are made. */
void told_rules(int fd, bool made);
bool told_await_rules(int fd);
