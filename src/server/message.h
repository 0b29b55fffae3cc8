/* SPDX-License-Identifier: MIT */
/* Messages between brigd's own processes, over pairs of SOCK_SEQPACKET sockets. A message has a type, a
 * tag that answers repeat, and bytes; what is large travels in a memfd. Either side may be hostile to
 * the other: a message that does not keep to the form ends the channel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;

enum message_type {
    /* supervisor → every role */
    MESSAGE_PEER = 1, /* a new socket to another role; tag: enum server_role; with an fd */
    MESSAGE_DRAIN,    /* finish what is begun, take nothing new, then exit with 0 */
    MESSAGE_TLS,      /* http: certificate and key anew: PEM, NUL, PEM */
    MESSAGE_LOG,      /* http: the access log anew; with an fd */
    /* every role → supervisor */
    MESSAGE_READY,   /* confined and able to serve; bytes: a line for the log, may be empty */
    MESSAGE_WARNING, /* bytes: a line for the log */
    /* http → executor */
    MESSAGE_EXECUTE, /* an execution_request without an id; tag chosen by the http process */
    MESSAGE_CANCEL,  /* tag of a MESSAGE_EXECUTE: the client went away */
    MESSAGE_KILL, /* bytes: an id, then the domain that asks, or nothing; answered by MESSAGE_KILLED with the same tag */
    /* executor → http */
    MESSAGE_BEGUN,  /* the first of a tag of MESSAGE_EXECUTE: the id that it has been given */
    MESSAGE_OUTPUT, /* one byte (1 or 2), then what came on that stream; only if it was asked for */
    MESSAGE_DONE,   /* an execution_result; the last of a tag */
    MESSAGE_KILLED, /* one byte: 1 it was running and is being ended, 0 there is no such */
    MESSAGE_RUNTIMES, /* JSON for GET /runtimes; sent when a http process comes and when it changes */
    MESSAGE_GAUGES,   /* struct message_gauges, when they changed, at most ten times a second */
    /* executor → history; tag: counts up */
    MESSAGE_BEGIN,        /* an execution_request */
    MESSAGE_END,          /* an execution_result */
    MESSAGE_NEW_EXECUTOR, /* what an earlier one had running is lost */
    /* http → history */
    MESSAGE_LIST,    /* a query as text (history/query.h) */
    MESSAGE_GET,     /* an id, then the domain that asks, or nothing */
    MESSAGE_BLOCKED, /* an execution_request that the detector refused: a row of its own */
    /* history → executor */
    MESSAGE_STORED, /* all up to this tag is safe */
    /* history → http */
    MESSAGE_ROWS,    /* JSON, the body of the answer */
    MESSAGE_MISSING, /* GET: there is no such id */
    MESSAGE_FAILED,  /* bytes: why not, one line: the database does not answer */
    MESSAGE_STORE,   /* JSON for /health: {"type":…,"status":…,"spooled":N}; when it changed */
    MESSAGE_TYPES_
};

enum server_role { ROLE_HTTP, ROLE_EXECUTOR, ROLE_HISTORY, ROLES_ };
const char *server_role_name(enum server_role role);

#define MESSAGE_POOLS_MAX 64 /* runtimes */

/* Of one runtime: jails that wait for code, and since the start how many did what. */
struct message_pool {
    uint64_t ready, building, target;
    uint64_t hits, misses, refills, discarded;
};

struct message_gauges {
    uint64_t active;    /* executions */
    uint64_t inherited; /* of these, begun for an earlier http process */
    uint64_t oom_kills; /* since the start */
    struct message_pool pools[MESSAGE_POOLS_MAX];
};

struct message {
    enum message_type type;
    uint64_t tag;
    char *bytes; /* NUL-terminated beyond length; owned */
    size_t length;
    int fd; /* or -1; owned */
};
void message_done(struct message *message);
#define automessage __attribute__((cleanup(message_done)))

#define MESSAGE_BYTES_MAX ((size_t)32 << 20)
#define MESSAGE_INLINE_MAX ((size_t)48 << 10)
#define CHANNEL_QUEUE_MAX ((size_t)128 << 20)

/* One end. What cannot be sent at once is queued. */
struct channel;
int channel_new(int *fd, struct channel **ret_channel, struct brig_error *err); /* takes the fd */
void channel_free(struct channel *channel);                                     /* accepts NULL */
int channel_fd(const struct channel *channel);
/* Whether something waits for the socket to be writable; then channel_flush(). */
bool channel_wants_write(const struct channel *channel);
/* Bytes that are queued. A sender of much should pause when they are many. */
size_t channel_queued(const struct channel *channel);
/* Sends or queues a copy. Fails when the other side is gone or the queue is full. */
int channel_send(struct channel *channel, enum message_type type, uint64_t tag, const void *bytes,
                 size_t length, struct brig_error *err);
int channel_send_fd(struct channel *channel, enum message_type type, uint64_t tag, int fd,
                    struct brig_error *err);
int channel_flush(struct channel *channel, struct brig_error *err);
/* The next message: 1, 0 if there is none now, negative if the other side is gone or misbehaves. */
int channel_receive(struct channel *channel, struct message *ret_message, struct brig_error *err);
