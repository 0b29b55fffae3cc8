/* SPDX-License-Identifier: MIT */
/* Sandboxes: jails that the executor holds, commands that it starts in them, and the program in
 * each that serves its files. See server/sandbox.h for requests and answers.
 *
 * sandboxes.c has the life of a sandbox, sandbox_create.c its beginning, sandbox_waiting.c those that
 * wait for a request, sandbox_settings.c what can be changed of it, commands.c commands, files.c
 * files, ended.c which have ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"
#include "jail/attach/attach.h"
#include "server/config/runtime.h"
#include "server/execution.h"
#include "server/executor/contexts.h"
#include "server/executor/input.h"
#include "server/executor/share.h"
#include "server/executor/source.h"
#include "server/sandbox.h"

struct brig_error;
struct brig_job;
struct executor;
struct message;
struct runtime;
struct sandbox;

#define SANDBOX_GONE_MAX 1000 /* sandboxes that are remembered when they have ended */

/* ---- commands ---- */

/* A client that waits for the end of a command, or also reads its output. */
struct follower {
    struct follower *next;
    struct caller caller;
    bool output;
};

struct command_stream {
    struct command *command;
    struct executor_source source; /* fd -1 at end of file; a terminal's is the job's */
    enum sandbox_piece kind;
    bool paused; /* the http process is slow */
};

struct command {
    struct command *next;
    struct sandbox *sandbox;
    uint64_t number;
    struct sandbox_request request; /* that started it */
    struct execution_request row;   /* for the history; in the arena of `request` */
    struct brig_job *job;           /* NULL once it has ended */
    struct executor_source source;
    struct command_stream streams[2];
    struct str kept; /* output: a byte for the kind, four for the length, then the piece */
    bool dropped;    /* output before `kept` was dropped */
    struct follower *followers;
    struct executor_input input; /* a pipe, or a copy of the terminal */
    int64_t started_ns;
    struct str result; /* encoded, once it has ended */
};

/* ---- files ---- */

/* A request about files: it waits, or the program in the sandbox works on it. */
struct file_request {
    struct file_request *next;
    struct caller caller;
    struct sandbox_request request;
    size_t sent;        /* bytes of the content that were sent */
    bool asked;         /* the request itself was sent */
    struct str bytes;   /* that were read */
    struct arena arena; /* of the entries */
    struct sandbox_entry *entries;
    size_t entry_count, entry_room;
    size_t entry_bytes; /* of their paths */
    bool cut;           /* there were more of them */
};

/* One program that serves files: the one for requests, or one for each watched directory. */
struct files {
    struct files *next;
    struct sandbox *sandbox;
    struct brig_job *job;
    struct executor_source source, socket;
    bool writing; /* the loop also waits for EPOLLOUT */
    bool watches, began;
    bool over; /* to be freed after this round of the loop */
    struct file_request *first, **last;
    size_t count;
    uint64_t progress_ms; /* when something was heard or sent last */
};

/* ---- sandboxes ---- */

#define SANDBOX_SHAPES 4

/* Settings of a sandbox in which code was run, so that others like it wait for the next request. */
struct sandbox_shape {
    struct str settings;            /* an encoded request, or empty */
    struct runtime_program program; /* the interpreter, when they were wanted first */
    uint64_t until_ms;              /* they wait no longer */
};

struct sandbox {
    struct sandbox *next, *previous;
    struct executor *executor;
    char id[EXECUTION_ID_LENGTH + 1];
    struct sandbox_request request; /* that created it */
    struct sandbox_request network; /* that changed its network last, or zero */
    const struct runtime *runtime;
    struct runtime *with_image; /* the same with the image of the request, or NULL */
    enum sandbox_state state;
    size_t slot;
    uid_t host_uid;
    struct brig_job *job;
    struct attach attach;
    struct executor_source source;
    int64_t created_ns;
    uint64_t deadline_ms;     /* monotonic; while it is paused, when it is ended nevertheless */
    uint64_t left_ms;         /* while it is paused: what was left until the deadline */
    struct command *commands; /* newest first */
    struct command_key *keys; /* newest first; see command_keys.c */
    size_t command_count, running_count;
    uint64_t next_number;
    struct files *files; /* the first is for requests, others watch */
    size_t watch_count;
    const char **unenforced;
    size_t unenforced_count;
    uint64_t limits[EXECUTION_LIMITS_]; /* in force */
    char token[SANDBOX_TOKEN_LENGTH + 1];
    struct context *contexts; /* see contexts.h */
    struct interpreter *interpreters;
    uint64_t next_context, next_run;
    struct share kept, file_bytes; /* its part of the pools below */
    struct sandbox_shape *shape;   /* it waits for a request like this; NULL: it has an owner */
};

struct sandbox_name {
    char id[EXECUTION_ID_LENGTH + 1], domain[64];
};

struct sandbox_gone {
    struct sandbox_name of;
    const char *why; /* NULL: it ended with an earlier executor */
    time_t ended_s;
};

struct sandboxes {
    struct sandbox *first;
    struct sandbox_fork *forks;                /* under way; see sandbox_fork.c */
    size_t count, paused_count, command_count; /* without those that wait */
    struct sandbox_shape shapes[SANDBOX_SHAPES];
    size_t waiting_count;
    uint64_t fill_ms;        /* when to look whether more should wait */
    struct share_pool kept;  /* output and results of commands and of runs in contexts */
    struct share_pool files; /* contents of files on their way */
    bool has_paused;         /* a stream waits for the http process */
    uint64_t due_ms;         /* when to look at the deadlines again; 0: now */
    int record;              /* the file in which their ids are, or -1; see ended.c */
    char record_name[64];
    struct sandbox_gone *gone;
    size_t gone_count;
};

/* ---- sandboxes.c ---- */

/* Handles MESSAGE_SANDBOX and MESSAGE_SANDBOX_LEAVE. */
int executor_sandbox_asked(struct executor *executor, const struct message *message,
                           struct brig_error *err);
int executor_sandbox_left(struct executor *executor, const struct message *message,
                          struct brig_error *err);
/* After each round of the loop: deadlines, the end of sandboxes, streams that were paused. */
void executor_sandboxes_settle(struct executor *executor, uint64_t now_ms);
/* When to call it if nothing else happens; UINT64_MAX: never. */
uint64_t executor_sandboxes_due_ms(const struct executor *executor);
/* The server shuts down: ends all sandboxes; with `soon` only those without a running command.
 * Returns whether none is left. */
bool executor_sandboxes_drain(struct executor *executor, bool soon);
void executor_sandboxes_abandon(struct executor *executor);
/* Lets it end; the sandbox is freed later. `why` is a constant, for clients that ask for it then. */
void executor_sandbox_end(struct sandbox *sandbox, const char *why);

void executor_sandbox_answer(struct executor *executor, struct caller caller,
                             const struct sandbox_answer *answer);
__attribute__((format(printf, 5, 6))) void
executor_sandbox_refuse(struct executor *executor, struct caller caller, enum sandbox_fault fault,
                        const char *field, const char *format, ...);

/* Whether a command or interpreter could not be started because of its working directory; then
 * the message loses the advice that is for callers of the library. */
bool executor_sandbox_blames_directory(struct brig_error *err);

/* Answers with everything about one sandbox. */
void executor_sandbox_tell(struct sandbox *sandbox, struct caller caller);
/* Sets the gauges. */
void executor_sandboxes_count(struct executor *executor);
/* Puts it into the list of all; its deadline begins. */
void executor_sandbox_link(struct sandbox *sandbox);
void executor_sandbox_unlink(struct sandbox *sandbox);
void executor_sandbox_job_ready(void *owner, uint32_t events);
/* The request that says what its network is. */
const struct sandbox_request *executor_sandbox_network(const struct sandbox *sandbox);

/* ---- sandbox_create.c ---- */

/* Creates a sandbox and takes the request; NULL if it was refused. */
struct sandbox *executor_sandbox_create(struct executor *executor, struct sandbox_request *request,
                                        struct caller caller);
/* What executions and sandboxes have in common, so that the same code checks it and makes the
 * jail. */
struct execution_request executor_sandbox_like(const struct sandbox_request *request);
/* Checks it; *ret_field is the wrong field. */
enum sandbox_fault executor_sandbox_check(const struct sandbox *sandbox,
                                          const struct execution_request *like,
                                          const char **ret_field, struct brig_error *err);
/* Its parts: takes the request; checks the settings; starts the jail; frees one that is in no list,
 * with its jail, if it has one. */
struct sandbox *executor_sandbox_new(struct executor *executor, struct sandbox_request *request);
enum sandbox_fault executor_sandbox_check_settings(struct sandbox *sandbox, const char **ret_field,
                                                   struct brig_error *err);
enum sandbox_fault executor_sandbox_start(struct sandbox *sandbox, const char **ret_field,
                                          struct brig_error *err);
void executor_sandbox_release(struct sandbox *sandbox);
/* Notes what this machine does not enforce for it, in the memory of its request. */
void executor_sandbox_keep_unenforced(struct sandbox *sandbox);

/* ---- sandbox_waiting.c ---- */

/* Code was run in the sandbox: others like it should wait. */
void executor_waiting_want(const struct sandbox *sandbox);
/* Replaces a sandbox that was checked and not started by one that waited, if there is one. */
bool executor_waiting_take(struct sandbox **sandbox);
/* Starts those that are missing, one at a time, and ends those that are not wanted any more. */
void executor_waiting_settle(struct executor *executor, uint64_t now_ms);
/* Limits have changed: ends all that wait, which have the old ones. */
void executor_waiting_renew(struct executor *executor);
void executor_waiting_end(struct executor *executor);

/* ---- sandbox_fork.c ---- */

void executor_sandbox_fork(struct sandbox *sandbox, const struct sandbox_request *request,
                           struct caller caller);
/* The sandbox is being ended: forks of it, or to it, fail. */
void executor_forks_cancel(const struct sandbox *sandbox);
void executor_forks_abandon(struct executor *executor);

/* ---- sandbox_settings.c ---- */

void executor_sandbox_set_timeout(struct sandbox *sandbox, const struct sandbox_request *request,
                                  struct caller caller);
/* Takes the request if it succeeds. */
void executor_sandbox_set_network(struct sandbox *sandbox, struct sandbox_request *request,
                                  struct caller caller);
/* While a sandbox is paused, its deadline and the time limits of its commands stand still. */
void executor_sandbox_pause(struct sandbox *sandbox, bool pause, struct caller caller);
/* Returns whether the sandbox was created so that it is paused at its deadline, and now is. */
bool executor_sandbox_pause_at_deadline(struct sandbox *sandbox);

/* ---- commands.c ---- */

void executor_command_start(struct sandbox *sandbox, struct sandbox_request *request,
                            struct caller caller);
void executor_command_list(struct sandbox *sandbox, struct caller caller);
/* SANDBOX_COMMAND, _INPUT, _SIGNAL and _RESIZE. */
void executor_command_asked(struct sandbox *sandbox, const struct sandbox_request *request,
                            struct caller caller);
/* Removes a follower; false if there is none with this tag. */
bool executor_command_left(struct sandbox *sandbox, struct caller caller);
void executor_commands_pause(struct sandbox *sandbox, bool paused);
void executor_commands_cancel(struct sandbox *sandbox);
void executor_commands_resume_streams(struct sandbox *sandbox);
/* Keeps the last ended commands only. Must not be called while events of the loop are pending. */
void executor_commands_settle(struct sandbox *sandbox);
void executor_commands_free(struct sandbox *sandbox);
/* The policy of a command: the sandbox's, with other variables, limits and directory. In the arena
 * of the request. */
struct brig_policy *executor_command_policy(const struct sandbox *sandbox,
                                            struct sandbox_request *request,
                                            struct brig_error *err);

/* ---- command_keys.c ---- */

/* Handles a request with an idempotency key that was used before: false if it is a new one. *ret_number
 * is the command's, or 0 if the request was refused. */
bool executor_key_find(struct sandbox *sandbox, const struct sandbox_request *request,
                       struct caller caller, uint64_t *ret_number);
/* Remembers the key of a command that was started, if it has one. */
void executor_key_add(struct sandbox *sandbox, const struct command *command);
void executor_keys_free(struct sandbox *sandbox);

/* ---- command_streams.c ---- */

/* Whether more output of the sandbox may be kept; and counts it. */
bool executor_output_has_room(const struct sandbox *sandbox);
void executor_output_count(struct sandbox *sandbox, size_t more, size_t less);

/* Appends what is kept of a stream. */
void executor_output_collect(const struct command *command, enum sandbox_piece kind,
                             struct str *out);
/* Sends everything that is kept. */
void executor_output_tell(const struct command *command, struct caller caller);
/* Frees it and the result. */
void executor_output_forget(struct command *command);
bool executor_follower_add(struct command *command, struct caller caller, bool output);
bool executor_follower_remove(struct command *command, struct caller caller);
/* Takes the fd, which may be -1 with errno set. */
int executor_stream_open(struct command *command, int index, enum sandbox_piece kind, int fd,
                         struct brig_error *err);
/* Returns 1 if there may be more. */
int executor_stream_read(struct command_stream *stream);
void executor_stream_close(struct command_stream *stream);

/* ---- files.c ---- */

/* Takes the request. */
void executor_files_asked(struct sandbox *sandbox, struct sandbox_request *request,
                          struct caller caller);
bool executor_files_left(struct sandbox *sandbox, struct caller caller);
/* Ends programs that are idle or do not answer, and frees those that are over. */
void executor_files_settle(struct sandbox *sandbox, uint64_t now_ms);
/* Ends all of them; their requests are answered with the fault. */
void executor_files_end(struct sandbox *sandbox, enum sandbox_fault fault);

/* ---- ended.c ---- */

/* Reads the records of executors that have died. */
void executor_ended_open(struct executor *executor);
void executor_ended_close(struct executor *executor);
/* Records the sandbox in its slot, or clears the slot. */
void executor_ended_note(struct executor *executor, size_t slot, const char *id,
                         const char *domain);
/* Remembers that a sandbox was ended. */
void executor_ended_add(const struct sandbox *sandbox, const char *why);
/* Answers a request about a sandbox that is not there: when and why it ended, if that is known. */
void executor_ended_refuse(struct executor *executor, const struct sandbox_request *request,
                           struct caller caller);
