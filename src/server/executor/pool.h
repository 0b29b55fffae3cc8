/* SPDX-License-Identifier: MIT */
/* Pools: complete jails that wait for code, each for one run; and frames, templates for cold runs.
 * A pool belongs to one runtime and one API key. Its jails have the settings of a request without
 * special options. A request that fits takes a waiting jail; any other, or one that finds none,
 * starts cold at once. Jails are made one at a time when the executor is idle, and are used
 * once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "server/config/runtime.h"
#include "server/execution.h"
#include "server/executor/pool_size.h"
#include "server/executor/source.h"

struct brig_error;
struct brig_policy;
struct brig_template;
struct run;
struct executor;
struct zygote;

#define POOL_DOMAIN_MAX 128 /* with its NUL; as in execution.c */

struct pool {
    struct pool *next;
    struct executor *executor;
    const struct runtime *runtime;
    char domain[POOL_DOMAIN_MAX + 1];
    struct runtime_program program; /* the program that the waiting jails run */
    bool outdated;                  /* the program was replaced: waiting jails have the old one */
    struct pool_size size;
    struct run *waiting; /* newest first */
    size_t count;        /* length of `waiting` */
    /* The interpreter from which the jails are forked, or NULL. It serves this API key only, and is
     * replaced after some runs or time; jails forked from it continue. */
    struct zygote *zygote;
    struct executor_source source;
    uint64_t born_ms, forks;
    bool gone; /* the zygote has exited, or does not answer */
};

struct pools {
    struct pool *first;
    bool enabled;
    int library; /* fd of the zygote library; -1: no zygotes */
    struct pool_retry {
        bool reported; /* the failure was logged */
        uint64_t at_ms, wait_ms;
    } retry, zygote_retry; /* wait before trying again */
    uint64_t quiet_ms;     /* do not build jails before this time: a request has just started */
    uint64_t due_ms;       /* next check of all pools */
};

/* Ends all waiting jails. */
void executor_pools_end(struct executor *executor);
/* Limits have changed: ends all waiting jails and frames, which have the old ones. */
void executor_pools_renew(struct executor *executor);
/* Takes a waiting jail for such a request, now owned by the caller; NULL: none. */
struct run *executor_pool_take(struct executor *executor, const struct runtime *runtime,
                               const struct execution_request *request);
/* Releases a jail that is complete and has its request. */
int executor_pool_release(struct run *run, struct brig_error *err);
/* Ends a waiting jail. */
void executor_pool_discard(struct run *run);
/* Handles the result of brig_job_process() for a waiting jail. */
void executor_pool_heard(struct run *run, int result, const struct brig_error *err);
/* Gives up a zygote that does not fork when asked to. */
void executor_pools_zygote_stuck(struct executor *executor, const struct zygote *zygote);
/* Ends jails that are too old or too many, makes new ones, and updates the gauges. Must not be
 * called while events of the loop are pending, which may refer to a freed jail. */
void executor_pools_settle(struct executor *executor, uint64_t now_ms);
/* When to call executor_pools_settle() if nothing else happens; UINT64_MAX: never. */
uint64_t executor_pools_due_ms(const struct executor *executor, uint64_t now_ms);

/* ---- Frames ---- */

/* The common part of cold jails of one runtime, a template of libbrig: namespaces with all mounts
 * that no run can write to, and a few unused network namespaces. A run adds its own user namespace
 * and the remaining mounts. A request with files, network or a disk limit of its own is built
 * without a frame. */
struct frame {
    struct brig_template *template; /* NULL: not made yet, or broken */
    struct timespec etc_changed;    /* mtime of /etc, some of whose files are copied */
    uint64_t born_ms;
    uint64_t used_ms; /* 0: never requested */
    bool broken;      /* do not make it again until it would have expired */
};

/* Returns the frame for a run with this policy; NULL: none. */
struct brig_template *executor_frame_find(struct executor *executor, const struct runtime *runtime,
                                          const struct brig_policy *policy);
/* Called if a run could not be started in the frame. */
void executor_frame_failed(struct executor *executor, const struct runtime *runtime);
/* Makes frames that are needed, and ends those that are too old or unused. */
void executor_frames_settle(struct executor *executor, uint64_t now_ms);
void executor_frames_end(struct executor *executor);
