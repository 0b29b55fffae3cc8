/* SPDX-License-Identifier: MIT */
/* What the syscall filter of a job refuses, seen by its supervisor: the filter asks instead of
 * answering, and every question is answered with the errno that it stands for. Nothing is ever
 * allowed by an answer, so it does not matter that a program can change what its arguments point to
 * meanwhile. What is allowed does not ask. Should nobody answer any more, the kernel says ENOSYS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <brig/brig.h>

#include "jail/plan/plan.h"

struct denials {
    int listener;                    /* or -1 */
    const struct sock_fprog *filter; /* whose answers are given; static */
    struct brig_denials seen;
    uint64_t asked;     /* questions, also of those who died over them */
    unsigned burst;     /* since the last pause */
    uint64_t resume_us; /* in a pause: its end; else 0 */
};

#define DENIALS_INIT                                                                               \
    {                                                                                              \
        .listener = -1                                                                             \
    }

/* Gives a plan the filter that asks, where it has one and the kernel can. */
int denials_prepare(struct denials *denials, struct plan *plan, struct brig_error *err);

/* Takes the listener, which is closed by denials_done(), and watches it. 0 or BRIG_E_SYSTEM. */
int denials_listen(struct denials *denials, int listener, int epoll, struct brig_error *err);

/* Answers one question; `events` are the epoll's. A program that goes on and on costs the supervisor
 * ever less: after so many questions the listener rests, and resume_us says until when. */
void denials_serve(struct denials *denials, int epoll, uint32_t events, uint64_t now_us);
void denials_wake(struct denials *denials, int epoll, uint64_t now_us);

/* How long the pause after a burst is when so many were asked in all; 0: none yet. */
uint64_t denials_pause_us(uint64_t total);

/* Counts one; for denials_serve() and its test. */
void denials_note(struct brig_denials *seen, int number, int sys_errno);

void denials_done(struct denials *denials);
