/* SPDX-License-Identifier: MIT */
/* Timers in the order in which they are due: a binary heap. Pure. */
#include "net/broker_timers.h"

#include <limits.h>
#include <stdlib.h>

#define FIRST_CAPACITY 64

static void put(struct timers *timers, size_t place, struct timer *timer)
{
    timers->heap[place - 1].timer = timer;
    timer->place = place;
}

static void move_up(struct timers *timers, struct timer *timer)
{
    size_t place = timer->place;
    while (place > 1 && timers->heap[place / 2 - 1].timer->due_ms > timer->due_ms) {
        put(timers, place, timers->heap[place / 2 - 1].timer);
        place /= 2;
    }
    put(timers, place, timer);
}

static void move_down(struct timers *timers, struct timer *timer)
{
    size_t place = timer->place;
    while (place * 2 <= timers->count) {
        size_t child = place * 2;
        if (child < timers->count &&
            timers->heap[child].timer->due_ms < timers->heap[child - 1].timer->due_ms)
            child++;
        if (timers->heap[child - 1].timer->due_ms >= timer->due_ms)
            break;
        put(timers, place, timers->heap[child - 1].timer);
        place = child;
    }
    put(timers, place, timer);
}

void timers_done(struct timers *timers)
{
    free(timers->heap);
    *timers = (struct timers){0};
}

static bool make_room(struct timers *timers)
{
    if (timers->count < timers->capacity)
        return true;
    size_t capacity = timers->capacity ? timers->capacity * 2 : FIRST_CAPACITY;
    struct timer_slot *heap = reallocarray(timers->heap, capacity, sizeof(*heap));
    if (!heap)
        return false;
    timers->heap = heap;
    timers->capacity = capacity;
    return true;
}

bool timers_arm(struct timers *timers, struct timer *timer, int64_t due_ms)
{
    if (timer->place == 0) {
        if (!make_room(timers))
            return false;
        put(timers, ++timers->count, timer);
    }
    timer->due_ms = due_ms;
    move_up(timers, timer);
    move_down(timers, timer);
    return true;
}

void timers_disarm(struct timers *timers, struct timer *timer)
{
    size_t place = timer->place;
    if (place == 0)
        return;
    timer->place = 0;
    struct timer *last = timers->heap[--timers->count].timer;
    if (last == timer)
        return;
    put(timers, place, last);
    move_up(timers, last);
    move_down(timers, last);
}

struct timer *timers_take(struct timers *timers, int64_t now_ms)
{
    if (timers->count == 0 || timers->heap[0].timer->due_ms > now_ms)
        return NULL;
    struct timer *first = timers->heap[0].timer;
    timers_disarm(timers, first);
    return first;
}

int timers_wait_ms(const struct timers *timers, int64_t now_ms)
{
    if (timers->count == 0)
        return -1;
    int64_t wait = timers->heap[0].timer->due_ms - now_ms;
    if (wait <= 0)
        return 0;
    return wait > INT_MAX ? INT_MAX : (int)wait;
}
