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

/* When `ms` milliseconds have passed, for a deadline of which 0 means none; a negative `ms`: none. */
static inline uint64_t clock_until_us(int64_t ms)
{
    return ms < 0 || ms > INT64_MAX / 2000 ? 0 : clock_now_us() + (uint64_t)ms * 1000;
}

static inline uint64_t clock_now_ms(void)
{
    return clock_now_us() / 1000;
}

#define CLOCK_SECOND_NS INT64_C(1000000000)

static inline int64_t clock_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * CLOCK_SECOND_NS + time.tv_nsec;
}

/* Nanoseconds since 1970. */
static inline int64_t clock_wall_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return clock_ns(now);
}

/* The same in the clock of file times, which advances in larger steps. */
static inline int64_t clock_files_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return clock_ns(now);
}
