/* SPDX-License-Identifier: MIT */
/* Contexts of a sandbox: interpreters that keep their state between runs of code. A context has at
 * most one interpreter, a program in the sandbox, which is started when it is needed; runs in one
 * context take turns. Each run is an execution with a row in the history.
 *
 * contexts.c has contexts, context_runs.c runs, interpreter.c the programs, interpreter_line.c the
 * lines that they exchange with the executor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "server/execution.h"
#include "server/executor/source.h"
#include "server/sandbox.h"

struct brig_error;
struct brig_job;
struct context;
struct executor;
struct interpreter_line;
struct runtime;
struct sandbox;

#define CONTEXT_MESSAGE_BYTES 512

/* Who asked: the tag of a MESSAGE_SANDBOX, and the number of the http process. */
struct caller {
    uint64_t tag, http;
    bool replayed; /* by a repeated request */
};

enum interpreter_kind { INTERPRETER_PYTHON, INTERPRETER_NODE, INTERPRETER_BASH, INTERPRETERS_ };

struct interpreter_stream {
    struct interpreter *interpreter;
    struct executor_source source; /* fd -1 at end of file */
    bool is_stderr, paused;
};

struct interpreter {
    struct interpreter *next; /* of the sandbox */
    struct sandbox *sandbox;
    struct context *context; /* NULL: it is being ended */
    struct brig_job *job;
    struct executor_source source, channel;
    struct interpreter_stream streams[2];
    int pulses;         /* standard input of bash, which wants a line end for each run; or -1 */
    struct str line;    /* that is not complete yet */
    size_t line_seen;   /* bytes of it without an end */
    struct str waiting; /* to be sent */
    size_t sent;        /* bytes of it that were sent */
    bool ready;         /* it has said so */
    bool writing;       /* the loop also waits for EPOLLOUT */
    bool paused;        /* the http process is slow */
    bool gone;          /* the job is over */
    uint64_t closed_ms; /* when it closed its channel; 0: it has not */
    char said[256];     /* the last of standard error before it was ready */
};

struct context_run {
    struct context_run *next;
    struct caller caller; /* tag 0: the client has disconnected */
    struct sandbox_request request;
    struct execution_request row; /* for the history; in the arena of `request` */
    uint64_t number;
    bool told;                   /* a client that follows knows that it has begun */
    bool sent, begun;            /* to the interpreter; by it */
    bool interrupted, timed_out; /* by a client; for its time limit */
    unsigned signals;            /* that were sent for that */
    uint64_t signal_ms;          /* the last of them */
    bool failed;                 /* with an error of the language */
    uint64_t deadline_ms;        /* 0: none */
    uint64_t left_ms;            /* while the sandbox is paused */
    int64_t started_ns;
    uint64_t started_us, cpu_us;
    struct str output[2];
    bool truncated[2];
    struct str results; /* lines, for a client that does not follow */
    size_t result_bytes, result_count;
    char message[CONTEXT_MESSAGE_BYTES];
};

struct context {
    struct context *next; /* newest first */
    struct sandbox *sandbox;
    uint64_t number; /* 0: prepared, and not used yet */
    enum interpreter_kind kind;
    const struct runtime *runtime;
    bool is_default;
    struct sandbox_request request; /* its directory and variables */
    struct interpreter *interpreter;
    uint64_t since_ms;        /* when the interpreter, or its run, was begun */
    uint64_t count;           /* runs of this interpreter */
    struct context_run *runs; /* the first is the interpreter's */
    size_t run_count;
    int64_t created_ns;
};

/* ---- contexts.c: requests ---- */

/* The operations on contexts. Takes the request. */
void executor_context_asked(struct sandbox *sandbox, struct sandbox_request *request,
                            const struct caller *caller);
/* Starts the interpreter of the sandbox's own language before it is asked for. */
int executor_context_prepare(struct sandbox *sandbox, struct brig_error *err);
/* A client has disconnected: its run is interrupted. False if it has none. */
bool executor_contexts_left(struct sandbox *sandbox, const struct caller *caller);
void executor_contexts_pause(struct sandbox *sandbox, bool paused);
/* Time limits; frees interpreters that have ended. Returns when to call it again. */
uint64_t executor_contexts_settle(struct sandbox *sandbox, uint64_t now_ms);
/* The sandbox ends: all runs are answered. */
void executor_contexts_end(struct sandbox *sandbox);

struct sandbox_context executor_context_describe(const struct context *context);

/* ---- context_runs.c: runs ---- */

/* Takes the request. */
void executor_context_add_run(struct context *context, struct sandbox_request *request,
                              struct caller caller);
/* Starts an interpreter. */
int executor_context_start(struct context *context, struct brig_error *err);
/* What to answer if it failed; *ret_field is the wrong field. */
enum sandbox_fault executor_context_fault(struct brig_error *err, const char **ret_field);
/* Ends its interpreter, and all its runs: the one that runs with a result, others with the fault. */
void executor_context_stop(struct context *context, enum sandbox_fault fault, const char *why);
/* Interrupts the run that was sent to the interpreter. */
void executor_context_interrupt(struct context *context);
/* The client of a run has disconnected; false if it has none. */
bool executor_context_leave(struct context *context, const struct caller *caller);
/* Looks at the time limits. Returns when to look again. */
uint64_t executor_context_settle(struct context *context, uint64_t now_ms);

/* ---- context_runs.c: what interpreters say ---- */

void executor_context_heard(struct context *context, const struct interpreter_line *line,
                            const char *text, size_t length);
void executor_context_output(struct context *context, bool is_stderr, const char *bytes,
                             size_t length);
/* The interpreter has ended, or has to: `why` says so, and the run that it has ends with the status.
 * The context forgets the interpreter. */
void executor_context_broken(struct context *context, enum execution_status status,
                             const char *why);
/* Whether a client reads what the interpreter says. */
bool executor_context_is_followed(const struct context *context);

/* ---- interpreter.c ---- */

extern const char *const interpreter_names[INTERPRETERS_]; /* of their runtimes */

/* Starts a program for the context, whose request has its directory and variables. */
struct interpreter *executor_interpreter_start(struct sandbox *sandbox, struct context *context,
                                               enum interpreter_kind kind,
                                               const struct sandbox_request *request,
                                               struct brig_error *err);
/* Sends a run. */
void executor_interpreter_send(struct interpreter *interpreter, uint64_t run,
                               const struct sandbox_request *request);
/* Reads what the program has written to its streams. */
void executor_interpreter_drain(struct interpreter *interpreter);
void executor_interpreter_interrupt(const struct interpreter *interpreter);
/* Ends it with all its processes. It is freed later. */
void executor_interpreter_end(struct interpreter *interpreter);
/* Its processor time and peak of memory so far; 0 if they are not counted. */
void executor_interpreter_usage(const struct interpreter *interpreter, uint64_t *ret_cpu_us,
                                uint64_t *ret_memory_bytes);
/* Frees those that have ended; with `all` all of them. */
void executor_interpreters_clear(struct sandbox *sandbox, bool all);
/* Goes on reading where that was stopped because the http process was slow. */
void executor_interpreters_resume(struct sandbox *sandbox);
