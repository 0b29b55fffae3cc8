/* SPDX-License-Identifier: MIT */
/* The broker's event loop: descriptors, timers, deferred work, and memory that is freed only when
 * no event of the current round can refer to it any more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct brig_error;

/* The struct whose member `member` is *pointer. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Embedded in the owner of the descriptor. After loop_forget() `ready` is not called. */
struct watch {
    int fd; /* -1: none */
    void (*ready)(struct watch *watch, uint32_t events);
};

/* The first member of structs that are in a list, or freed by loop_free_later(), or both in this
 * order. */
struct node {
    struct node *next;
    struct node **self; /* the pointer that points to this node; NULL: in no list */
};

/* Embedded in its owner, which must not move while it is armed. Zero-initialised it is not
 * armed. */
struct timer {
    struct node node; /* must be first; in the loop's list while it is armed */
    int64_t due_ms;
    void (*fire)(struct timer *timer);
};

/* Work for the next round, after the other connections were served. */
struct task {
    struct task *next;
    bool queued;
    void (*run)(struct task *task);
};

struct loop {
    int epoll;
    int64_t now_ms;      /* CLOCK_MONOTONIC, read once per round */
    struct node *timers; /* the armed timers, in any order */
    struct task *first_task, **last_task;
    struct node *garbage;
    bool stop; /* set to end the loop */
};

int loop_init(struct loop *loop, struct brig_error *err);
void loop_done(struct loop *loop);

/* Starts watching. False with errno if the kernel refuses or memory is short. */
bool loop_watch(struct loop *loop, struct watch *watch, uint32_t events);
void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events);
/* Stops watching and returns the descriptor, which stays open; watch->fd is then -1. */
int loop_forget(struct loop *loop, struct watch *watch);
/* Stops watching and closes the descriptor. */
void loop_close(struct loop *loop, struct watch *watch);

/* Arms or rearms the timer. */
void loop_arm(struct loop *loop, struct timer *timer, uint64_t delay_ms);
void loop_disarm(struct timer *timer);
/* Removes and returns a timer that is due at loop->now_ms, else NULL. */
struct timer *loop_take_timer(struct loop *loop);
/* Milliseconds until the first timer is due, or -1 if there is none. */
int loop_wait_ms(const struct loop *loop, int64_t now_ms);

void loop_queue(struct loop *loop, struct task *task);
void loop_unqueue(struct loop *loop, struct task *task);

void node_add(struct node **list, struct node *node);
/* Does nothing if the node is in no list. */
void node_remove(struct node *node);
/* Removes the node from its list and calls free() on it at the end of the round. */
void loop_free_later(struct loop *loop, struct node *node);

/* Runs one round; waits if there is nothing to do. */
void loop_round(struct loop *loop);
/* Runs until loop->stop. */
void loop_run(struct loop *loop);
