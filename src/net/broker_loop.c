/* SPDX-License-Identifier: MIT */
/* The broker's event loop. */
#include "net/broker_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define EVENTS_MAX 256

static int64_t clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int loop_init(struct loop *loop, struct brig_error *err)
{
    *loop = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC), .now_ms = clock_ms()};
    loop->last_task = &loop->first_task;
    if (loop->epoll < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make an epoll descriptor");
    return 0;
}

static void collect(struct loop *loop)
{
    while (loop->garbage) {
        struct garbage *garbage = loop->garbage;
        loop->garbage = garbage->next;
        free(garbage);
    }
}

void loop_done(struct loop *loop)
{
    collect(loop);
    timers_done(&loop->timers);
    if (loop->epoll >= 0)
        (void)close(loop->epoll);
    loop->epoll = -1;
}

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

void loop_forget(struct loop *loop, struct watch *watch)
{
    if (watch->fd >= 0)
        (void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->ready = NULL;
}

void loop_close(struct loop *loop, struct watch *watch)
{
    loop_forget(loop, watch);
    if (watch->fd >= 0)
        (void)close(watch->fd);
    watch->fd = -1;
}

void loop_arm(struct loop *loop, struct timer *timer, int64_t delay_ms)
{
    if (!timers_arm(&loop->timers, timer, loop->now_ms + delay_ms))
        loop->stop = true;
}

void loop_disarm(struct loop *loop, struct timer *timer)
{
    timers_disarm(&loop->timers, timer);
}

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
    for (struct task **at = &loop->first_task; *at; at = &(*at)->next) {
        if (*at != task)
            continue;
        *at = task->next;
        if (loop->last_task == &task->next)
            loop->last_task = at;
        break;
    }
    task->queued = false;
}

void loop_free_later(struct loop *loop, struct garbage *garbage)
{
    garbage->next = loop->garbage;
    loop->garbage = garbage;
}

/* Those that are queued now; what they queue themselves is for the next round. */
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

static void run_timers(struct loop *loop)
{
    struct timer *timer;
    while (!loop->stop && (timer = timers_take(&loop->timers, loop->now_ms)))
        timer->fire(timer);
}

void loop_round(struct loop *loop)
{
    struct epoll_event events[EVENTS_MAX];
    int wait = loop->first_task ? 0 : timers_wait_ms(&loop->timers, clock_ms());
    int count = epoll_wait(loop->epoll, events, EVENTS_MAX, wait);
    loop->now_ms = clock_ms();
    for (int i = 0; i < count && !loop->stop; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch->ready)
            watch->ready(watch, events[i].events);
    }
    if (!loop->stop)
        run_tasks(loop);
    run_timers(loop);
    collect(loop);
}

void loop_run(struct loop *loop)
{
    while (!loop->stop)
        loop_round(loop);
}
