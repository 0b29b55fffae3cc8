/* SPDX-License-Identifier: MIT */
/* Timers in the order in which they are due: a binary heap. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Part of what waits; zero-initialised it is not armed. Stays where it is while it is armed. */
struct timer {
    int64_t due_ms;
    size_t place; /* in the heap, from 1; 0: not armed */
    void (*fire)(struct timer *timer);
};

struct timer_slot {
    struct timer *timer;
};

struct timers {
    struct timer_slot *heap; /* heap[0] is the first that is due */
    size_t count, capacity;
};

void timers_done(struct timers *timers);

/* Arms it, or moves it. False if memory is short: it is then not armed. */
bool timers_arm(struct timers *timers, struct timer *timer, int64_t due_ms);
void timers_disarm(struct timers *timers, struct timer *timer);

/* Takes the first off if it is due; NULL if none is. */
struct timer *timers_take(struct timers *timers, int64_t now_ms);
/* How long until one is due, or -1 if there is none. */
int timers_wait_ms(const struct timers *timers, int64_t now_ms);
