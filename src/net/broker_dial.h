/* SPDX-License-Identifier: MIT */
/* From a name to a connected socket: resolving, routing and connecting. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/broker_config.h"
#include "net/broker_loop.h"
#include "net/dns.h"
#include "policy/net_address.h"

struct ares_channeldata;
struct brig_error;
struct dial;

/* ---- Resolving, with the host's resolvers or the configured ones ---- */

#define RESOLVE_ADDRESSES_MAX 16

/* Embedded in the requester; zero-initialise. `why` is NULL, or a constant that says why there is no
 * address; `code` is then what a name server would answer: the name does not exist, or has no
 * address, or nobody knows. */
struct resolve_request {
    struct node node;   /* in the list of its query while that is pending; must be first */
    enum dns_code code; /* set before done() is called */
    void (*done)(struct resolve_request *request, const struct net_address *addresses, size_t count,
                 const char *why);
};

struct resolver {
    struct loop *loop;
    const struct broker_config *config;
    struct ares_channeldata *channel;
    struct timer timer;
    struct node *sockets; /* the sockets that c-ares waits for */
    struct node *queries; /* pending ones, each for another name */
    size_t in_flight;     /* the number of queries, with the one whose callbacks are running */
};

int resolver_init(struct resolver *resolver, struct loop *loop, const struct broker_config *config,
                  struct brig_error *err);
void resolver_done(struct resolver *resolver);

/* Calls request->done once, maybe before it returns. Requests for the same name share a pending
 * query: resolvers drop some if a thousand connections send one each. */
void resolver_ask(struct resolver *resolver, const char *name, struct resolve_request *request);
/* After this request->done is not called. */
void resolver_cancel(struct resolve_request *request);

/* ---- Where an address leads from this machine. A public address may still belong to the machine
 * itself or to a neighbour: with IPv6 this is usual, and a server outside can easily tell the
 * address to a jail. ---- */

enum route_kind {
    ROUTE_FAR,  /* through a gateway or a default route, or there is no route */
    ROUTE_OWN,  /* this machine */
    ROUTE_NEAR, /* a network this machine is connected to, without a gateway in between */
};

/* Opens a socket for route_find(), before confine(). */
int route_open(int *ret_fd, struct brig_error *err);
/* Asks the kernel. If that fails, the address counts as near and is refused. */
enum route_kind route_find(int fd, const struct net_address *address);
const char *route_text(enum route_kind kind); /* "this machine's own", … */

/* ---- Connecting to the first of several addresses that answers (like RFC 8305) ---- */

#define DIAL_ADDRESSES_MAX 16
#define DIAL_AT_ONCE 4

struct dial_attempt {
    struct watch watch; /* fd -1: none */
    struct dial *dial;
    struct net_address address;
};

/* Embedded in its user; zero-initialise. */
struct dial {
    struct loop *loop;
    struct net_address addresses[DIAL_ADDRESSES_MAX];
    size_t count, next;
    uint16_t port;
    struct dial_attempt attempts[DIAL_AT_ONCE];
    size_t running;
    struct timer timer; /* until the next address is tried */
    int last_errno;
    /* Receives the socket and its ownership, or -1 and the reason. */
    void (*done)(struct dial *dial, int fd, const struct net_address *address, int sys_errno);
};

/* Set `done` before. Calls dial->done once, maybe before it returns. The first DIAL_ADDRESSES_MAX
 * addresses are copied. */
void dial_start(struct dial *dial, struct loop *loop, const struct net_address *addresses,
                size_t count, uint16_t port);
/* After this dial->done is not called. */
void dial_cancel(struct dial *dial);
