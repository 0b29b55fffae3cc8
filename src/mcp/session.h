/* SPDX-License-Identifier: MIT */
/* One client of brig-mcp: what it may do, its calls, and what the parts of the program share. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "mcp/child.h"
#include "mcp/output.h"

struct call;
struct session;

#define SESSION_RUNNING_MAX 8 /* calls at the same time */
#define SESSION_CALLS_MAX 32  /* these, and those that wait */
#define SESSION_TOKEN_MAX 40

/* A tool: begin() starts a child or sets the result, ended() is called at the end of each child and
 * does the same. */
struct tool {
    const char *name;
    bool alone; /* no other call runs at the same time */
    void (*begin)(struct session *session, struct call *call);
    void (*ended)(struct session *session, struct call *call);
    /* The user's answer, for calls that ask; NULL for others. The answer is borrowed. */
    void (*answered)(struct session *session, struct call *call, const json_t *answer);
};

enum call_state {
    CALL_WAITING,
    CALL_RUNNING, /* has a child */
    CALL_ASKING,  /* the user was asked; legacy clients only */
    CALL_ENDED,
};

/* A call of a tool. */
struct call {
    struct call *next;
    json_t *id;
    json_t *progress; /* the token, or NULL */
    json_t *params;
    const json_t *arguments; /* in params; never NULL */
    const struct tool *tool;
    enum call_state state;
    bool modern;    /* the request was of revision 2026-07-28 */
    bool elicits;   /* this client can show a form to the user */
    bool cancelled; /* no answer is wanted */
    struct child child;
    uint64_t started_ms;
    json_t *result; /* set by the tool: the end of the call */

    /* Progress. */
    struct str lines;     /* output that was not reported yet */
    uint64_t reported_ms; /* since started_ms; 0: nothing yet */

    /* The question to the user. */
    int question;                      /* the id of the request to the client, or 0 */
    bool confirmed;                    /* the user has agreed */
    bool applying;                     /* the child is brig apply */
    bool risky;                        /* also to changes with a risk */
    char asked[SHA256_HEX_LENGTH + 1]; /* a hash of the items that the user was asked about */
};

struct session {
    const char *brig;
    const char *jail;
    bool jail_kept;                 /* the user has named it: it is not removed at the end */
    bool open_world;                /* runs can reach a network */
    bool has_project;               /* the working directory is visible in the jail */
    uint64_t timeout_max_s;         /* from --timeout; 0: none */
    const char *const *run_options; /* for each run; ends with NULL */

    struct output out;
    json_t *tools;      /* the list for the client */
    bool elicits;       /* a legacy client can show a form */
    struct call *calls; /* in order of arrival */
    size_t call_count;
    uint64_t generation;           /* runs that were started */
    int questions;                 /* requests that were sent to the client */
    char token[SESSION_TOKEN_MAX]; /* of the last question to a modern client */
    char token_asked[SHA256_HEX_LENGTH + 1];
    bool ending;
};

/* ---- protocol.c ---- */

/* Handles one line of the client. */
void session_line(struct session *session, const char *line, size_t length);
/* Handles a line that is too long. */
void session_long_line(struct session *session);
/* Sends the answer of a call that has ended, unless it was cancelled. */
void session_answer(struct session *session, const struct call *call);
/* Sends the question of a call to a legacy client. */
void session_ask(struct session *session, struct call *call, json_t *params);
void session_progress(struct session *session, const struct call *call, double seconds,
                      const char *message);

/* ---- calls.c ---- */

/* Queues a call and takes ownership of params; the others are borrowed. False if there are too
 * many. */
bool calls_add(struct session *session, json_t *id, json_t *params, const struct tool *tool,
               bool modern, bool elicits);
struct call *calls_find(const struct session *session, const json_t *id);
void calls_cancel(struct call *call);
void calls_cancel_all(struct session *session);
/* Kills runs that do not end. */
void calls_kill_all(struct session *session);
/* Starts calls that can start, and removes those that have ended. */
void calls_advance(struct session *session);
/* Fills in descriptors to poll, at most CALLS_POLL, and returns their number. */
#define CALLS_POLL ((size_t)SESSION_RUNNING_MAX * CHILD_POLL)
size_t calls_poll(const struct session *session, struct pollfd *fds);
/* The same descriptors in the same order, after poll(). */
void calls_process(struct session *session, const struct pollfd *fds);
/* Milliseconds until progress is due, or -1. */
int calls_timeout(const struct session *session);
void calls_report(struct session *session);
void calls_free(struct session *session);

/* ---- tools.c ---- */

/* Reads the list of tools; false if memory is lacking. */
bool tools_load(struct session *session);
const struct tool *tools_find(const char *name);

/* Sets the result of a call: a text, and a value that the output schema describes, which may be NULL
 * and is taken over. */
void call_finish(struct call *call, const char *text, json_t *structured, bool is_error);
/* Sets a result that is an error, from a format. */
void call_fail(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Starts a verb of brig for the session's jail: `brig VERB -j JAIL WORDS…`; `words` ends with NULL. `input` is its
 * standard input, -1: /dev/null. Output up to `output_max` bytes is kept. */
void call_start_verb(struct session *session, struct call *call, const char *verb,
                     const char *const *words, int input, size_t output_max);
/* Starts a shell script in the jail, with `words` as its arguments. The script sends its errors to
 * CHILD_ERRORS_FD. */
void call_start_script(struct session *session, struct call *call, const char *script,
                       const char *const *words, int input, uint64_t timeout_s, size_t output_max);
/* Messages of brig, without "brig: ", as an array of texts. */
json_t *call_messages(const struct call *call);
/* The result that --result has written, or NULL. */
json_t *call_run_result(const struct call *call);
/* Whether the script or verb has ended with 0 or `also`; else the call fails with its messages. */
bool call_worked(struct call *call, int also);
/* A string argument, or NULL. */
const char *call_text(const struct call *call, const char *name);
int64_t call_number(const struct call *call, const char *name, int64_t otherwise);
bool call_flag(const struct call *call, const char *name);

/* ---- The tools ---- */
extern const struct tool tool_run_code, tool_run_command;                 /* tools_run.c */
extern const struct tool tool_file_read, tool_file_write, tool_file_list; /* tools_files.c */
extern const struct tool tool_diff, tool_apply, tool_reset;               /* tools_changes.c */
