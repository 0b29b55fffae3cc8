/* SPDX-License-Identifier: MIT */
/* Endpoints inside the jail that speak plain HTTP; outside, the credential is added. broker_inject.c
 * speaks with the clients in the jail, broker_transfer.c with the upstream, through libcurl. */
#pragma once

#include <curl/curl.h>

#include "base/str.h"
#include "net/broker.h"
#include "net/http.h"

/* A head, or as much of a body as was read ahead. */
#define INJECT_INPUT_MAX HTTP_HEAD_MAX

/* The functions of libcurl that are used. It is loaded only where credentials are injected, as its many
 * libraries take longer to load than the broker takes to start, and before the broker confines itself,
 * after which no code can be loaded. */
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

/* What a broker that injects has beside the others. */
struct inject {
    struct loop *loop;
    struct curl_api api;
    CURLM *multi;
    struct timer timer;
    struct secrets lines; /* "Header: secret" as they are sent, in locked memory */
    const char *header_lines[DOOR_INJECT_MAX][CONFIG_INJECT_HEADERS_MAX];
    const char *proxy_line; /* NULL: none */
    const char *certificates;
};

enum inject_stage {
    INJECT_HEAD,     /* the head of the next request is read */
    INJECT_RESOLVE,  /* the upstream's name is resolved */
    INJECT_TRANSFER, /* request and response are under way */
    INJECT_LEAVE,    /* the last answer was given; what the client still sends is discarded */
};

/* A connection from the jail, with one request at a time. */
struct inject_client {
    struct node node; /* in the broker's list; must be first */
    struct broker *broker;
    const struct config_inject *inject;
    unsigned index;
    struct watch watch;
    uint32_t watched; /* for these events */
    struct timer timer;
    int64_t active_ms;
    enum inject_stage stage;

    char *input; /* INJECT_INPUT_MAX bytes; what was read and not used yet */
    size_t input_size, input_seen;
    struct str output; /* what the client did not take yet, */
    size_t output_at;  /* from here on */

    /* The request. */
    uint64_t id;
    int64_t started_ms;
    uint64_t bytes_in, bytes_out;
    char method[HTTP_METHOD_MAX + 1];
    char what[160]; /* "METHOD PATH" without the query, for people */
    char address[DOOR_ADDRESS_MAX];
    bool allowed; /* the job was told; it is told of the end as well */
    bool keep_alive;
    unsigned minor;
    struct http_body body;
    int64_t body_length; /* -1: not known */
    bool body_ended, body_bad;

    /* The response. */
    unsigned status;
    struct str reply_head; /* being put together */
    char reply_length[24]; /* its Content-Length, or "" */
    bool reply_encoded;    /* it was sent in chunks, so its Content-Length does not count */
    bool reply_begun, chunked;
    bool reply_ended; /* what is left is on its way to the client */

    struct resolve_request resolve;
    CURL *easy;
    struct curl_slist *headers, *hosts;
    struct curl_slist secret_nodes[CONFIG_INJECT_HEADERS_MAX], proxy_node;
    char *target; /* as it is sent upstream */
    int paused;   /* CURLPAUSE_… */
    struct task go_on;
};

/* ---- broker_inject.c ---- */

/* Waits for the events that the stage needs. */
void inject_watch(struct inject_client *client);
/* Sends to the client, and keeps what it does not take yet. False if memory is short or it is gone. */
bool inject_send(struct inject_client *client, const char *bytes, size_t size);
bool inject_has_output(const struct inject_client *client);
/* The host to connect to: the upstream, or the host's proxy on the way to it. */
const struct http_authority *inject_first_hop(const struct inject_client *client);
/* The transfer has ended; `failure` is NULL or says why it failed. */
void inject_transferred(struct inject_client *client, enum door_because because,
                        const char *failure);

/* ---- broker_transfer.c ---- */

int transfer_init(struct inject *inject, struct loop *loop, struct brig_error *err);
void transfer_done(struct inject *inject);

/* Adds a header to those that go upstream; false if memory is short. */
bool transfer_add_header(struct inject_client *client, const char *line);
/* Starts it, with the addresses of the upstream's name (or of the proxy's). */
bool transfer_start(struct inject_client *client, const struct net_address *addresses,
                    size_t count);
/* Ends it, and frees what was made for it. */
void transfer_drop(struct inject_client *client);
/* More of the body was received, or there is room for more of the response. */
void transfer_go_on(struct inject_client *client);
