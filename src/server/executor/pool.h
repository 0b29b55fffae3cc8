/* SPDX-License-Identifier: MIT */
/* Pools: whole jails that wait for code, each for one run, and frames, which jails that begin cold have in
 * common. A pool is of one runtime and of one API key, and all of its jails are as a request without wishes
 * of its own has them. What fits takes one; what does not, or finds none, begins cold at once. Jails are made
 * one at a time, when there is time for it, and never come back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "server/execution.h"
#include "server/executor/pool_size.h"
#include "server/executor/source.h"
#include "server/runtime.h"

struct brig_error;
struct brig_policy;
struct brig_template;
struct run;
struct executor;
struct zygote;

#define POOL_DOMAIN_MAX 128 /* with its NUL; as the codec has it */

struct pool {
    struct pool *next;
    struct executor *executor;
    const struct runtime *runtime;
    char domain[POOL_DOMAIN_MAX + 1];
    struct runtime_program program; /* of all that wait */
    bool outdated;                  /* another was installed: what waits has the old one */
    struct pool_size size;
    struct run *waiting; /* the oldest last */
    size_t count;        /* of those */
    /* The interpreter from which the jails are forked, or NULL. It serves this API key alone, and is
     * replaced in time; what was forked from it goes on. */
    struct zygote *zygote;
    struct executor_source source;
    uint64_t born_ms, forks;
    bool gone; /* the zygote has ended, or does not answer */
};

struct pools {
    struct pool *first;
    bool enabled;
    int library; /* of zygotes; -1: there are none */
    struct pool_retry {
        bool reported; /* that it failed */
        uint64_t at_ms, wait_ms;
    } retry, zygote_retry; /* after a failure */
    uint64_t quiet_ms;     /* until then a request has the machine to itself */
    uint64_t due_ms;       /* when to look after them again */
};

/* Ends all that wait. */
void executor_pools_end(struct executor *executor);
/* A jail that waits for such a request, from now on the caller's; NULL: there is none. */
struct run *executor_pool_take(struct executor *executor, const struct runtime *runtime,
                               const struct execution_request *request);
/* Its request is there, and it is not being built any more: lets it go. */
int executor_pool_release(struct run *run, struct brig_error *err);
/* Ends one that waits. */
void executor_pool_discard(struct run *run);
/* Its job was heard, and brig_job_process() gave this. */
void executor_pool_heard(struct run *run, int result, const struct brig_error *err);
/* A zygote was told to fork and does not. */
void executor_pools_zygote_stuck(struct executor *executor, const struct zygote *zygote);
/* Ends those that are too old or too many, has others made, and counts. Not while events of the loop are left
 * that may be for one of them. */
void executor_pools_settle(struct executor *executor, uint64_t now_ms);
/* When to settle them although nothing happened; UINT64_MAX: never. */
uint64_t executor_pools_due_ms(const struct executor *executor, uint64_t now_ms);

/* ---- Frames ---- */

/* What jails of one runtime that begin cold have in common, a template of libbrig's: namespaces in which all
 * that no run can write to is mounted, and a few networks that no run has had. A run adds its own, a user
 * namespace first. A request with files, a network or a disk of its own is built from scratch. */
struct frame {
    struct brig_template *template; /* NULL: it is to be made, or was found not to work */
    struct timespec etc_changed;    /* the names in /etc, of which some are copied */
    uint64_t born_ms;
    uint64_t used_ms; /* 0: nothing has asked for it */
    bool broken;      /* until it would be too old */
};

/* The frame for a run with this policy; NULL: there is none. */
struct brig_template *executor_frame_find(struct executor *executor, const struct runtime *runtime,
                                          const struct brig_policy *policy);
/* A run could not be started in it. */
void executor_frame_failed(struct executor *executor, const struct runtime *runtime);
/* Makes those that are wanted, and ends those that are too old or were not used for long. */
void executor_frames_settle(struct executor *executor, uint64_t now_ms);
void executor_frames_end(struct executor *executor);
