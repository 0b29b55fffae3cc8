/* SPDX-License-Identifier: MIT */
/* The state shared by the files of the executor: one loop, its peers and the runs. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "server/execution.h"
#include "server/executor/credential.h"
#include "server/executor/input.h"
#include "server/executor/instance.h"
#include "server/executor/jail.h"
#include "server/executor/pool.h"
#include "server/executor/queue.h"
#include "server/executor/sandboxes.h"
#include "server/executor/sweeper.h"
#include "server/executor/versions.h"
#include "server/journal.h"
#include "server/message.h"

struct brig_error;
struct brig_job;
struct callback;
struct brig_result;
struct runtime;
struct server_config;
struct executor;
struct stages;
struct zygote;

/* The other end of a channel: the supervisor, the http process or the history process. */
struct executor_peer {
    struct executor *executor;
    struct channel *channel; /* NULL: not connected */
    struct executor_source source;
    uint32_t armed; /* the events that the loop waits for */
};

/* RUN_WAITING precedes the others. A run that could not be started is over at once. */
enum run_state {
    RUN_RUNNING,
    RUN_ENDING,  /* asked to end; `reason` says why */
    RUN_OVER,    /* the result was sent; free it after this round of the loop */
    RUN_WAITING, /* a jail without a request, in a pool */
};

/* Why the executor ended the run, if it did. */
enum run_reason { RUN_BY_ITSELF, RUN_CANCELLED, RUN_TOO_MUCH_OUTPUT, RUN_TOO_MUCH_INPUT };

struct run_stream {
    struct run *run;
    struct executor_source source; /* fd -1 at end of file */
    int number;                    /* 1 or 2 */
    bool paused, truncated;
    size_t most; /* bytes to keep */
    struct str kept;
};

struct run {
    struct run *next, *previous;
    struct executor *executor;
    enum run_state state;
    enum run_reason reason;
    struct execution_request request;
    const struct runtime *runtime;
    uint64_t tag;   /* tag of the MESSAGE_EXECUTE */
    uint64_t http;  /* number of the http process that sent it */
    size_t slot;    /* index in executor.slots */
    uid_t host_uid; /* (uid_t)-1: the executor's uid */
    struct brig_job *job;
    struct executor_source source;
    struct run_stream streams[2];
    uint64_t output_bytes; /* both streams, kept or not */
    /* Which stream output came from, if the request wants to know; owned. */
    struct execution_piece *order;
    size_t order_count;
    struct executor_input input; /* of an interactive run */
    uint64_t untaken;            /* its output that its client has not taken yet */
    struct stages *stages;       /* of a run with a compile stage; the job is that of a stage */
    int64_t started_ns;          /* since 1970 */
    enum execution_fault fault;  /* set if the run cannot start */
    const char *field;           /* FAULT_REQUEST: the wrong field */
    struct execution_trace trace;
    /* For a run that waits, or has waited, for its request: */
    struct pool *pool;  /* NULL once it has a request */
    bool noted;         /* recorded in the instance file */
    bool held;          /* has a request, and waits for a slot or a descriptor */
    bool ready;         /* can take its code */
    uint64_t parked_ms; /* start of waiting */
    /* Socket to Node: Node reports that it is ready, then the executor that the code is there. */
    struct executor_source gate;
};

struct executor {
    struct server_config *config;
    int epoll;
    struct executor_peer peers[ROLES_]; /* the entry of ROLE_EXECUTOR is the supervisor */
    uint64_t http_processes;            /* number of http processes so far */
    struct journal journal;
    uint64_t told_row; /* tag of the last MESSAGE_ROW */
    struct credential credential;
    struct instance instance;
    struct jail_ground ground;
    char broker[PATH_MAX];
    char callback_program[PATH_MAX]; /* brig-callback, or "" */
    struct callback *callbacks;      /* under way */
    struct run *runs;                /* runs that are not over */
    struct run *over;                /* to be freed */
    size_t run_count, run_most, paused_count, held_count;
    size_t inherited_count; /* runs that were started for an earlier http process */
    size_t slot_count, slots_taken;
    bool *slots; /* slots in use; as root, each stands for a host uid */
    size_t next_slot;
    struct executor_queue queue;
    struct pools pools;
    struct frame frames[MESSAGE_POOLS_MAX]; /* indexed by runtime */
    struct sandboxes sandboxes;
    struct sweeper sweeper;
    struct versions versions;
    bool as_root;
    bool has_spare_id;     /* as root: a uid after those of the slots, for frames and zygotes */
    struct str runtimes;   /* the JSON that was sent last */
    struct str unenforced; /* JSON: what the last run could not enforce; empty: none has ended */
    struct message_gauges gauges, gauges_sent;
    uint64_t gauges_due_ms, sweep_due_ms;
    uint64_t memory_due_ms; /* when to look again how much memory is free */
    uint64_t percent_due_ms;
    bool draining, supervisor_gone;
    uint64_t drain_ms; /* when remaining runs are ended */
    uint64_t rows_ms;  /* when waiting for the history process ends, after the last run */
};

/* ---- executor.c ---- */

int executor_watch(const struct executor *executor, struct executor_source *source, uint32_t events,
                   struct brig_error *err);
void executor_unwatch(const struct executor *executor, const struct executor_source *source);
/* Sends to the http process if number `http` is still the current one. Drops the channel if sending
 * fails. */
void executor_tell_http(struct executor *executor, uint64_t http, enum message_type type,
                        uint64_t tag, const void *bytes, size_t length);
/* Sends to the history process; false if it is not running. */
bool executor_tell_history(struct executor *executor, enum message_type type, uint64_t tag,
                           const void *bytes, size_t length);
/* Reads what the history process has sent. It sends an entry of the queue before the http process
 * learns its id, but the sockets are read in any order. */
void executor_hear_history(struct executor *executor);
/* Returns whether the http process should first read what was sent. */
bool executor_http_is_full(const struct executor *executor);
/* Sends a line for the supervisor's log. */
void executor_warn(struct executor *executor, const char *text);
/* Sends waiting rows to the history process, as far as its channel takes them. The http process is
 * told if that is not all: what a client is told next, the history may not have yet. */
void executor_send_rows(struct executor *executor);

/* Returns the index of a runtime of the configuration; RUNTIMES_MAX for NULL. */
size_t executor_language(const struct executor *executor, const struct runtime *runtime);

/* ---- report.c ---- */

/* Sends GET /runtimes to a new http process, and to the current one if something changed: a program
 * was installed or removed, or its version is known. */
void executor_tell_runtimes(struct executor *executor, bool always);
/* Notes for GET /runtimes and /node what this machine does not enforce. */
void executor_note_unenforced(struct executor *executor, const char *const *texts, size_t count);

/* ---- slots.c ---- */

/* Makes the slots, and sets how many executions may run at once. */
int executor_slots_make(struct executor *executor, struct brig_error *err);
/* Reduces both, with a warning, if the limit of open files is too low for them. */
void executor_slots_fit(struct executor *executor);
/* Takes a slot, with a host uid as root; slots are used in turn, so that a uid is not reused soon. */
bool executor_slot_take(struct executor *executor, size_t *ret_slot, uid_t *ret_host_uid);
/* Accepts a slot that was not taken: SIZE_MAX. */
void executor_slot_free(struct executor *executor, size_t slot);
/* Whether a jail may be built in advance: slots for all runs that may still start are kept free. */
bool executor_slots_are_spare(const struct executor *executor);

/* ---- run.c ---- */

/* Starts the requested run; takes the request. `http` is the number of the http process that waits
 * for it; 0: none does. That process gets a result and the history process its rows, also if the run
 * cannot start; but not if memory runs out. */
void executor_run_begin(struct executor *executor, struct execution_request *request, uint64_t tag,
                        uint64_t http);
/* Whether an API key has the maximum number of runs, with `more` that will begin. The http process
 * checks this too, but does not count runs of an earlier http process. */
bool executor_key_is_full(const struct executor *executor, const char *domain, size_t more);
/* Stores the end of an execution of the queue, or with an idempotency key, that does not begin. */
void executor_run_refuse(struct executor *executor, const struct queue_entry *entry,
                         enum execution_status status, const char *why);
/* Add an execution that was refused, and the start and the end of one, to the history and to the
 * counters. `bytes` is the encoded result. */
void executor_note_blocked(struct executor *executor, const struct execution_request *request,
                           size_t language);
int executor_note_begin(struct executor *executor, const struct execution_request *request,
                        size_t language);
void executor_note_end(struct executor *executor, const struct runtime *runtime,
                       const struct execution_result *result, const struct str *bytes);
struct run *executor_run_find(const struct executor *executor, const char *id);
void executor_run_cancel(struct run *run, enum run_reason reason);
/* A run is in one list at a time. */
void executor_run_link(struct run **list, struct run *run);
void executor_run_unlink(struct run **list, struct run *run);
/* Allocates an empty run with a slot; NULL if there is no slot or no memory. */
struct run *executor_run_new(struct executor *executor);
/* Marks a run that is in no list to be freed after this round of the loop. */
void executor_run_bury(struct run *run);
/* Adds the run's job to the loop; and one that is a stage of the run. */
int executor_run_watch(struct run *run, struct brig_error *err);
int executor_run_watch_stage(struct run *run, struct brig_error *err);
/* Fills in the streams of a command; ends[2], if it is set, is to be closed after the start, like
 * ends[0] and ends[1], those of executor_output_open(). */
int executor_run_streams(struct run *run, int ends[3], struct brig_command *command,
                         struct brig_error *err);
/* Handle MESSAGE_INPUT, MESSAGE_SIGNAL and MESSAGE_TAKEN. */
int executor_run_take_input(struct executor *executor, const struct message *message,
                            struct brig_error *err);
int executor_run_take_signal(struct executor *executor, const struct message *message,
                             struct brig_error *err);
int executor_run_take_taken(struct executor *executor, const struct message *message,
                            struct brig_error *err);
/* Resumes reading streams that were paused because the http process was slow. */
void executor_runs_resume(struct executor *executor);
/* Starts runs cold whose zygote does not fork. */
void executor_runs_hurry(struct executor *executor);
/* Starts runs that had to wait until others have ended. */
void executor_runs_start_held(struct executor *executor);
/* Frees runs that are over. Without `all`, skips those whose cleanup would block. */
void executor_runs_clear(struct executor *executor, bool all);
/* Ends and frees all runs; used at exit. */
void executor_runs_abandon(struct executor *executor);

/* ---- stages.c ---- */

/* Whether executions of the runtime have a compile stage. */
bool executor_stages_wanted(const struct runtime *runtime);
/* Makes the jail and starts the compile stage. */
int executor_stages_start(struct run *run, struct brig_error *err);
/* A stage has ended with this result. Returns 1 if the next one has started, and took the result; 0
 * if there is none. */
int executor_stages_next(struct run *run, struct execution_result *result, struct brig_error *err);
/* The stage that runs, or ran last. */
enum execution_stage executor_stage(const struct run *run);
/* The result of the compile stage, if it has ended well; else NULL. */
const struct execution_result *executor_stages_compiled(const struct run *run);
/* The job that holds the jail; NULL if the run has one stage. */
struct brig_job *executor_stages_jail(const struct run *run);
/* Tells the http process, if the client streams, that a stage has begun, or how it ended. */
void executor_stage_tell(const struct run *run, const struct execution_result *result);
/* Lets the jail end, if there is one; and whether it has not ended yet. */
void executor_stages_end(struct run *run);
bool executor_stages_linger(const struct run *run);
/* After the run's job is freed. Returns the fd of /output, which the caller closes, or -1. */
int executor_stages_free(struct run *run);

/* ---- outcome.c ---- */

/* Builds the result of a run for the http and history processes. Strings are in the result's arena
 * or belong to the run. */
void executor_outcome(const struct run *run, const struct brig_result *from,
                      struct execution_result *ret_result);
/* Builds the result of a run that did not start. */
void executor_outcome_failed(const struct run *run, const char *why,
                             struct execution_result *ret_result);

/* Builds the result of a run as it is now: status EXECUTION_RUNNING. */
void executor_outcome_so_far(const struct run *run, struct execution_result *ret_result);

/* ---- output.c ---- */

/* Makes pipes for both streams; ret_ends are the ends for the jail. */
int executor_output_open(struct run *run, int ret_ends[2], struct brig_error *err);
/* Reads what is left in the pipes; all writers are dead. */
void executor_output_drain(struct run *run);
void executor_output_close(struct run *run);
void executor_output_resume(struct run *run);
