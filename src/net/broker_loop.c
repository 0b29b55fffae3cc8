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
#define TIMERS_FIRST 64

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
    free(loop->timers);
    loop->timers = NULL;
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

static void put(struct loop *loop, size_t place, struct timer *timer)
{
    loop->timers[place] = timer;
    timer->place = place;
}

/* Puts the timer where it belongs, up or down from a place that is free. */
static void settle(struct loop *loop, size_t place, struct timer *timer)
{
    struct timer **heap = loop->timers;
    for (; place > 1 && heap[place / 2]->due_ms > timer->due_ms; place /= 2)
        put(loop, place, heap[place / 2]);
    for (size_t child; (child = place * 2) <= loop->timer_count; place = child) {
        if (child < loop->timer_count && heap[child + 1]->due_ms < heap[child]->due_ms)
            child++;
        if (heap[child]->due_ms >= timer->due_ms)
            break;
        put(loop, place, heap[child]);
    }
    put(loop, place, timer);
}

static bool make_room(struct loop *loop)
{
    if (loop->timer_count < loop->timer_capacity)
        return true;
    size_t capacity = loop->timer_capacity ? loop->timer_capacity * 2 : TIMERS_FIRST;
    struct timer **timers = reallocarray(loop->timers, capacity + 1, sizeof(*timers));
    if (!timers)
        return false;
    loop->timers = timers;
    loop->timer_capacity = capacity;
    return true;
}

void loop_arm(struct loop *loop, struct timer *timer, uint64_t delay_ms)
{
    timer->due_ms = loop->now_ms + (int64_t)delay_ms;
    if (timer->place > 0)
        settle(loop, timer->place, timer);
    else if (make_room(loop))
        settle(loop, ++loop->timer_count, timer);
    else
        loop->stop = true;
}

void loop_disarm(struct loop *loop, struct timer *timer)
{
    size_t place = timer->place;
    if (place == 0)
        return;
    timer->place = 0;
    struct timer *last = loop->timers[loop->timer_count--];
    if (last != timer)
        settle(loop, place, last);
}

struct timer *loop_take_timer(struct loop *loop)
{
    struct timer *first = loop->timer_count > 0 ? loop->timers[1] : NULL;
    if (!first || first->due_ms > loop->now_ms)
        return NULL;
    loop_disarm(loop, first);
    return first;
}

int loop_wait_ms(const struct loop *loop, int64_t now_ms)
{
    if (loop->timer_count == 0)
        return -1;
    int64_t wait = loop->timers[1]->due_ms - now_ms;
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

/* Runs the tasks that are queued now; those they queue are for the next round. */
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
