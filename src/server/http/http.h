/* SPDX-License-Identifier: MIT */
/* The http process: the state shared by its files, and their functions. One thread, one loop; see
 * http.c. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/sha256.h"
#include "base/str.h"
#include "server/http/access_log.h"
#include "server/http/clients.h"
#include "server/http/metrics.h"
#include "server/http/request.h"
#include "server/http/route.h"
#include "server/http/sandbox.h"
#include "server/message.h"
#include "server/sandbox.h"

struct brig_error;
struct server_config;
struct stream;
struct upgrade;

/* Limit for bodies, queued requests, output and answers of all clients together. */
#define HTTP_MEMORY_MAX ((size_t)512 << 20)
/* Clients that send a body or read an answer more slowly are disconnected. */
#define HTTP_BYTES_PER_MS_MIN 16
#define HTTP_TICK_MS 250
#define HTTP_REQUEST_ID_MAX 64

/* An accepted socket. */
struct connection {
    LIST_ENTRY(connection) link;
    int fd;
    uint64_t deadline_ms; /* 0: none */
    struct net_address address;
    bool busy;    /* has a request that was not refused */
    bool closing; /* was shut down */
    bool surplus; /* its client has more than server.max_connections_per_client */
};

enum exchange_state {
    EXCHANGE_BODY,     /* the request is being read */
    EXCHANGE_WAITING,  /* suspended until another process answers */
    EXCHANGE_ANSWER,   /* `answer` is ready to be sent */
    EXCHANGE_STREAM,   /* `stream` is ready to be sent */
    EXCHANGE_UPGRADE,  /* the connection is a WebSocket: `upgrade` */
    EXCHANGE_ANSWERED, /* libmicrohttpd has the answer */
};

/* What an interface does with what the other processes say. There is brigd's own, and one for each
 * program that server/api translates from. NULL: nothing, unless said otherwise. */
struct dialect {
    /* Answers with an error; if the exchange has a stream, ends it. */
    void (*fail)(struct exchange *exchange, enum http_error error, const char *field,
                 const char *message);
    /* An execution: the executor knows it; output and stages of one that streams; its result, the last
     * call, which sets the answer; and now and then while it has a stream. */
    void (*begun)(struct exchange *exchange);
    void (*output)(struct exchange *exchange, bool is_stderr, const char *bytes, size_t length);
    void (*stage)(struct exchange *exchange, const struct message_stage *stage);
    void (*done)(struct exchange *exchange, const struct execution_result *result);
    void (*tick)(struct exchange *exchange);
    /* An execution of the queue. Each answers the exchange or asks again. NULL: as brigd's own. */
    void (*queued)(struct exchange *exchange, enum message_verdict verdict, const char *id);
    void (*ended)(struct exchange *exchange); /* it may have ended, or the time to wait is over */
    void (*noted)(struct exchange *exchange, const struct message *message); /* to TICKET_NOTE */
    /* A fault of a question about a sandbox; NULL: sandbox_fail(). */
    void (*sandbox_failed)(struct exchange *exchange, const struct sandbox_answer *answer);
    const char *key_name; /* a header or parameter that can have the API key, too; or NULL */
    bool plain_key;       /* Authorization may be the API key itself, without Bearer */
};

/* A request and its answer. */
struct exchange {
    struct http *http;
    LIST_ENTRY(exchange) link;
    struct MHD_Connection *connection;
    struct connection *socket;
    const struct route *route;     /* NULL: unknown path */
    const struct dialect *dialect; /* of the route; never NULL */
    enum exchange_state state;
    bool suspended, gone;
    bool half_closed; /* the client sends no more, but may wait for its answer */
    bool http_1_0;
    bool closes;    /* close the connection after the answer */
    bool admitting; /* route->admit was called, and the body has not begun */
    char request_id[HTTP_REQUEST_ID_MAX + 1];
    char path_id[EXECUTION_ID_LENGTH + 1]; /* {id} of the path */
    char execution_id[EXECUTION_ID_LENGTH + 1];
    char domain[CLIENTS_DOMAIN_LENGTH + 1]; /* identifies the API key; "": none was needed */
    char traceparent[EXECUTION_TRACEPARENT_LENGTH + 1]; /* of the request, or "" */
    char idempotency_key[EXECUTION_IDEMPOTENCY_MAX + 1];
    char body_sha256[SHA256_HEX_LENGTH + 1];
    struct client client;
    const char *method; /* owned by libmicrohttpd, valid during the request */
    char *path;         /* as received, for the log */
    uint64_t began_us, body_bytes, sent_bytes;
    struct execution_trace trace;
    size_t charged; /* bytes counted in http.memory */
    size_t held;    /* the same, until the end of the exchange */
    struct str body;
    /* The answer. */
    unsigned status;
    enum http_error error; /* that was answered, or ERROR_NONE */
    const char *outcome;   /* status of the execution, or NULL */
    const char *content_type;
    unsigned long retry_after_s; /* 0: no header */
    struct str answer;
    /* An execution. */
    const char *language;  /* or NULL */
    struct ticket *ticket; /* the pending question to another process, or NULL */
    struct stream *stream; /* POST /execute/stream once it has started, or NULL */
    /* Asynchronous executions, and repeated requests (async.c). */
    bool replayed, base64;  /* the idempotency key was used before */
    bool peeked;            /* the executor did not know the execution */
    uint64_t wait_until_ms; /* for its end */
    struct str pending;     /* what the history process knows of it */
    /* Other dialects. */
    /* Of the sandbox `path_id`, in place of a key; or "". */
    char sandbox_token[SANDBOX_TOKEN_LENGTH + 1];
    struct str headers; /* more headers of the answer: a list of names and values in turn */
    void *kept;         /* by a dialect, between its questions; or NULL */
    void (*free_kept)(void *kept);
    sandbox_piece_taker *piece; /* of pieces that a question about a sandbox brings, or NULL */
    struct upgrade *upgrade;    /* the WebSocket connection, or NULL */
};

/* All but TICKET_WAIT wait for an answer of the executor or the history process. */
enum ticket_kind {
    TICKET_RUN,
    TICKET_KILL,
    TICKET_PEEK,
    TICKET_HISTORY,
    TICKET_SUBMIT,
    TICKET_RESULT,
    TICKET_SANDBOX,
    TICKET_NOTE,
    TICKET_WAIT, /* for MESSAGE_ENDED */
};

/* A question to another process. It outlives a client that disconnects. */
struct ticket {
    TAILQ_ENTRY(ticket) link;
    uint64_t tag;
    enum ticket_kind kind;
    struct exchange *exchange; /* NULL: the client has disconnected */
    bool queued, base64;
    bool lasting; /* the run goes on without its client */
    bool stale;   /* TICKET_WAIT: ask again */
    size_t key;   /* whose place in key_places it takes; CONFIG_LIST_MAX: none */
    char domain[CLIENTS_DOMAIN_LENGTH + 1];
    uint64_t queued_until_ms;
    struct str packed;       /* the encoded request, until it is sent */
    sandbox_taker *answered; /* TICKET_SANDBOX */
    bool relays;             /* SANDBOX_RELAY: the first piece begins the answer */
};

struct http {
    struct server_config *config;
    struct channel *control;
    struct channel *peers[ROLES_]; /* executor and history process; NULL: not running */
    bool writing[ROLES_ + 1];      /* waits for EPOLLOUT; the last is the control channel */
    struct MHD_Daemon *daemon;
    int listener;
    int epoll;
    bool checks_host; /* no keys, and TCP: check the Host header */
    bool tls;         /* a certificate is loaded */
    struct clients clients;
    struct rate *rate;
    struct access_log log;
    struct metrics metrics;
    struct message_gauges gauges;
    bool knows_executor; /* its gauges have arrived, so the number of its runs is known */
    LIST_HEAD(, connection) connections;
    size_t connection_count, connection_most;
    LIST_HEAD(, exchange) exchanges;
    size_t memory;
    TAILQ_HEAD(tickets, ticket) tickets; /* in the order of requests */
    size_t running, queued;
    size_t key_places[CONFIG_LIST_MAX]; /* running or queued executions of each key */
    uint64_t next_tag, now_ms, next_tick_ms;
    struct str runtimes; /* JSON from the executor */
    struct message_store store;
    const struct journal_page *journal; /* written by the executor and the supervisor; or NULL */
    bool draining;                      /* told to end: not ready any more */
    uint64_t refuse_from_us;            /* when new requests are refused; set with `draining` */
    uint64_t drain_until_ms;
};

/* ---- http.c: the loop, and messages of other processes ---- */

enum loop_source {
    LOOP_HTTP,     /* libmicrohttpd's epoll fd */
    LOOP_CONTROL,  /* the supervisor */
    LOOP_EXECUTOR, /* the executor */
    LOOP_HISTORY,  /* the history process */
    LOOP_END, /* first value for clients: LOOP_END + tag of the ticket whose client disconnected */
};
/* Bit of the values for WebSocket connections; the others are their number. */
#define LOOP_UPGRADE (UINT64_C(1) << 63)
int loop_add(struct http *http, int fd, enum loop_source source, struct brig_error *err);
/* Returns whether new requests are refused because the server is about to end. */
bool http_refuses(const struct http *http);
/* Returns whether so many rows wait for the database that no execution is taken. */
bool http_history_is_full(const struct http *http);
/* Sends a message; false if the process is not running. */
bool http_send(struct http *http, enum server_role to, enum message_type type, uint64_t tag,
               const void *bytes, size_t length);

/* ---- confine.c: no files, no programs, no new sockets except accepted ones ---- */

/* Confines the process permanently. All files must be open; `open_files` becomes the limit on
 * fds. */
int confine_http(uint64_t open_files, struct brig_error *err);

/* ---- daemon.c: interface to libmicrohttpd ---- */

int daemon_start(struct http *http, struct brig_error *err);
void daemon_stop(struct http *http);
/* Disconnects clients that are too slow. */
void daemon_tick(struct http *http);
/* Whether the body is a form that the route takes: only with an API key, which a form of a web page
 * cannot know. */
bool exchange_is_form(const struct exchange *exchange);

/* ---- answer.c: exchanges and their answers ---- */

struct exchange *exchange_new(struct http *http, struct MHD_Connection *connection,
                              const char *method, const char *path);
void exchange_free(struct exchange *exchange);
/* Counts bytes held for the exchange. If the limit is reached, returns false and counts nothing. */
bool exchange_charge(struct exchange *exchange, size_t bytes);
/* The same for bytes that stay until the exchange is freed. */
bool exchange_hold(struct exchange *exchange, size_t bytes);
/* Gives back all counted bytes but those that stay. */
void exchange_release(struct exchange *exchange);
/* A header, or a parameter of the query; NULL if the request has none of this name. */
const char *exchange_header(const struct exchange *exchange, const char *name);
const char *exchange_parameter(const struct exchange *exchange, const char *name);
/* The header, or else the parameter. */
const char *exchange_value(const struct exchange *exchange, const char *name);
void exchange_suspend(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);
/* The client has closed its sending side, or the connection. */
void exchange_half_closed(struct exchange *exchange);
/* The client has disconnected: ends its run. */
void exchange_gone(struct exchange *exchange);
/* Ends its run, and asks no other process any more; the caller answers. */
void exchange_abandon(struct exchange *exchange);

/* Sets the answer, and resumes the exchange if it waits; `text` is moved. */
void answer_json(struct exchange *exchange, unsigned status, struct str *text);
void answer_text(struct exchange *exchange, unsigned status, const char *content_type,
                 struct str *text);
/* Answers {"error", "code", "request_id"}, or what the dialect has for it; a stream that has begun ends
 * with it. `message` NULL: the message of the table. */
void answer_error(struct exchange *exchange, enum http_error error, const char *message);
/* Also adds "field", unless it is "". */
void answer_field_error(struct exchange *exchange, enum http_error error, const char *field,
                        const char *message);
/* The same in brigd's own form, whatever the dialect of the route is. */
void answer_own_error(struct exchange *exchange, enum http_error error, const char *field,
                      const char *message);
/* Whether a web page of this origin may use the server: server.cors_origins. */
bool answer_allows_origin(const struct exchange *exchange, const char *origin);
/* Whether a browser sent the request for a web page that is neither of this server nor of
 * server.cors_origins. */
bool answer_is_for_foreign_page(const struct exchange *exchange);
/* Hands the answer to libmicrohttpd. Returns 0, or negative if the connection must be closed. */
int answer_send(struct exchange *exchange);
/* The same for a response that was made from a callback. */
int answer_queue(struct exchange *exchange, struct MHD_Response *response);

/* ---- execute.c: tickets, and POST /execute from the body to the executor and back ---- */

struct ticket *ticket_new(struct http *http, enum ticket_kind kind, struct exchange *exchange);
struct ticket *ticket_find(struct http *http, uint64_t tag);
void ticket_free(struct http *http, struct ticket *ticket);
/* Which process answers it; ROLES_: none. */
enum server_role ticket_role(enum ticket_kind kind);
/* The process is gone: answers all exchanges that wait for it. */
void tickets_lost(struct http *http, enum server_role role);

extern const struct dialect execute_own;       /* brigd's own dialect */
void execute_begin(struct exchange *exchange); /* a handler of the route table */
/* Reads Idempotency-Key; must be called before the body is released. False: the exchange is
 * answered. */
bool execute_take_idempotency(struct exchange *exchange);
/* The same where the history is not needed for it. */
bool execute_take_key(struct exchange *exchange);
/* Fills in what is known of the exchange, and scans the code. False: the detector refuses it, a row
 * was added to the history, and `ret_why` says why. */
bool execute_prepare(struct exchange *exchange, struct execution_request *request,
                     const struct runtime *runtime, char ret_why[REQUEST_MESSAGE_MAX]);
/* Sends the request to the executor, or queues it; or answers that there is no room. */
void execute_start(struct exchange *exchange, const struct execution_request *request, bool base64);
/* Reads the body as a request. False: the exchange is answered. Strings belong to the exchange. */
bool execute_read(struct exchange *exchange, struct execution_request *ret);
/* Answers with the result of an earlier request. */
void execute_replay(struct exchange *exchange, const struct execution_result *result);
/* The client has disconnected: cancels the run, or removes it from the queue. */
void execute_abandon(struct http *http, struct ticket *ticket);
/* Handle MESSAGE_BEGUN, MESSAGE_OUTPUT and MESSAGE_DONE. */
void execute_begun(struct http *http, const struct message *message);
void execute_output(struct http *http, const struct message *message);
void execute_done(struct http *http, const struct message *message);
/* MESSAGE_STAGE: an event of a stream. */
void execute_stage(struct http *http, const struct message *message);
/* Number of running executions, including those of an earlier http process. */
size_t execute_count(const struct http *http);
/* security.allowed_keys has changed: counts the executions of each key again. */
void execute_keys_changed(struct http *http);
/* Starts queued executions while there is capacity. */
void execute_start_waiting(struct http *http);
/* Fails requests that were queued too long; all of them while draining. */
void execute_tick(struct http *http);

/* ---- pages.c: the other routes ---- */

/* Answers and returns false if there is no history. */
bool pages_has_history(struct exchange *exchange);
void pages_list(struct exchange *exchange);
void pages_kill(struct exchange *exchange);
void pages_health(struct exchange *exchange);
void pages_livez(struct exchange *exchange);
void pages_readyz(struct exchange *exchange);
void pages_metrics(struct exchange *exchange);
void pages_runtimes(struct exchange *exchange);
void pages_openapi(struct exchange *exchange);
void pages_config(struct exchange *exchange);
/* Handles MESSAGE_ROWS, MESSAGE_MISSING, MESSAGE_FAILED and MESSAGE_KILLED. */
void pages_answer(struct http *http, const struct message *message);

/* ---- node.c ---- */

void pages_node(struct exchange *exchange);
struct metrics_saturation node_saturation(const struct http *http);
