/* SPDX-License-Identifier: MIT */
/* One connection out of the jail (or, with publish, into it), from accept to its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/broker.h"

/* What is read ahead: a ClientHello, or the head of a request. */
#define CONNECTION_INPUT_MAX RELAY_CHUNK

enum connection_stage {
    CONNECTION_PROXY,    /* the client of a proxy says where it wants to go */
    CONNECTION_INSPECT,  /* its first bytes have to say the same */
    CONNECTION_UPSTREAM, /* the name is resolved, and connected to */
    CONNECTION_RELAY,
    CONNECTION_LEAVE, /* it was refused in words, which it may read before it is closed */
};

enum connection_inspect {
    INSPECT_NOTHING,
    INSPECT_TLS,  /* the server's name must be the name that was connected to */
    INSPECT_HTTP, /* the same of the Host */
    WATCH_TLS,    /* if it is TLS and names a server, that one must not be denied */
    WATCH_HTTP,
};

struct connection {
    struct node node; /* in the broker's list; must be first */
    struct broker *broker;
    uint64_t id;
    enum door_socket via;
    enum connection_stage stage;
    int64_t started_ms, active_ms;
    struct watch client;
    struct timer timer; /* of the stage */

    /* Where to. */
    bool has_name;
    char name[NET_NAME_MAX + 1];
    struct net_address address; /* the destination, then what is connected to */
    bool has_address;
    uint16_t port;
    const struct net_rule *rule; /* what allows or denies it, or NULL */
    bool allowed;                /* the job was told; it is told of the end as well */

    enum connection_inspect inspect;
    bool is_tls;    /* the client has begun with TLS, so an alert is understood */
    bool greeted;   /* SOCKS: the greeting is over */
    bool answered;  /* the proxy's client was told that it is connected */
    bool rewritten; /* a proxy's plain request, which has been made the server's */
    char *input;    /* CONNECTION_INPUT_MAX bytes, read ahead for the other side; or NULL */
    size_t input_size, input_seen;

    struct resolve_request resolve;
    struct dial dial;
    struct watch world; /* while the host's proxy is asked; fd -1: none */
    char *proxy_reply;
    size_t proxy_reply_size;
    bool inside_tried_ipv6; /* publish */

    struct relay relay;
};

/* ---- broker_connection.c ---- */

/* A connection in the list, counted; NULL if there is no room, and fd is closed. */
struct connection *connection_new(struct broker *broker, enum door_socket via, int fd);
/* Reads ahead; false if the connection was closed, and has been ended. */
bool connection_read(struct connection *connection);
void connection_drop_input(struct connection *connection, size_t bytes);
/* Sends the client a few bytes, for which a new socket always has room; false as above. */
bool connection_say(struct connection *connection, const void *bytes, size_t size);

/* Begins a stage: the client is watched for these events, and the stage may take so long. */
void connection_enter(struct connection *connection, enum connection_stage stage, uint32_t events,
                      uint64_t limit_ms);

/* Decides by the rules and goes on. The destination is a name, or without one an address. */
void connection_aim(struct connection *connection, const char *name,
                    const struct net_address *address, uint16_t port);
/* The other side is connected, and has sent the bytes `ahead` already. Takes fd. */
void connection_connected(struct connection *connection, int fd, const void *ahead, size_t size);

/* Tells the job, tells the client in its protocol if that is known, and ends the connection. */
void connection_refuse(struct connection *connection, enum door_verdict verdict,
                       enum door_because because, const char *detail);
/* Tells the job and ends the connection. */
void connection_close(struct connection *connection, enum door_verdict verdict,
                      enum door_because because, const char *detail, bool reset);

/* ---- broker_inspect.c ---- */

enum connection_inspect inspect_choose(const struct connection *connection, bool tls_rule);
/* Whether it goes to an address that the jail did not get by a name, and that no rule grants, while the
 * user denies a name: the address could be that name's, and only the first bytes can tell. */
bool inspect_must_name(const struct connection *connection);
void inspect_start(struct connection *connection);
void inspect_ready(struct connection *connection);

/* The client of a proxy has to say where it wants to go. */
void proxy_start(struct connection *connection);
void proxy_ready(struct connection *connection);
/* Tells the proxy's client that it is connected; false if it is gone, and has been ended. */
bool proxy_succeed(struct connection *connection);

/* Says no in the client's protocol; false if that is not known. */
bool refusal_say(const struct connection *connection, enum door_verdict verdict,
                 enum door_because because, const char *detail);
/* A response of HTTP/1.1, after which the connection is closed. Returns its length. */
#define REFUSAL_TEXT_MAX 1024
size_t refusal_http(char text[REFUSAL_TEXT_MAX], unsigned status, const char *phrase,
                    const char *what, const char *why);

/* ---- broker_upstream.c ---- */

void upstream_start(struct connection *connection);
void upstream_cancel(struct connection *connection);
