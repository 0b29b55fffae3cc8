/* SPDX-License-Identifier: MIT */
/* What the files of the executor share: one loop, its peers, and the runs. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "server/execution.h"
#include "server/executor/credential.h"
#include "server/executor/instance.h"
#include "server/executor/jail.h"
#include "server/executor/ledger.h"
#include "server/executor/pool.h"
#include "server/executor/sweeper.h"
#include "server/message.h"

struct brig_error;
struct brig_job;
struct brig_result;
struct runtime;
struct server_config;
struct executor;
struct zygote;

/* The other end of a channel: the supervisor, the http process or the history process. */
struct executor_peer {
    struct executor *executor;
    struct channel *channel; /* NULL while there is none */
    struct executor_source source;
    bool writing; /* the loop waits for room, too */
};

/* A run goes through these in order; one that could not be started is over at once. */
enum run_state {
    RUN_RUNNING,
    RUN_ENDING,  /* it was told to end, for a reason */
    RUN_OVER,    /* its result is out; to be freed after this round of the loop */
    RUN_WAITING, /* a jail without a request, in a pool; before all others */
};

/* Why we ended it, if we did. */
enum run_reason { RUN_BY_ITSELF, RUN_CANCELLED, RUN_TOO_MUCH_OUTPUT };

struct run_stream {
    struct run *run;
    struct executor_source source; /* fd -1 once it is at its end */
    int number;                    /* 1 or 2 */
    bool paused, truncated;
    size_t most; /* what is kept */
    struct str kept;
};

struct run {
    struct run *next, *previous;
    struct executor *executor;
    enum run_state state;
    enum run_reason reason;
    struct execution_request request;
    const struct runtime *runtime;
    uint64_t tag;   /* of the http process's message */
    uint64_t http;  /* which http process that was */
    size_t slot;    /* its number among those that run */
    uid_t host_uid; /* (uid_t)-1: the executor's own */
    struct brig_job *job;
    struct executor_source source;
    struct run_stream streams[2];
    uint64_t output_bytes;      /* of both streams, kept or not */
    int64_t started_ns;         /* since 1970 */
    enum execution_fault fault; /* if it cannot be begun, */
    const char *field;          /* and of FAULT_REQUEST: what of it */
    struct execution_trace trace;
    /* Of one that waits, or has waited, for its request: */
    struct pool *pool;  /* while it waits */
    bool noted;         /* in the instance's file */
    bool ready;         /* as far as it gets before its code comes */
    uint64_t parked_ms; /* since when it waits */
    struct executor_source
        gate; /* where Node says that it is ready, and hears that the code is there */
};

struct executor {
    const struct server_config *config;
    int epoll;
    struct executor_peer peers[ROLES_]; /* the one of ROLE_EXECUTOR is the supervisor's */
    uint64_t http_processes;            /* how many there have been */
    struct ledger ledger;
    struct credential credential;
    struct instance instance;
    struct jail_ground ground;
    char broker[PATH_MAX];
    struct run *runs; /* all that are not over */
    struct run *over; /* to be freed */
    size_t run_count, run_most, paused_count;
    size_t inherited_count; /* of the runs: begun for an earlier http process */
    size_t slot_count, slots_taken;
    bool *slots; /* which numbers are taken; as root, each is a host uid */
    size_t next_slot;
    struct pools pools;
    struct frame frames[MESSAGE_POOLS_MAX]; /* by runtime */
    struct sweeper sweeper;
    bool as_root;
    bool has_spare_id;   /* as root: one behind those of the slots, for what they share */
    struct str runtimes; /* the JSON that was sent last */
    struct message_gauges gauges, gauges_sent;
    uint64_t gauges_due_ms, sweep_due_ms;
    bool draining, supervisor_gone;
    uint64_t drain_ms; /* when patience with runs ends, */
    uint64_t rows_ms;  /* and after the last of them, with the history process */
};

/* ---- executor.c ---- */

int executor_watch(const struct executor *executor, struct executor_source *source, uint32_t events,
                   struct brig_error *err);
void executor_unwatch(const struct executor *executor, const struct executor_source *source);
/* Sends to the http process if it is still the one meant; one that cannot be sent to is gone. */
void executor_tell_http(struct executor *executor, uint64_t http, enum message_type type,
                        uint64_t tag, const void *bytes, size_t length);
/* Whether the http process has enough to read for now. */
bool executor_http_is_full(const struct executor *executor);
/* A line for the log. */
void executor_warn(struct executor *executor, const char *text);

/* ---- run.c ---- */

/* Begins what a message asks for and takes the request; whatever comes of it, the http process and the
 * history are told. */
void executor_run_begin(struct executor *executor, struct execution_request *request, uint64_t tag);
struct run *executor_run_find(const struct executor *executor, const char *id);
void executor_run_cancel(struct run *run, enum run_reason reason);
/* Lists of runs, of which a run is in one at a time. */
void executor_run_link(struct run **list, struct run *run);
void executor_run_unlink(struct run **list, struct run *run);
/* An empty one, with a slot; NULL if there is none, or no memory. */
struct run *executor_run_new(struct executor *executor);
/* One that is in no list, to be freed after this round of the loop. */
void executor_run_bury(struct run *run);
/* Watches the job that it has. */
int executor_run_watch(struct run *run, struct brig_error *err);
/* Reads again what was left unread for the http process's sake. */
void executor_runs_resume(struct executor *executor);
/* Starts again what a zygote was to make and does not. */
void executor_runs_hurry(struct executor *executor);
/* Those that are over. */
/* `all`: also those that would have to be waited for. */
void executor_runs_clear(struct executor *executor, bool all);
/* All others, at once: the end. */
void executor_runs_abandon(struct executor *executor);

/* ---- outcome.c ---- */

/* What came of a run, for the http process and the history process. Strings are in the result's arena, or the run's. */
void executor_outcome(const struct run *run, const struct brig_result *from,
                      struct execution_result *ret_result);
/* Nothing ran, and this is why. */
void executor_outcome_failed(const struct run *run, const char *why,
                             struct execution_result *ret_result);

/* ---- output.c ---- */

/* Pipes for both streams; *ret_ends are the run's, for the jail. */
int executor_output_open(struct run *run, int ret_ends[2], struct brig_error *err);
/* Nobody writes any more: what is left in the pipes is read. */
void executor_output_drain(struct run *run);
void executor_output_close(struct run *run);
void executor_output_resume(struct run *run);
