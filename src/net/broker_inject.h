/* SPDX-License-Identifier: MIT */
/* Endpoints inside the jail that speak plain HTTP; the broker adds the credential outside.
 * broker_inject.c serves the clients in the jail, broker_transfer.c talks to the upstream through
 * libcurl, and broker_upgrade.c does so for WebSockets. */
#pragma once

#include <curl/curl.h>

#include "base/str.h"
#include "net/broker.h"
#include "net/http.h"

/* The size of the input buffer: a head, or a part of a body. */
#define INJECT_INPUT_MAX HTTP_HEAD_MAX

/* The libcurl functions that are used. libcurl is loaded only if credentials are injected, because
 * loading its many libraries takes longer than starting the broker, and before the broker confines
 * itself, after which no code can be loaded. */
#define CURL_FUNCTIONS(X)                                                                          \
    X(global_init_mem)                                                                             \
    X(easy_init)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_pause)                                                                                  \
    X(easy_recv)                                                                                   \
    X(easy_send)                                                                                   \
    X(easy_cleanup)                                                                                \
    X(easy_strerror)                                                                               \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(multi_init)                                                                                  \
    X(multi_setopt)                                                                                \
    X(multi_add_handle)                                                                            \
    X(multi_remove_handle)                                                                         \
    X(multi_socket_action)                                                                         \
    X(multi_info_read)                                                                             \
    X(multi_assign)                                                                                \
    X(multi_cleanup)
#define CURL_MEMBER(name) typeof(&curl_##name) name;
struct curl_api {
    CURL_FUNCTIONS(CURL_MEMBER)
};

struct inject;

/* A multi handle of libcurl in the broker's loop. */
struct transfer_engine {
    struct inject *inject;
    CURLM *multi; /* NULL: none */
    struct timer timer;
};

/* Additional state of a broker that injects credentials. */
struct inject {
    struct loop *loop;
    struct curl_api api;
    struct transfer_engine engine; /* of all requests but those for a WebSocket */
    struct secrets lines;          /* the header lines "Header: secret", in locked memory */
    const char *header_lines[DOOR_INJECT_MAX][CONFIG_INJECT_HEADERS_MAX];
    uint64_t generations[DOOR_INJECT_MAX]; /* of live secrets, that header_lines have */
    const char *proxy_line;                /* NULL: none */
    const char *certificates;
};

enum inject_stage {
    INJECT_HEAD,     /* reading the head of a request */
    INJECT_RESOLVE,  /* resolving the upstream's name */
    INJECT_TRANSFER, /* transferring request and response */
    INJECT_LEAVE,    /* the last response was sent; further input is discarded */
};

enum upgrade_phase {
    UPGRADE_NONE,    /* an ordinary request */
    UPGRADE_CONNECT, /* libcurl connects */
    UPGRADE_HEAD,    /* the head of the answer is read */
    UPGRADE_BODY,    /* the upstream declined: the body of its answer is read */
    UPGRADE_OPEN,    /* bytes are relayed in both directions */
};

/* A request for a WebSocket. libcurl only connects: such a connection must not share a multi handle
 * with others, because libcurl closes connections that it takes for idle. */
struct upgrade {
    enum upgrade_phase phase;
    struct transfer_engine engine;
    struct watch watch; /* the upstream's socket, which libcurl owns; fd -1: not watched */
    int socket;
    char *request; /* its head, with the credential: wiped */
    size_t request_size, request_sent;
    char *reply; /* UPGRADE_REPLY_MAX bytes; those from reply_at on were not processed yet */
    size_t reply_size, reply_at;
    struct http_body body;
    bool until_close; /* the end of the body is the end of the connection */
};

/* A connection from the jail, with one request at a time. */
struct inject_client {
    struct node node; /* in the broker's list; must be first */
    struct broker *broker;
    const struct config_inject *inject;
    unsigned index;
    struct watch watch;
    uint32_t watched; /* the events that are watched */
    struct timer timer;
    int64_t active_ms;
    enum inject_stage stage;

    char *input; /* INJECT_INPUT_MAX bytes; input that was not processed yet */
    size_t input_size, input_seen;
    struct str output; /* output that the client did not accept yet, */
    size_t output_at;  /* from here on */

    /* The request. */
    uint64_t id;
    int64_t started_ms;
    uint64_t bytes_in, bytes_out;
    char method[HTTP_METHOD_MAX + 1];
    char what[160]; /* "METHOD PATH" without the query, for messages */
    char address[DOOR_ADDRESS_MAX];
    bool allowed; /* DOOR_ALLOWED was reported; DOOR_ENDED must follow */
    bool keep_alive;
    unsigned minor;
    struct http_body body;
    int64_t body_length; /* -1: unknown */
    bool body_ended, body_bad;

    /* The response. */
    unsigned status;
    struct str reply_head; /* being assembled */
    char reply_length[24]; /* its Content-Length, or "" */
    bool reply_encoded;    /* it is chunked, so Content-Length is ignored */
    bool reply_begun, chunked;
    bool reply_ended; /* complete; the remaining output is being sent */

    struct resolve_request resolve;
    CURL *easy;
    struct curl_slist *headers, *hosts;
    struct curl_slist secret_nodes[CONFIG_INJECT_HEADERS_MAX], proxy_node;
    char *target; /* as sent upstream */
    int paused;   /* CURLPAUSE_… */
    struct task go_on;
    struct upgrade upgrade;
};

/* ---- broker_inject.c ---- */

/* Takes a live secret that the job has refreshed. Called before a request uses header_lines. */
void inject_refresh(struct broker *broker, unsigned index);
/* Watches the events that the stage needs. */
void inject_watch(struct inject_client *client);
/* Sends to the client, and buffers what it does not accept yet. False if memory is short or the
 * client closed the connection. */
bool inject_send(struct inject_client *client, const char *bytes, size_t size);
bool inject_has_output(const struct inject_client *client);
/* The host to connect to: the upstream, or the host's proxy. */
const struct http_authority *inject_first_hop(const struct inject_client *client);
/* Called at the end of the transfer; `failure` is NULL or the reason of a failure. */
void inject_transferred(struct inject_client *client, enum door_because because,
                        const char *failure);

/* ---- broker_transfer.c ---- */

int transfer_init(struct inject *inject, struct loop *loop, struct brig_error *err);
void transfer_done(struct inject *inject);

/* Makes a multi handle; false if memory is short. */
bool transfer_engine_init(struct transfer_engine *engine, struct inject *inject);
void transfer_engine_done(struct transfer_engine *engine);
/* The multi handle that the client's request uses. */
struct transfer_engine *transfer_engine_of(struct inject_client *client);

/* Adds a header to the upstream request; false if memory is short. */
bool transfer_add_header(struct inject_client *client, const char *line);
/* Starts the transfer, with the addresses of the upstream (or of the proxy). */
bool transfer_start(struct inject_client *client, const struct net_address *addresses,
                    size_t count);
/* Ends the transfer and frees its resources. */
void transfer_drop(struct inject_client *client);
/* Continues after more of the body was received, or the client accepted more output. */
void transfer_go_on(struct inject_client *client);

/* Takes one line of the head of the answer, as received; the empty line sends the head to the
 * client and sets reply_begun. False if it is malformed or cannot be sent. */
bool transfer_take_line(struct inject_client *client, const char *line, size_t length);
/* Sends bytes of the body of the answer to the client. */
bool transfer_take_body(struct inject_client *client, const char *bytes, size_t length);
/* Whether the answer has a body. */
bool transfer_has_body(const struct inject_client *client);

/* ---- broker_upgrade.c ---- */

/* Whether the client asks for a WebSocket. Another protocol is not: the request is then answered as
 * if it did not ask, which RFC 9110, 7.8 permits. */
bool upgrade_is_asked(const struct http_head *head);
/* Prepares the request for libcurl to connect only. False if memory is short. */
bool upgrade_prepare(struct inject_client *client);
/* Called when libcurl has connected: sends the request. */
void upgrade_connected(struct inject_client *client);
/* Continues after more was received from the client, or it accepted more output. */
void upgrade_go_on(struct inject_client *client);
/* Stops watching and wipes the request; the connection is closed with the easy handle. */
void upgrade_drop(struct inject_client *client);
