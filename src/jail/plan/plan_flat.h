/* SPDX-License-Identifier: MIT */
/* A plan as one piece of bytes, for another process of the same build to walk: the steps, the restrictions and
 * where the command starts. Not what is executed, nor what the parent needs afterwards. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "jail/plan/plan.h"

struct str;

#define PLAN_FLAT_MAGIC 0x62726967706c616eULL /* "brigplan" */

struct plan_flat {
    uint64_t magic;
    uint64_t build; /* sizes of what is copied */
    uint64_t length;
    struct plan plan;
    size_t steps, rules, workdir; /* offsets; 0: none */
    size_t seccomp, seccomp_told;
    uint16_t seccomp_count, seccomp_told_count;
    struct sock_fprog filters[2]; /* for who reads it */
};

static inline uint64_t plan_flat_build(void)
{
    return (uint64_t)sizeof(struct plan_flat) << 40 | (uint64_t)sizeof(struct plan_step) << 20 |
           (uint64_t)sizeof(struct plan_rule);
}

/* Appends it to `out`; 0 or BRIG_E_NOMEM. Fds are the receiver's to fill in. */
int plan_flatten(const struct plan *plan, struct str *out);
/* Reads it in place: the plan points into `bytes`, which must be aligned as malloc() does and stay.
 * False if they are not those of a plan of this build. */
bool plan_unflatten(void *bytes, size_t length, struct plan *ret_plan);
