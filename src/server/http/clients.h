/* SPDX-License-Identifier: MIT */
/* Who asks: the address behind a connection, or behind the proxies that are trusted. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "policy/net_address.h"
#include "server/config.h"

struct brig_error;

struct clients {
    struct net_range proxies[CONFIG_LIST_MAX];
    size_t proxy_count;
    bool trusts_unix; /* "unix" is in the list */
};

/* Reads the list of trusted proxies. */
int clients_init(struct clients *clients, const struct config_list *proxies,
                 struct brig_error *err);

struct client {
    struct net_address address;
    char text[NET_ADDRESS_TEXT_MAX]; /* "unix" for a local socket */
};

/* `peer` may be NULL; `forwarded` is X-Forwarded-For or NULL. From its right end, the first address
 * that is no trusted proxy is who asks; what is no address ends the search where it stands. */
struct client clients_find(const struct clients *clients, const struct sockaddr *peer,
                           const char *forwarded);
