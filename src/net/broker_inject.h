/* SPDX-License-Identifier: MIT */
/* Endpoints inside the jail that speak plain HTTP; the broker adds the credential outside.
 * broker_inject.c serves the clients in the jail, broker_transfer.c talks to the upstream through
 * libcurl. */
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

/* Additional state of a broker that injects credentials. */
struct inject {
    struct loop *loop;
    struct curl_api api;
    CURLM *multi;
    struct timer timer;
    struct secrets lines; /* the header lines "Header: secret", in locked memory */
    const char *header_lines[DOOR_INJECT_MAX][CONFIG_INJECT_HEADERS_MAX];
    const char *proxy_line; /* NULL: none */
    const char *certificates;
};

enum inject_stage {
    INJECT_HEAD,     /* reading the head of a request */
    INJECT_RESOLVE,  /* resolving the upstream's name */
    INJECT_TRANSFER, /* transferring request and response */
    INJECT_LEAVE,    /* the last response was sent; further input is discarded */
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
};

/* ---- broker_inject.c ---- */

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

/* Adds a header to the upstream request; false if memory is short. */
bool transfer_add_header(struct inject_client *client, const char *line);
/* Starts the transfer, with the addresses of the upstream (or of the proxy). */
bool transfer_start(struct inject_client *client, const struct net_address *addresses,
                    size_t count);
/* Ends the transfer and frees its resources. */
void transfer_drop(struct inject_client *client);
/* Continues after more of the body was received, or the client accepted more output. */
void transfer_go_on(struct inject_client *client);
