/* SPDX-License-Identifier: MIT */
/* The broker's event loop. */
#include "net/broker_loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define EVENTS_MAX 256

int loop_init(struct loop *loop, struct brig_error *err)
{
    *loop = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC), .now_ms = (int64_t)clock_now_ms()};
    loop->last_task = &loop->first_task;
    if (loop->epoll < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make an epoll descriptor");
    return 0;
}

static void collect(struct loop *loop)
{
    while (loop->garbage) {
        struct node *node = loop->garbage;
        loop->garbage = node->next;
        free(node);
    }
}

void loop_done(struct loop *loop)
{
    collect(loop);
    if (loop->epoll >= 0)
        (void)close(loop->epoll);
    loop->epoll = -1;
}

/* ---- Descriptors ---- */

bool loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, watch->fd, &event) == 0;
}

void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    (void)epoll_ctl(loop->epoll, EPOLL_CTL_MOD, watch->fd, &event);
}

int loop_forget(struct loop *loop, struct watch *watch)
{
    int fd = watch->fd;
    if (fd >= 0)
        (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
    *watch = (struct watch){.fd = -1};
    return fd;
}

void loop_close(struct loop *loop, struct watch *watch)
{
    int fd = loop_forget(loop, watch);
    if (fd >= 0)
        (void)close(fd);
}

/* ---- Timers ---- */

void loop_arm(struct loop *loop, struct timer *timer, uint64_t delay_ms)
{
    timer->due_ms = loop->now_ms + (int64_t)delay_ms;
    if (!timer->node.self)
        node_add(&loop->timers, &timer->node);
}

void loop_disarm(struct timer *timer)
{
    node_remove(&timer->node);
}

/* Each connection has two or three timers, few enough for a linear search. */
static struct timer *first_timer(const struct loop *loop)
{
    struct timer *first = (struct timer *)loop->timers;
    for (struct node *at = loop->timers; at; at = at->next)
        if (((struct timer *)at)->due_ms < first->due_ms)
            first = (struct timer *)at;
    return first;
}

struct timer *loop_take_timer(struct loop *loop)
{
    struct timer *first = first_timer(loop);
    if (!first || first->due_ms > loop->now_ms)
        return NULL;
    loop_disarm(first);
    return first;
}

int loop_wait_ms(const struct loop *loop, int64_t now_ms)
{
    const struct timer *first = first_timer(loop);
    if (!first)
        return -1;
    int64_t wait = first->due_ms - now_ms;
    if (wait <= 0)
        return 0;
    return wait > INT_MAX ? INT_MAX : (int)wait;
}

/* ---- Tasks ---- */

void loop_queue(struct loop *loop, struct task *task)
{
    if (task->queued)
        return;
    task->queued = true;
    task->next = NULL;
    *loop->last_task = task;
    loop->last_task = &task->next;
}

void loop_unqueue(struct loop *loop, struct task *task)
{
    if (!task->queued)
        return;
    struct task **at = &loop->first_task;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (loop->last_task == &task->next)
        loop->last_task = at;
    task->queued = false;
}

/* Runs the queued tasks; tasks that they queue run in the next round. */
static void run_tasks(struct loop *loop)
{
    struct task end = {0};
    if (!loop->first_task)
        return;
    loop_queue(loop, &end);
    while (loop->first_task != &end) {
        struct task *task = loop->first_task;
        loop_unqueue(loop, task);
        task->run(task);
    }
    loop_unqueue(loop, &end);
}

/* ---- Lists and memory ---- */

void node_add(struct node **list, struct node *node)
{
    node->next = *list;
    node->self = list;
    if (node->next)
        node->next->self = &node->next;
    *list = node;
}

void node_remove(struct node *node)
{
    if (!node->self)
        return;
    *node->self = node->next;
    if (node->next)
        node->next->self = node->self;
    node->self = NULL;
}

void loop_free_later(struct loop *loop, struct node *node)
{
    node_remove(node);
    node->next = loop->garbage;
    loop->garbage = node;
}

/* ---- Rounds ---- */

void loop_round(struct loop *loop)
{
    struct epoll_event events[EVENTS_MAX];
    int wait = loop->first_task ? 0 : loop_wait_ms(loop, (int64_t)clock_now_ms());
    int count = epoll_wait(loop->epoll, events, EVENTS_MAX, wait);
    loop->now_ms = (int64_t)clock_now_ms();
    for (int i = 0; i < count && !loop->stop; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch->ready)
            watch->ready(watch, events[i].events);
    }
    if (!loop->stop)
        run_tasks(loop);
    struct timer *timer;
    while (!loop->stop && (timer = loop_take_timer(loop)))
        timer->fire(timer);
    collect(loop);
}

void loop_run(struct loop *loop)
{
    while (!loop->stop)
        loop_round(loop);
}
