/* SPDX-License-Identifier: MIT */
/* Clients: their address, also behind trusted proxies; their API key; their rate limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "policy/net_address.h"
#include "server/config/config.h"

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
    char text[NET_ADDRESS_TEXT_MAX]; /* "unix" for a UNIX socket */
};
/* `peer` may be NULL; `forwarded` is X-Forwarded-For or NULL. The client is the last address in the
 * list that is not a trusted proxy; text that is not an address ends the search. */
struct client clients_find(const struct clients *clients, const struct sockaddr *peer,
                           const char *forwarded);

/* Returns whether a Host header can only mean this machine: an address, localhost or one of `hosts`.
 * Any other name could be a web page's, made to resolve to this machine (DNS rebinding). */
bool clients_host_is_own(const struct config_list *hosts, const char *host);

#define CLIENTS_DOMAIN_LENGTH 16 /* hexadecimal digits that identify a key to other processes */

/* Returns whether `given` is one of security.allowed_keys. All keys are hashes and are
 * compared completely, so that the time taken does not depend on the key. */
bool clients_check_key(const struct config_list *keys, const char *given,
                       char ret_domain[CLIENTS_DOMAIN_LENGTH + 1]);

/* A token bucket for each address, in a table of fixed size. `per_second` 0: no limit. A bucket
 * holds `burst` tokens; 0: the tokens of one second. */
struct rate;
int rate_new(uint64_t per_second, uint64_t burst, struct rate **ret_rate, struct brig_error *err);
void rate_free(struct rate *rate); /* accepts NULL */
/* Returns false if the client must wait for *ret_wait_ms. An IPv6 /64 counts as one client. If the
 * table is full, the client that was idle longest is forgotten. */
bool rate_take(struct rate *rate, const struct net_address *client, uint64_t now_us,
               uint64_t *ret_wait_ms);
/* The same for an API key, which has its own rate. */
bool rate_take_key(struct rate *rate, const char domain[CLIENTS_DOMAIN_LENGTH + 1],
                   uint64_t per_second, uint64_t burst, uint64_t now_us, uint64_t *ret_wait_ms);
