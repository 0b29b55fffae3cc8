/* SPDX-License-Identifier: MIT */
/* The broker's event loop: descriptors, timers, work that is put off, and memory that is not given
 * back before nobody can be told of it any more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "net/broker_timers.h"

struct brig_error;

/* Part of what owns the descriptor. After loop_forget() it is told of nothing more. */
struct watch {
    int fd;
    void (*ready)(struct watch *watch, uint32_t events);
};

/* Something to be done in the next round: when others had their turn. */
struct task {
    struct task *next;
    bool queued;
    void (*run)(struct task *task);
};

/* First member of what is freed by loop_free_later(). */
struct garbage {
    struct garbage *next;
};

struct loop {
    int epoll;
    int64_t now_ms; /* CLOCK_MONOTONIC, once a round */
    struct timers timers;
    struct task *first_task, **last_task;
    struct garbage *garbage;
    bool stop; /* set by whoever wants the loop to end */
};

int loop_init(struct loop *loop, struct brig_error *err);
void loop_done(struct loop *loop);

/* False if the kernel cannot or memory is short; errno is set. */
bool loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events);
/* Does not close it. */
void loop_forget(struct loop *loop, struct watch *watch);
/* Forgets and closes it. */
void loop_close(struct loop *loop, struct watch *watch);

/* If memory is short for even that, the loop ends, and the broker with it. */
void loop_arm(struct loop *loop, struct timer *timer, int64_t delay_ms);
void loop_disarm(struct loop *loop, struct timer *timer);

void loop_queue(struct loop *loop, struct task *task);
void loop_unqueue(struct loop *loop, struct task *task);

/* free()s it at the end of the round, as events that name it may be waiting in this one. */
void loop_free_later(struct loop *loop, struct garbage *garbage);

/* Until loop->stop. */
void loop_run(struct loop *loop);
/* One round; waits if there is nothing to do. */
void loop_round(struct loop *loop);
