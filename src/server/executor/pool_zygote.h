/* SPDX-License-Identifier: MIT */
/* The interpreter from which the jails of one pool are forked: one API key's, and replaced in time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/executor/source.h"

struct brig_error;
struct runtime;
struct executor;
struct zygote;

struct pool_zygote {
    struct pool_zygote *next; /* of those to be freed */
    struct executor *executor;
    const struct runtime *runtime;
    struct zygote *zygote;
    struct executor_source source;
    uint64_t born_ms, runs;
    bool gone;
};

/* Starts one. Nothing can be forked until it is ready. */
int executor_zygote_new(struct executor *executor, const struct runtime *runtime,
                        struct pool_zygote **ret_zygote, struct brig_error *err);
/* Whether it can be forked; accepts NULL. */
bool executor_zygote_is_ready(const struct pool_zygote *own);
/* Whether there should be another; accepts NULL. */
bool executor_zygote_is_worn(const struct pool_zygote *own, uint64_t now_ms);
/* It is asked for nothing any more. */
void executor_zygote_give_up(struct pool_zygote *own);
/* After this round of the loop it is gone; what was forked from it is not. Accepts NULL. */
void executor_zygote_bury(struct pool_zygote *own);
/* Those that were buried. */
void executor_zygotes_clear(struct executor *executor);
