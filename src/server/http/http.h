/* SPDX-License-Identifier: MIT */
/* The http process: the state its files share, and what each of them does. One thread, one loop; see
 * http.c. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/str.h"
#include "server/http/access_log.h"
#include "server/http/clients.h"
#include "server/http/metrics.h"
#include "server/http/route.h"
#include "server/message.h"

struct brig_error;
struct server_config;
struct stream;

/* Bodies, waiting requests, output and answers of all clients together. */
#define HTTP_MEMORY_MAX ((size_t)512 << 20)
/* A slower body, or a slower reader of an answer, is disconnected. */
#define HTTP_BYTES_PER_MS_MIN 16
#define HTTP_TICK_MS 250
#define HTTP_REQUEST_ID_MAX 64

/* One accepted socket, for as long as it is open. */
struct connection {
    LIST_ENTRY(connection) link;
    int fd;
    uint64_t deadline_ms; /* 0: none */
};

enum exchange_state {
    EXCHANGE_BODY,     /* the request is being read */
    EXCHANGE_WAITING,  /* suspended until another process has answered */
    EXCHANGE_ANSWER,   /* `answer` can be sent */
    EXCHANGE_STREAM,   /* `stream` can be sent */
    EXCHANGE_ANSWERED, /* libmicrohttpd has the answer */
};

/* One request and its answer. */
struct exchange {
    struct http *http;
    LIST_ENTRY(exchange) link;
    struct MHD_Connection *connection;
    struct connection *socket;
    const struct route *route; /* NULL: none */
    enum exchange_state state;
    bool suspended, gone;
    bool half_closed; /* the client sends no more, and may wait for its answer */
    bool http_1_0;
    bool closes; /* the connection, after the answer */
    char request_id[HTTP_REQUEST_ID_MAX + 1];
    char path_id[EXECUTION_ID_LENGTH + 1]; /* {id} of the path */
    char execution_id[EXECUTION_ID_LENGTH + 1];
    char domain[CLIENTS_DOMAIN_LENGTH + 1]; /* of the API key; "": none was needed */
    size_t key;                             /* its index in security.allowed_keys */
    struct client client;
    const char *method; /* libmicrohttpd's, as long as the request */
    char *path;         /* as it came, for the log */
    uint64_t began_us, body_bytes, sent_bytes;
    struct execution_trace trace;
    size_t charged; /* bytes of HTTP_MEMORY_MAX */
    struct str body;
    /* The answer. */
    unsigned status;
    const char *content_type;
    unsigned long retry_after_s; /* 0: no such header */
    struct str answer;
    /* A run. */
    struct ticket *ticket; /* what is waited for, or NULL */
    struct stream *stream; /* of POST /execute/stream once it has begun, or NULL */
};

enum ticket_kind { TICKET_RUN, TICKET_KILL, TICKET_HISTORY };

/* A question to another process. It outlives a client that goes away. */
struct ticket {
    TAILQ_ENTRY(ticket) link;
    uint64_t tag;
    enum ticket_kind kind;
    struct exchange *exchange; /* NULL: the client is gone */
    size_t language;           /* index of the runtime */
    bool queued, base64;
    bool counted; /* in key_places */
    size_t key;
    uint64_t queued_until_ms;
    struct str packed; /* the request, until it is sent */
};

struct http {
    const struct server_config *config;
    struct channel *control;
    struct channel *peers[ROLES_]; /* the executor and the history process; NULL: not there now */
    bool writing[ROLES_ + 1];      /* the loop waits for room; the last is the control channel */
    struct MHD_Daemon *daemon;
    int listener;
    int epoll;
    bool checks_host; /* no keys, on loopback: Host must be this machine */
    bool tls;         /* there is a certificate */
    struct clients clients;
    struct rate *rate;
    struct access_log log;
    struct metrics metrics;
    struct message_gauges gauges;
    bool knows_executor; /* its gauges have come, so the number of its runs is known */
    LIST_HEAD(, connection) connections;
    size_t connection_count;
    LIST_HEAD(, exchange) exchanges;
    size_t memory;
    TAILQ_HEAD(tickets, ticket) tickets; /* in the order of their requests */
    size_t running, queued;
    size_t key_places[CONFIG_LIST_MAX]; /* running or queued, of each key */
    uint64_t next_tag, now_ms, next_tick_ms;
    struct str runtimes, store; /* JSON, from the executor and the history process */
    bool draining;
    uint64_t drain_until_ms;
};

/* ---- http.c: the loop, and messages of other processes ---- */

enum loop_source {
    LOOP_HTTP,     /* libmicrohttpd has something to do */
    LOOP_CONTROL,  /* the supervisor */
    LOOP_EXECUTOR, /* */
    LOOP_HISTORY,  /* */
    LOOP_END,      /* from here on: the client of ticket (value - LOOP_END) went away */
};
int loop_add(struct http *http, int fd, enum loop_source source, struct brig_error *err);
/* Sends; false if the process is not there. */
bool http_send(struct http *http, enum server_role to, enum message_type type, uint64_t tag,
               const void *bytes, size_t length);

/* ---- confine.c: no files, no programs, no new sockets but those that are accepted ---- */

/* For good. Everything that is needed is open by now; `open_files` is how many there may be. */
int confine_http(uint64_t open_files, struct brig_error *err);

/* ---- daemon.c: between libmicrohttpd and us ---- */

int daemon_start(struct http *http, struct brig_error *err);
void daemon_stop(struct http *http);
/* Disconnects clients that are too slow. */
void daemon_tick(struct http *http);

/* ---- answer.c: exchanges and their answers ---- */

struct exchange *exchange_new(struct http *http, struct MHD_Connection *connection,
                              const char *method, const char *path);
void exchange_free(struct exchange *exchange);
/* Counts bytes that are held for it; false, and nothing is counted, if there is no room. */
bool exchange_charge(struct exchange *exchange, size_t bytes);
/* Nothing is held for it any more. */
void exchange_release(struct exchange *exchange);
void exchange_suspend(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);
/* The client has closed its side, or all of it. */
void exchange_half_closed(struct exchange *exchange);
/* The client went away: its run is ended. */
void exchange_gone(struct exchange *exchange);

/* The exchange can be answered with this; `text` is moved out of. */
void answer_json(struct exchange *exchange, unsigned status, struct str *text);
void answer_text(struct exchange *exchange, unsigned status, const char *content_type,
                 struct str *text);
/* {"error", "code", "request_id"}; `message` of NULL is the table's. */
void answer_error(struct exchange *exchange, enum http_error error, const char *message);
/* With a "field" too, where it is not "". */
void answer_field_error(struct exchange *exchange, enum http_error error, const char *field,
                        const char *message);
/* The same object as text, for a stream. */
void answer_write_error(const struct exchange *exchange, enum http_error error, const char *field,
                        const char *message, struct str *out);
/* Hands the answer to libmicrohttpd: 0, or negative if the connection has to be closed. */
int answer_send(struct exchange *exchange);
/* The same for a response that was made from a callback. */
int answer_queue(struct exchange *exchange, struct MHD_Response *response);

/* ---- execute.c: tickets, and POST /execute from the body to the executor and back ---- */

struct ticket *ticket_new(struct http *http, enum ticket_kind kind, struct exchange *exchange);
struct ticket *ticket_find(struct http *http, uint64_t tag);
void ticket_free(struct http *http, struct ticket *ticket);
/* The process is gone: answers everything that waited for it. */
void tickets_lost(struct http *http, enum server_role role);

void execute_begin(struct exchange *exchange); /* of the table of routes */
/* The client is gone: cancels the run, or takes it out of the queue. */
void execute_abandon(struct http *http, struct ticket *ticket);
/* MESSAGE_BEGUN, MESSAGE_OUTPUT and MESSAGE_DONE. */
void execute_begun(struct http *http, const struct message *message);
void execute_output(struct http *http, const struct message *message);
void execute_done(struct http *http, const struct message *message);
/* Running executions, including those an earlier http process has started. */
size_t execute_count(const struct http *http);
/* Starts what waits, as long as there are places. */
void execute_start_waiting(struct http *http);
/* Answers requests that have waited too long; all of them when the server drains. */
void execute_tick(struct http *http);

/* ---- pages.c: the other routes ---- */

void pages_list(struct exchange *exchange);
void pages_get(struct exchange *exchange);
void pages_kill(struct exchange *exchange);
void pages_health(struct exchange *exchange);
void pages_metrics(struct exchange *exchange);
void pages_runtimes(struct exchange *exchange);
void pages_openapi(struct exchange *exchange);
/* MESSAGE_ROWS, MESSAGE_MISSING, MESSAGE_FAILED, MESSAGE_KILLED. */
void pages_answer(struct http *http, const struct message *message);
