/* SPDX-License-Identifier: MIT */
/* Names to addresses, by the host's own resolvers or by those the configuration names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "net/broker_config.h"
#include "net/broker_loop.h"
#include "policy/net_address.h"

struct ares_channeldata;
struct brig_error;
struct resolve_entry;

#define RESOLVE_ADDRESSES_MAX 16

/* Part of who asks. `why` is NULL, or says why there is no address; a constant. */
struct resolve_request {
    struct resolve_request *next;
    struct resolve_entry *entry; /* NULL: not waiting */
    void (*done)(struct resolve_request *request, const struct net_address *addresses, size_t count,
                 const char *why);
};

struct resolve_socket;

struct resolver {
    struct loop *loop;
    const struct broker_config *config;
    struct ares_channeldata *channel;
    struct timespec changed; /* of resolv.conf, when the channel was made */
    int64_t looked_ms;       /* when that was looked at */
    struct timer timer;
    struct resolve_socket *sockets; /* those c-ares waits for */
    struct resolve_entry *entries;  /* answers, and questions under way */
    size_t entry_count, in_flight;
};

int resolver_init(struct resolver *resolver, struct loop *loop, const struct broker_config *config,
                  struct brig_error *err);
void resolver_done(struct resolver *resolver);

/* Calls request->done once, maybe before it returns. */
void resolver_ask(struct resolver *resolver, const char *name, struct resolve_request *request);
/* It is not called any more. */
void resolver_cancel(struct resolve_request *request);
