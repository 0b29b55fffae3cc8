/* SPDX-License-Identifier: MIT */
/* Computes how many jails should wait. */
#include "server/executor/pool_size.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void pool_size_init(struct pool_size *size, size_t min, size_t max, uint64_t now_ms)
{
    *size = (struct pool_size){.min = smaller(min, max),
                               .max = max,
                               .target = smaller(min, max),
                               .period_ms = now_ms + POOL_PERIOD_MS,
                               .used_ms = now_ms};
}

static void use(struct pool_size *size, uint64_t now_ms)
{
    size->used_ms = now_ms;
    if (size->target < size->min)
        size->target = size->min;
}

void pool_size_taken(struct pool_size *size, size_t left, uint64_t now_ms)
{
    use(size, now_ms);
    size->lowest = smaller(size->lowest, left);
}

void pool_size_missed(struct pool_size *size, uint64_t now_ms)
{
    use(size, now_ms);
    size->lowest = 0;
    size->target = smaller(size->max, size->target > 0 ? 2 * size->target : 1);
}

size_t pool_size_settle(struct pool_size *size, size_t waiting, uint64_t idle_ms, uint64_t now_ms)
{
    if (now_ms >= size->used_ms + idle_ms) {
        size->target = 0;
        return 0;
    }
    if (now_ms < size->period_ms)
        return size->target;
    /* Removes half of the surplus: the other half is for the next burst. */
    size_t less = (size->lowest + 1) / 2;
    size->target = size->target > size->min + less ? size->target - less
                   : size->target < size->min      ? size->target
                                                   : size->min;
    size->lowest = waiting;
    size->period_ms = now_ms + POOL_PERIOD_MS;
    return size->target;
}
