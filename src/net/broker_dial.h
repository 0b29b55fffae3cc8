/* SPDX-License-Identifier: MIT */
/* Connecting to the first of several addresses that answers (in the manner of RFC 8305). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/broker_loop.h"
#include "policy/net_address.h"

#define DIAL_ADDRESSES_MAX 16
#define DIAL_AT_ONCE 4

struct dial;

struct dial_attempt {
    struct watch watch; /* fd -1: none */
    struct dial *dial;
    struct net_address address;
};

/* Part of who dials; zero-initialised it is idle. */
struct dial {
    struct loop *loop;
    struct net_address addresses[DIAL_ADDRESSES_MAX];
    size_t count, next;
    uint16_t port;
    int routes; /* to ask whether an address is this machine's; -1: none is */
    struct dial_attempt attempts[DIAL_AT_ONCE];
    size_t running;
    struct timer timer; /* until the next address is tried beside those that do not answer */
    int last_errno;
    /* The socket, which is now the receiver's, or -1 and why none could be had. */
    void (*done)(struct dial *dial, int fd, const struct net_address *address, int sys_errno);
};

/* Set `done` and `routes` before. IPv6 and IPv4 take turns, whichever came first going first. Calls dial->done once, maybe before it
 * returns. The addresses are copied, the first DIAL_ADDRESSES_MAX of them. */
void dial_start(struct dial *dial, struct loop *loop, const struct net_address *addresses,
                size_t count, uint16_t port);
/* It is not called any more. */
void dial_cancel(struct dial *dial);
