/* SPDX-License-Identifier: MIT */
/* The monotonic clock and the wall clock. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline uint64_t clock_now_ms(void)
{
    return clock_now_us() / 1000;
}

/* Nanoseconds since 1970. */
static inline int64_t clock_wall_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
