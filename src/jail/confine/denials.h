/* SPDX-License-Identifier: MIT */
/* Lists the calls that a job's syscall filter refuses. Where the filter would refuse, it notifies
 * the supervisor instead, which answers with the errno of the refusal. No answer ever allows a
 * call, so a program gains nothing by changing its arguments in memory meanwhile. Allowed calls
 * cause no notification. If the supervisor no longer answers, the kernel returns ENOSYS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "jail/job/result.h"
#include "jail/plan/plan.h"

struct denials {
    int listener;                    /* or -1 */
    const struct sock_fprog *filter; /* decides the answers; static */
    bool all;                        /* else only refused namespaces are noticed */
    struct brig_denials seen;        /* `traced` only if `all` */
    uint64_t asked;     /* notifications, including those of processes killed meanwhile */
    unsigned burst;     /* notifications since the last pause */
    uint64_t resume_us; /* end of the current pause; else 0 */
};

#define DENIALS_INIT                                                                               \
    {                                                                                              \
        .listener = -1                                                                             \
    }

/* Gives a plan the notifying copy of its filter, if it has a filter. Without `all` it notifies only
 * of clone and unshare with a new namespace; the filter must be one without `allow_nested`. */
int denials_prepare(struct denials *denials, struct plan *plan, bool all, struct brig_error *err);

/* Takes ownership of the listener, which denials_done() closes, and watches it. Returns 0 or
 * BRIG_E_SYSTEM. */
int denials_listen(struct denials *denials, int listener, int epoll, struct brig_error *err);

/* Answers one notification; `events` are from epoll. To bound the supervisor's load, the listener
 * pauses after a burst of notifications; resume_us says until when. */
void denials_serve(struct denials *denials, int epoll, uint32_t events, uint64_t now_us);
void denials_wake(struct denials *denials, int epoll, uint64_t now_us);

/* Returns the length of the pause after a burst, given the total of notifications; 0: no pause. */
uint64_t denials_pause_us(uint64_t total);

/* Counts one refusal; for denials_serve() and its test. */
void denials_note(struct brig_denials *seen, int number, int sys_errno);

void denials_done(struct denials *denials);
