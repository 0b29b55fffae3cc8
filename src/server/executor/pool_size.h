/* SPDX-License-Identifier: MIT */
/* How many jails should wait: more when requests found none, fewer when some were never needed. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How long it is looked at what is needed before there are fewer. */
#define POOL_PERIOD_MS 10000

struct pool_size {
    size_t min, max;
    size_t target;      /* how many should wait */
    size_t lowest;      /* that waited at any time of this period */
    uint64_t period_ms; /* its end */
    uint64_t used_ms;   /* the last request */
};

void pool_size_init(struct pool_size *size, size_t min, size_t max, uint64_t now_ms);
/* A request took one, and so many are left. */
void pool_size_taken(struct pool_size *size, size_t left, uint64_t now_ms);
/* A request found none. */
void pool_size_missed(struct pool_size *size, uint64_t now_ms);
/* How many should wait from now on, when so many do. */
size_t pool_size_settle(struct pool_size *size, size_t waiting, uint64_t idle_ms, uint64_t now_ms);
