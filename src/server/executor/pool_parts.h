/* SPDX-License-Identifier: MIT */
/* What the files of the pools share: pool.c, who waits and who gets it; pool_fill.c, making more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct message_pool;
struct pool;
struct run;
struct runtime;
struct executor;

/* ---- pool.c ---- */

/* What /metrics tells of a runtime. */
struct message_pool *pool_counts(struct executor *executor, const struct runtime *runtime);
/* One more that waits. */
void pool_link(struct pool *pool, struct run *run);
/* One that waits, in a pool or in none yet, ends. */
void pool_discard(struct run *run);

/* ---- pool_fill.c ---- */

/* A jail by a fork of the pool's zygote, in the pool; NULL: there is none. */
struct run *pool_fork(struct executor *executor, struct pool *pool);
/* Has a jail or a zygote made where one lacks, if it is time. */
void pool_fill(struct executor *executor, uint64_t now_ms);
bool pool_lacks_any(const struct executor *executor);
