/* SPDX-License-Identifier: MIT */
/* The http process: what all its parts share. One thread, one loop; see http.c. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "server/http/access_log.h"
#include "server/http/clients.h"
#include "server/http/errors.h"
#include "server/http/keys.h"
#include "server/http/metrics.h"
#include "server/message.h"

struct brig_error;
struct detector;
struct execution_result;
struct lingering;
struct rate;
struct route;
struct server_config;
struct stream;
struct tls;

/* Of bodies, waiting requests, output and answers of all clients together. */
#define HTTP_MEMORY_MAX ((size_t)512 << 20)
/* A body, or the reading of an answer, that is slower than this is ended. */
#define HTTP_BYTES_PER_MS_MIN 16
#define HTTP_TICK_MS 250
#define HTTP_TICKETS 4096 /* chains, a power of two */
#define HTTP_REQUEST_ID_MAX 64
#define HTTP_RETRY_SECONDS "1"

/* One of somebody's sockets, for as long as it is open. */
struct connection {
    struct http *http;
    struct connection *previous, *next;
    int fd;
    bool drain;           /* was answered before all of its request was read */
    uint64_t deadline_ms; /* 0: none */
};

enum exchange_state {
    EXCHANGE_BODY,     /* the request is being read */
    EXCHANGE_WAITING,  /* suspended: somebody else has to answer first */
    EXCHANGE_ANSWER,   /* `answer` can be sent */
    EXCHANGE_STREAM,   /* `stream` can be sent */
    EXCHANGE_ANSWERED, /* the library has it */
};

/* One request and its answer. */
struct exchange {
    struct http *http;
    struct exchange *previous, *next; /* all of the http process */
    struct MHD_Connection *connection;
    struct connection *socket;
    const struct route *route; /* NULL: none */
    enum exchange_state state;
    bool suspended, gone;
    bool half_closed; /* the client says no more, and may wait for its answer */
    bool http_1_0;
    bool closes; /* the connection, after the answer */
    char request_id[HTTP_REQUEST_ID_MAX + 1];
    char path_id[EXECUTION_ID_LENGTH + 1]; /* {id} of the path */
    char execution_id[EXECUTION_ID_LENGTH + 1];
    char domain[KEYS_DOMAIN_LENGTH + 1]; /* "": no key was asked for */
    size_t key;                          /* else its number */
    struct client client;
    const char *method; /* of the library, as long as the request */
    char *path;         /* as it came, for the log */
    uint64_t began_us, body_bytes, sent_bytes;
    struct execution_trace trace;
    size_t charged; /* bytes of FRONT_MEMORY_MAX */
    struct str body;
    /* An answer, made by answer.c. */
    enum http_error error;
    unsigned status;
    const char *content_type;
    const char *retry_after; /* or NULL */
    char retry_text[24];
    struct str answer;
    /* A run. */
    struct ticket *ticket; /* what is waited for, or NULL */
    struct stream *stream; /* of POST /execute/stream once it has begun, or NULL */
};

enum ticket_kind { TICKET_RUN, TICKET_KILL, TICKET_LIST, TICKET_GET };

/* Something that another process has to answer. It outlives a client that goes away. */
struct ticket {
    struct ticket *chain;           /* of the same bucket */
    struct ticket *earlier, *later; /* in the queue */
    uint64_t tag;
    enum ticket_kind kind;
    struct exchange *exchange; /* NULL: the client is gone */
    size_t language;           /* index of the runtime */
    bool queued, base64;
    bool counted; /* among those of its key */
    size_t key;
    uint64_t queued_until_ms;
    struct str packed; /* the request, until it is sent */
};

struct http {
    const struct server_config *config;
    struct channel *control;
    struct channel
        *peers[ROLES_];       /* the executor's and the history process's; NULL: not there now */
    bool writing[ROLES_ + 1]; /* the loop waits for room; the last is the control channel */
    struct MHD_Daemon *daemon;
    int listener;
    int epoll;
    bool tells_hosts; /* without keys, on loopback: Host is looked at */
    struct tls *tls;  /* NULL: plain */
    struct clients clients;
    struct keys keys;
    struct rate *rate;
    struct detector *detector; /* NULL: off */
    struct access_log log;
    struct metrics metrics;
    struct message_gauges gauges;
    bool knows_executor; /* its gauges have come: it is known what runs already */
    struct lingering *lingering;
    struct connection *connections;
    size_t connection_count;
    struct exchange *exchanges;
    size_t memory;
    struct ticket *tickets[HTTP_TICKETS];
    struct ticket *queue_first, *queue_last;
    size_t running, queued;
    size_t key_places[CONFIG_LIST_MAX]; /* running or queued, of each key */
    uint64_t next_tag, now_ms, next_tick_ms;
    struct str runtimes, store; /* JSON, from the executor and the history process */
    struct str openapi;
    bool draining;
    uint64_t drain_until_ms;
};

/* ---- exchange.c ---- */
struct exchange *exchange_new(struct http *http, struct MHD_Connection *connection,
                              const char *method, const char *path);
void exchange_free(struct exchange *exchange);
/* Counts bytes that are held for it; false, and nothing is counted, if there is no room. */
bool exchange_charge(struct exchange *exchange, size_t bytes);
void exchange_suspend(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);
/* The client has closed its side, or all of it. */
void exchange_half_closed(struct exchange *exchange);
/* The client went away: what runs for it is ended. */
void exchange_gone(struct exchange *exchange);

/* ---- ticket.c ---- */
struct ticket *ticket_new(struct http *http, enum ticket_kind kind, struct exchange *exchange);
struct ticket *ticket_find(struct http *http, uint64_t tag);
void ticket_free(struct http *http, struct ticket *ticket);
/* All that this process had to answer will not be. */
void tickets_lost(struct http *http, enum server_role role);

/* ---- peers.c: messages of other processes ---- */
/* Sends; false if there is nobody, or no longer. */
bool http_send(struct http *http, enum server_role to, enum message_type type, uint64_t tag,
               const void *bytes, size_t length);
void http_peer_gone(struct http *http, enum server_role role);
/* Takes what came; negative if the supervisor is gone. */
int http_hear_control(struct http *http, struct brig_error *err);
void http_hear_peer(struct http *http, enum server_role role);

/* ---- http.c: between the library and us ---- */
int daemon_start(struct http *http, struct brig_error *err);
void daemon_stop(struct http *http);
/* Ends connections that are too slow. */
void daemon_tick(struct http *http);
