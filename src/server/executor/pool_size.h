/* SPDX-License-Identifier: MIT */
/* Computes how many jails should wait: more if requests found none, fewer if some were never used.
 * Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The number is reduced at the end of such a period only. */
#define POOL_PERIOD_MS 10000

struct pool_size {
    size_t min, max;
    size_t target;      /* how many should wait */
    size_t lowest;      /* minimum of waiting jails in this period */
    uint64_t period_ms; /* end of the period */
    uint64_t used_ms;   /* time of the last request */
};

void pool_size_init(struct pool_size *size, size_t min, size_t max, uint64_t now_ms);
/* A request took a jail, and `left` are left. */
void pool_size_taken(struct pool_size *size, size_t left, uint64_t now_ms);
/* A request found no jail. */
void pool_size_missed(struct pool_size *size, uint64_t now_ms);
/* Returns how many jails should wait from now on; `waiting` do now. */
size_t pool_size_settle(struct pool_size *size, size_t waiting, uint64_t idle_ms, uint64_t now_ms);
