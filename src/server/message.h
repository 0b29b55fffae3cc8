/* SPDX-License-Identifier: MIT */
/* Messages between brigd's processes, over SOCK_SEQPACKET socket pairs. A message has a type, a tag
 * that answers repeat, and bytes; a large one is sent in pieces. Neither side trusts the other: a
 * malformed message ends the channel.
 *
 * Only the supervisor sends file descriptors. The kernel limits how many are on their way for each
 * user, and jails can use that number up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;

enum message_type {
    /* supervisor → every role */
    MESSAGE_PEER = 1, /* a new socket to another role; tag: enum server_role; with an fd */
    MESSAGE_DRAIN,    /* finish requests in progress, accept no new ones, then exit with 0 */
    MESSAGE_TLS,      /* http: new certificate and key: PEM, NUL, PEM */
    MESSAGE_LOG,      /* http: new access log; with an fd */
    MESSAGE_CONFIG,   /* changed API keys, rates and limits (config_reload()) */
    MESSAGE_PING,     /* answer with MESSAGE_PONG: shows that the loop of the role is running */
    /* every role → supervisor */
    MESSAGE_READY,   /* confined and able to serve; bytes: a line for the log, may be empty */
    MESSAGE_WARNING, /* bytes: a line for the log */
    MESSAGE_PONG,
    /* executor, history: start the process of role `tag` anew; bytes: a line for the log. Http: it may
     * have been taken over. History: only a new one gets a new channel to the executor. */
    MESSAGE_REPLACE,
    /* http → executor */
    MESSAGE_EXECUTE, /* an execution_request without an id; the http process chooses the tag */
    MESSAGE_CANCEL,  /* tag of a MESSAGE_EXECUTE: the client disconnected */
    MESSAGE_BLOCKED, /* an execution_request that the detector refused; becomes a row */
    MESSAGE_KILL,    /* an id, then the domain that asks, or nothing; answer: MESSAGE_KILLED */
    /* executor → http */
    MESSAGE_BEGUN,    /* first answer to MESSAGE_EXECUTE: the id of the execution */
    MESSAGE_OUTPUT,   /* one byte (1 or 2), then output of that stream; only if requested */
    MESSAGE_DONE,     /* last answer to MESSAGE_EXECUTE: an execution_result */
    MESSAGE_KILLED,   /* one byte: 1 the execution is being ended, 0 it is not running */
    MESSAGE_RUNTIMES, /* JSON for GET /runtimes; sent to a new http process and on changes */
    MESSAGE_GAUGES,   /* struct message_gauges, on changes, at most ten times a second */
    /* executor → history; the tag counts up; also MESSAGE_BLOCKED */
    MESSAGE_BEGIN,        /* an execution_request */
    MESSAGE_END,          /* an execution_result */
    MESSAGE_NEW_EXECUTOR, /* runs of an earlier executor are lost */
    /* http → history */
    MESSAGE_LIST, /* a query as text (history/query.h) */
    MESSAGE_GET,  /* an id, then the domain that asks, or nothing */
    /* history → executor */
    MESSAGE_STORED, /* everything up to this tag is on disk */
    /* history → http */
    MESSAGE_ROWS,    /* JSON, the body of the answer */
    MESSAGE_MISSING, /* GET: the id does not exist */
    MESSAGE_FAILED,  /* bytes: one line why the database did not answer */
    MESSAGE_STORE,   /* struct message_store, on changes */
    /* Asynchronous and repeated executions; see history/queue.h. */
    MESSAGE_SUBMIT,  /* http → history: an execution_request to store and to queue */
    MESSAGE_QUEUED,  /* history → http, answer: one byte (enum message_verdict), then an id */
    MESSAGE_PENDING, /* history → http, answer to MESSAGE_GET: JSON of one that has not ended */
    MESSAGE_RESULT, /* http → history: an id, then the domain; answer: MESSAGE_OUTCOME, _PENDING */
    MESSAGE_OUTCOME,  /* history → http: the execution_result */
    MESSAGE_ENDED,    /* history → http: the id of a kept execution that ended; "": of any */
    MESSAGE_USAGE,    /* http → history: a query as text; answer: MESSAGE_ROWS */
    MESSAGE_PEEK,     /* http → executor: an id, then the domain; answer: MESSAGE_PEEKED */
    MESSAGE_PEEKED,   /* executor → http: an execution_result so far; or 8 bytes, the position */
    MESSAGE_REPEATED, /* executor → http, last answer to MESSAGE_EXECUTE: as MESSAGE_QUEUED */
    MESSAGE_WAITING,  /* history → executor: entries of the queue (queue_entries_encode()) */
    MESSAGE_CLAIM,    /* executor → history: an id of the queue; answer: MESSAGE_CLAIMED */
    MESSAGE_RESERVE,  /* executor → history: an execution_request with an idempotency key; same */
    MESSAGE_CLAIMED,  /* history → executor: a byte (enum message_verdict), a request or an id */
    MESSAGE_CALL,     /* history → executor: a callback to make (queue_call_encode()) */
    MESSAGE_CALLED,   /* executor → history: what became of it (queue_called_encode()) */
    /* http → executor, about sandboxes (server/sandbox.h) */
    MESSAGE_SANDBOX,       /* a sandbox_request; the http process chooses the tag */
    MESSAGE_SANDBOX_LEAVE, /* tag of a MESSAGE_SANDBOX: nothing more is to be sent */
    /* executor → http */
    MESSAGE_SANDBOX_PIECE,  /* one byte (enum sandbox_piece), then bytes; more messages follow */
    MESSAGE_SANDBOX_ANSWER, /* a sandbox_answer; the last one unless it says `more` */
    /* Executions with stages; the tag is that of a MESSAGE_EXECUTE */
    MESSAGE_INPUT,  /* http → executor: standard input of one that is interactive */
    MESSAGE_SIGNAL, /* http → executor: one byte, the signal, for the stage that runs */
    /* http → executor: a uint64_t, bytes of output that an interactive client has taken */
    MESSAGE_TAKEN,
    MESSAGE_STAGE, /* executor → http, one that streams: struct message_stage */
    /* http → history, about notes (history/notes.h) */
    MESSAGE_NOTE,        /* an id, then the domain; answer: MESSAGE_NOTED */
    MESSAGE_NOTE_REMOVE, /* the same, and removes it */
    MESSAGE_NOTE_LIST,   /* a note_page; answer: MESSAGE_NOTED with a note_list */
    /* history → http */
    MESSAGE_NOTED, /* a note */
    /* executor → http → history; tag: of a row that is on its way to the history process in pieces.
     * Questions that follow are answered when it has arrived. */
    MESSAGE_ROW,
    MESSAGE_TYPES_
};

/* Whether an execution may run. */
enum message_verdict {
    VERDICT_GO = 1,   /* it is queued, or is the executor's to run */
    VERDICT_REPEATED, /* the idempotency key was used for the execution with this id */
    VERDICT_CONFLICT, /* it was used with another body */
    VERDICT_GONE,     /* it is not in the queue any more */
    VERDICT_FULL,     /* of the queue */
    VERDICT_KEY_FULL, /* of the API key's part of the queue */
    VERDICT_LATER,    /* the database does not answer */
};

enum server_role { ROLE_HTTP, ROLE_EXECUTOR, ROLE_HISTORY, ROLES_ };
const char *server_role_name(enum server_role role);

/* A stage has begun or ended. */
struct message_stage {
    uint32_t stage; /* enum execution_stage */
    uint32_t ended;
    int32_t exit_code; /* -1: none */
    uint32_t signal;
};

#define MESSAGE_POOLS_MAX 64 /* runtimes */

/* One runtime: its waiting jails, and counters since the start. */
struct message_pool {
    uint64_t ready, building, target;
    uint64_t hits, misses, refills, discarded;
};

struct message_gauges {
    uint64_t active;         /* executions */
    uint64_t places;         /* most executions at once, by the machine's open files and memory */
    uint64_t inherited;      /* of the active, not started for this http process */
    uint64_t waiting;        /* in the queue of POST /executions */
    uint64_t memory_percent; /* in use, of the machine or the cgroup */
    uint64_t sandboxes, sandboxes_paused, sandboxes_waiting, sandbox_commands;
    struct message_pool pools[MESSAGE_POOLS_MAX];
};

#define MESSAGE_WORD_MAX 16
#define MESSAGE_TEXT_MAX 512

/* The database, for /health and /metrics. */
struct message_store {
    char type[MESSAGE_WORD_MAX], status[MESSAGE_WORD_MAX]; /* "sqlite", "ok" */
    uint64_t spooled, dropped, thinned;
    uint64_t lag_ms;                /* age of the oldest row that waits */
    uint64_t full;                  /* 1: no room for more executions */
    char problem[MESSAGE_TEXT_MAX]; /* or "" */
};

struct message {
    enum message_type type;
    uint64_t tag;
    char *bytes; /* owned; followed by a NUL that is not counted */
    size_t length;
    int fd; /* or -1; owned */
};
void message_done(struct message *message);
#define automessage __attribute__((cleanup(message_done)))

#define MESSAGE_BYTES_MAX ((size_t)32 << 20)
#define MESSAGE_PIECE_MAX ((size_t)48 << 10)
#define CHANNEL_QUEUE_MAX ((size_t)128 << 20)
#define CHANNEL_BUSY ((size_t)8 << 20)

/* One end of a connection. Messages that cannot be sent at once are queued, and no sender ever waits.
 * A process does not read a request while the queue for its answer is busy, so that queues stay short. */
struct channel;
int channel_new(int *fd, struct channel **ret_channel, struct brig_error *err); /* takes the fd */
void channel_free(struct channel *channel);                                     /* accepts NULL */
int channel_fd(const struct channel *channel);
/* Returns whether messages are queued: call channel_flush() when the socket is writable. */
bool channel_wants_write(const struct channel *channel);
size_t channel_queued(const struct channel *channel);
/* Whether more than CHANNEL_BUSY is queued: then begin no work that sends its result here. */
bool channel_is_busy(const struct channel *channel); /* accepts NULL */
/* Whether a message of this length can be queued now. */
bool channel_has_room(const struct channel *channel, size_t length);
/* Lets more than CHANNEL_QUEUE_MAX be queued. */
void channel_add_room(struct channel *channel, size_t length);
/* Sends or queues a copy. Fails with BRIG_E_SYSTEM if the other side is gone, and with another code
 * if the queue is full, the message is too long or there is no memory. */
int channel_send(struct channel *channel, enum message_type type, uint64_t tag, const void *bytes,
                 size_t length, struct brig_error *err);
int channel_send_fd(struct channel *channel, enum message_type type, uint64_t tag, int fd,
                    struct brig_error *err);
int channel_flush(struct channel *channel, struct brig_error *err);
/* Receives the next message. Returns 1, 0 if there is none now, negative if the other side is gone
 * or sent a malformed message. */
int channel_receive(struct channel *channel, struct message *ret_message, struct brig_error *err);
