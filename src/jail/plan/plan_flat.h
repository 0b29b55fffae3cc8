/* SPDX-License-Identifier: MIT */
/* A plan as one block of bytes, to be executed by another process of the same build: the steps, the
 * restrictions and the working directory, without the command and without the parent's data. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "jail/plan/plan.h"

struct str;

#define PLAN_FLAT_MAGIC 0x62726967706c616eULL /* "brigplan" */

struct plan_flat {
    uint64_t magic;
    uint64_t build; /* sizes of the copied structs */
    uint64_t length;
    struct plan plan;
    size_t steps, rules, workdir; /* offsets; 0: none */
    size_t seccomp, seccomp_told;
    uint16_t seccomp_count, seccomp_told_count;
    struct sock_fprog filters[2]; /* space for the receiver */
};

static inline uint64_t plan_flat_build(void)
{
    return (uint64_t)sizeof(struct plan_flat) << 40 | (uint64_t)sizeof(struct plan_step) << 20 |
           (uint64_t)sizeof(struct plan_rule);
}

/* Appends the plan to `out`; returns 0 or BRIG_E_NOMEM. The receiver fills in the fds. */
int plan_flatten(const struct plan *plan, struct str *out);
/* Reads the plan in place: it points into `bytes`, which must be aligned as by malloc() and outlive
 * the plan. Returns false if the bytes are not a plan of this build. */
bool plan_unflatten(void *bytes, size_t length, struct plan *ret_plan);
