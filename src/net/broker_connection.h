/* SPDX-License-Identifier: MIT */
/* One connection out of the jail (or, with publish, into it), from accept() to its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/broker.h"

/* The size of the read-ahead buffer, for a ClientHello or the head of a request. */
#define CONNECTION_INPUT_MAX RELAY_CHUNK

enum connection_stage {
    CONNECTION_PROXY,    /* the client of a proxy sends its destination */
    CONNECTION_ASK,      /* no rule allows it, and the user is asked */
    CONNECTION_INSPECT,  /* the first bytes must name the same destination */
    CONNECTION_UPSTREAM, /* the name is being resolved and connected to */
    CONNECTION_ARRIVE,   /* the other side is connected, and the held client was let in */
    CONNECTION_RELAY,
    CONNECTION_LEAVE, /* it was refused with a reply, which the client may read before the close */
};

enum connection_inspect {
    INSPECT_NOTHING,
    INSPECT_TLS,  /* the server name must be the name that was connected to */
    INSPECT_HTTP, /* the Host header must be that name */
    WATCH_TLS,    /* if it is TLS with a server name, the name must not be denied */
    WATCH_HTTP,
};

/* A client that waits in connect(): its SYN is in the kernel's queue. */
struct hold {
    bool waiting; /* the kernel waits for a verdict */
    uint32_t packet;
    struct net_address from, to;
    uint16_t from_port, to_port;
};

struct connection {
    struct node node; /* in the broker's list; must be first */
    struct broker *broker;
    uint64_t id;
    enum door_socket via;
    enum connection_stage stage;
    int64_t started_ms, active_ms;
    struct watch client; /* fd -1: it is held */
    struct hold hold;
    struct timer timer; /* the timeout of the stage */

    /* The destination. */
    bool has_name;
    char name[NET_NAME_MAX + 1];
    struct net_address address; /* the destination, then the address connected to */
    bool has_address;
    uint16_t port;
    const struct net_rule *rule; /* the rule that allows or denies it, or NULL */
    bool allowed;                /* DOOR_ALLOWED was reported; DOOR_ENDED must follow */

    enum connection_inspect inspect;
    bool is_tls;    /* the client speaks TLS, so it understands an alert */
    bool greeted;   /* SOCKS: the greeting is complete */
    bool answered;  /* the proxy's client got its success reply */
    bool rewritten; /* a plain proxy request, rewritten for the server */
    char *input;    /* CONNECTION_INPUT_MAX bytes of read-ahead for the other side, or NULL */
    size_t input_size, input_seen;

    struct resolve_request resolve;
    struct dial dial;
    struct watch world; /* during the request to the host's proxy; fd -1: none */
    char *proxy_reply;
    size_t proxy_reply_size, proxy_reply_used;
    bool inside_tried_ipv6; /* publish */

    struct relay relay;
};

/* ---- broker_connection.c ---- */

/* Creates, counts and lists a connection; NULL, with fd closed, on failure. */
struct connection *connection_new(struct broker *broker, enum door_socket via, int fd);
/* Reads ahead; false if the peer closed the connection, which has then been ended. */
bool connection_read(struct connection *connection);
void connection_drop_input(struct connection *connection, size_t bytes);
/* Sends a few bytes to the client, for which a new socket always has room; false as above. */
bool connection_say(struct connection *connection, const void *bytes, size_t size);

/* Begins a stage: watches the client for these events and arms the timeout. */
void connection_enter(struct connection *connection, enum connection_stage stage, uint32_t events,
                      uint64_t limit_ms);

/* Checks the rules and continues. The destination is the name, or without one the address. */
void connection_aim(struct connection *connection, const char *name,
                    const struct net_address *address, uint16_t port);
/* Called when the other side is connected and has already sent the bytes `ahead`. Takes ownership
 * of fd. */
void connection_connected(struct connection *connection, int fd, const void *ahead, size_t size);

/* Reports to the job, replies to the client in its protocol if that is known, and ends the
 * connection. */
void connection_refuse(struct connection *connection, enum door_verdict verdict,
                       enum door_because because, const char *detail);
/* Reports to the job and ends the connection. */
void connection_close(struct connection *connection, enum door_verdict verdict,
                      enum door_because because, const char *detail, bool reset);

/* The client of a held connection was accepted; takes ownership of fd. */
void connection_arrived(struct connection *connection, int fd);

/* ---- broker_hold.c ---- */

/* Decides about a new held connection; `hold` describes its SYN. False if there are too many. */
bool connection_held(struct broker *broker, const struct hold *hold);
/* Whether the client waits in connect(). */
static inline bool hold_waits(const struct connection *connection)
{
    return connection->hold.waiting;
}
/* Lets the client's connect() succeed, or fail. */
void hold_release(struct connection *connection, bool let_in);
/* Reads the addresses and ports from the first bytes of an IP packet; false if it is not TCP. An
 * IPv6 packet with extension headers, which need a privilege, counts as not TCP. Pure. */
bool hold_read_packet(const uint8_t *bytes, size_t length, struct hold *hold);
/* A message of the kernel's queue. */
struct hold_message {
    enum { HOLD_OTHER, HOLD_PACKET, HOLD_FORBIDDEN } kind; /* FORBIDDEN: it takes no verdict */
    struct hold hold;
    bool is_tcp; /* else only the number of the packet is known */
};
/* Reads the first message and returns the bytes up to the next one; 0 if there is none. Pure. */
size_t hold_read_message(const uint8_t *bytes, size_t length, struct hold_message *ret_message);
/* The held connection of this client that was let in; NULL if there is none. */
struct connection *hold_find(const struct broker *broker, int client);

/* ---- broker_inspect.c ---- */

enum connection_inspect inspect_choose(const struct connection *connection, bool tls_rule);
/* Whether the connection goes to an address that the jail did not get from a name, and that is not
 * granted as an address, while the user denies a name: the address could belong to that name, and
 * only the first bytes can tell. */
bool inspect_must_name(const struct connection *connection);
void inspect_start(struct connection *connection);
void inspect_ready(struct connection *connection);

/* Reads the destination from the client of a proxy. */
void proxy_start(struct connection *connection);
void proxy_ready(struct connection *connection);
/* Sends the success reply to the proxy's client; false if the client closed the connection, which
 * has then been ended. */
bool proxy_succeed(struct connection *connection);

/* Sends a refusal in the client's protocol; false if the protocol is not known. */
bool refusal_say(const struct connection *connection, enum door_verdict verdict,
                 enum door_because because, const char *detail);
/* Writes an HTTP/1.1 response after which the connection is closed. Returns its length. */
#define REFUSAL_TEXT_MAX 1024
size_t refusal_http(char text[REFUSAL_TEXT_MAX], unsigned status, const char *phrase,
                    const char *what, const char *why);

/* ---- broker_upstream.c ---- */

void upstream_start(struct connection *connection);
void upstream_cancel(struct connection *connection);
