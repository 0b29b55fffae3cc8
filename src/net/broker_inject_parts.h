/* SPDX-License-Identifier: MIT */
/* What the files about injecting credentials share. */
#pragma once

#include "base/str.h"
#include "net/broker_curl.h"
#include "net/broker_inject.h"
#include "net/http_body.h"
#include "net/http_head.h"

/* A head, or as much of a body as was read ahead. */
#define INJECT_INPUT_MAX HTTP_HEAD_MAX
#define INJECT_REPLY_HEAD_MAX 65536

/* Everything of a broker that injects. */
struct broker_inject_curl {
    struct broker_curl curl;
    struct secrets lines; /* "Header: secret" as they are sent, in locked memory */
    const char *header_lines[DOOR_INJECT_MAX][CONFIG_INJECT_HEADERS_MAX];
    const char *certificates;
};

enum inject_stage {
    INJECT_HEAD,     /* of the next request is read */
    INJECT_RESOLVE,  /* where the upstream is, is asked */
    INJECT_TRANSFER, /* request and response are under way */
    INJECT_LEAVE,    /* the last answer was given; what is still sent is not read */
};

/* A connection from the jail, with one request at a time. */
struct inject_client {
    struct garbage garbage; /* must be first */
    struct broker *broker;
    struct inject_client *next, **self;
    const struct config_inject *inject;
    unsigned index;
    struct watch watch;
    uint32_t watched; /* for these events */
    struct timer timer;
    int64_t active_ms;
    enum inject_stage stage;

    char *input; /* of INJECT_INPUT_MAX bytes; what was read and not used yet */
    size_t input_size, input_seen;
    char *output; /* what the client did not take yet */
    size_t output_start, output_end, output_capacity;

    /* The request. */
    uint64_t id;
    int64_t started_ms;
    uint64_t bytes_in, bytes_out;
    char method[HTTP_METHOD_MAX + 1];
    char what[160]; /* "METHOD PATH" without the query, for people */
    char address[DOOR_ADDRESS_MAX];
    bool allowed; /* the job was told; it is told of the end as well */
    bool is_head, keep_alive;
    unsigned minor;
    struct http_body body;
    int64_t body_length; /* -1: not known */
    bool body_ended, body_bad;

    /* The response. */
    unsigned status;
    struct str reply_head; /* being put together */
    char reply_length[24]; /* its Content-Length, or "" */
    bool reply_encoded;    /* its length was said by chunks, and nothing else counts */
    bool reply_begun, chunked;
    bool reply_ended; /* what is left is on its way to the client */

    struct resolve_request resolve;
    CURL *easy;
    struct curl_slist *headers, *hosts, *proxy_headers;
    struct curl_slist secret_nodes[CONFIG_INJECT_HEADERS_MAX], proxy_node;
    char *target; /* as it is sent upstream */
    int paused;   /* CURLPAUSE_… */
    struct task go_on;
};

/* ---- broker_inject.c ---- */

/* Waits for what it now has to wait for. */
void inject_watch(struct inject_client *client);
/* Sends, and keeps what is not taken. False if memory is short or the client is gone. */
bool inject_send(struct inject_client *client, const void *bytes, size_t size);
bool inject_has_output(const struct inject_client *client);
/* The transfer is over; `failure` is NULL or says why it failed. */
void inject_transferred(struct inject_client *client, enum door_because because,
                        const char *failure);
void inject_refuse(struct inject_client *client, enum door_verdict verdict,
                   enum door_because because, unsigned status, const char *phrase,
                   const char *detail);
void inject_client_end(struct inject_client *client, bool reset);
void inject_tell(struct inject_client *client, enum door_verdict verdict, enum door_because because,
                 const char *detail);

/* ---- broker_inject_begin.c ---- */

/* Looks at what was read; if it is a whole head, the request is begun or refused. */
void inject_read_request(struct inject_client *client);

/* ---- broker_inject_request.c ---- */

enum inject_target {
    INJECT_TARGET_MADE,
    INJECT_TARGET_AMBIGUOUS, /* servers could read the path differently */
    INJECT_TARGET_FAILED,    /* memory is short */
};

/* Makes client->target: the upstream's prefix and the path, which is normalised unless every path of
 * the upstream may be asked for. */
enum inject_target inject_request_target(struct inject_client *client,
                                         const struct http_head *head);
/* Makes the headers that go upstream; false if memory is short. Before the input is used up. */
bool inject_request_prepare(struct inject_client *client, const struct http_head *head);
/* Starts it, with the addresses of the upstream's name (or of the proxy's). */
bool inject_request_start(struct inject_client *client, const struct net_address *addresses,
                          size_t count);
void inject_request_drop(struct inject_client *client);
/* More of the body is there, or there is room for more of the response. */
void inject_request_go_on(struct inject_client *client);
/* For the broker's curl. */
void inject_request_ended(struct broker_curl *curl, CURL *easy, CURLcode result);

/* ---- broker_inject_reply.c ---- */

/* libcurl's callbacks for the response. */
size_t inject_reply_line(char *line, size_t size, size_t count, void *data);
size_t inject_reply_data(char *bytes, size_t size, size_t count, void *data);
