/* SPDX-License-Identifier: MIT */
/* Clients: the address of one, behind trusted proxies too; its API key; how often it may ask. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "policy/net_address.h"
#include "server/config.h"

struct brig_error;

/* The trusted proxies. */
struct clients {
    struct net_range proxies[CONFIG_LIST_MAX];
    size_t proxy_count;
};
int clients_init(struct clients *clients, const struct config_list *proxies,
                 struct brig_error *err);

struct client {
    struct net_address address;
    char text[NET_ADDRESS_TEXT_MAX]; /* "unix" for a local socket */
};
/* `peer` may be NULL; `forwarded` is X-Forwarded-For or NULL. The client is the first address from its
 * right end that is not a trusted proxy; text that is not an address ends the search. */
struct client clients_find(const struct clients *clients, const struct sockaddr *peer,
                           const char *forwarded);

/* Whether a Host header can only mean this machine: an address or localhost. A web page can make any
 * other name point here. */
bool clients_host_is_own(const char *host);

#define CLIENTS_DOMAIN_LENGTH 16 /* hexadecimal digits by which other processes know a key */

/* Whether the key is one of security.allowed_keys, and which. The keys are hashes, and all of them are
 * compared whole, so that the time it takes says nothing. */
bool clients_check_key(const struct config_list *keys, const char *given,
                       char ret_domain[CLIENTS_DOMAIN_LENGTH + 1], size_t *ret_which);

/* A token bucket for each address, in a table of fixed size. `per_second` of 0: no limit. A bucket holds
 * `burst` tokens; of 0: as many as come in a second. */
struct rate;
int rate_new(uint64_t per_second, uint64_t burst, struct rate **ret_rate, struct brig_error *err);
void rate_free(struct rate *rate); /* accepts NULL */
/* False if the client must wait for *ret_wait_ms. A /64 of IPv6 is one client. When the table is full,
 * the client that has been quiet for longest is forgotten. */
bool rate_take(struct rate *rate, const struct net_address *client, uint64_t now_us,
               uint64_t *ret_wait_ms);
