/* SPDX-License-Identifier: MIT */
/* Clients: addresses, API keys and the rate limit. */
#include "server/http/clients.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/sha256.h"

/* ---- Addresses ---- */

int clients_init(struct clients *clients, const struct config_list *proxies, struct brig_error *err)
{
    *clients = (struct clients){0};
    for (size_t i = 0; i < proxies->count; i++) {
        const char *text = proxies->items[i];
        int result = net_range_parse(text, strlen(text), &clients->proxies[i], err);
        if (result < 0)
            return brig_wrap(err, result, "security.trusted_proxies");
        clients->proxy_count++;
    }
    return 0;
}

static bool is_trusted(const struct clients *clients, const struct net_address *address)
{
    for (size_t i = 0; i < clients->proxy_count; i++)
        if (net_range_contains(&clients->proxies[i], address))
            return true;
    return false;
}

static struct client client_of(struct net_address address)
{
    struct client client = {.address = address};
    net_address_print(&address, client.text);
    return client;
}

/* Returns the last item of the list without blanks; cuts *length to what precedes it. */
static const char *last_item(const char *list, size_t *length, size_t *ret_item_length)
{
    size_t end = *length, start = end;
    while (start > 0 && list[start - 1] != ',')
        start--;
    *length = start > 0 ? start - 1 : 0;
    while (start < end && (list[start] == ' ' || list[start] == '\t'))
        start++;
    while (end > start && (list[end - 1] == ' ' || list[end - 1] == '\t'))
        end--;
    *ret_item_length = end - start;
    return list + start;
}

struct client clients_find(const struct clients *clients, const struct sockaddr *peer,
                           const char *forwarded)
{
    struct client client = {.address = {.family = NET_V6}, .text = "unix"};
    if (peer && peer->sa_family == AF_INET)
        client =
            client_of(net_address_v4((const void *)&((const struct sockaddr_in *)peer)->sin_addr));
    else if (peer && peer->sa_family == AF_INET6)
        client = client_of(net_address_v6(((const struct sockaddr_in6 *)peer)->sin6_addr.s6_addr));
    else
        return client;
    size_t left = forwarded ? strlen(forwarded) : 0;
    while (left > 0 && is_trusted(clients, &client.address)) {
        size_t length;
        struct net_address address;
        const char *item = last_item(forwarded, &left, &length);
        if (!net_address_read(item, length, &address))
            break;
        client = client_of(address);
    }
    return client;
}

/* The length of the part before the port: "[::1]:8080", "127.0.0.1:8080", "localhost". */
static size_t name_length(const char *host)
{
    if (*host != '[')
        return strcspn(host, ":");
    const char *end = strchr(host, ']');
    return end ? (size_t)(end - host) + 1 : 0;
}

static bool is_listed(const struct config_list *hosts, const char *host, size_t length)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (strlen(hosts->items[i]) == length && strncasecmp(hosts->items[i], host, length) == 0)
            return true;
    return false;
}

bool clients_host_is_own(const struct config_list *hosts, const char *host)
{
    static const char local[] = "localhost";
    struct net_address address;
    size_t length = name_length(host), local_length = sizeof local - 1;
    if (is_listed(hosts, host, length))
        return true;
    if (length > 2 && host[0] == '[')
        return net_address_read(host + 1, length - 2, &address);
    if (net_address_read(host, length, &address))
        return true;
    if (length < local_length ||
        strncasecmp(host + length - local_length, local, local_length) != 0)
        return false;
    return length == local_length || host[length - local_length - 1] == '.';
}

/* ---- API keys ---- */

bool clients_check_key(const struct config_list *keys, const char *given,
                       char ret_domain[CLIENTS_DOMAIN_LENGTH + 1])
{
    char hash[SHA256_HEX_LENGTH + 1];
    unsigned found = 0;
    sha256_hex(given, strlen(given), hash);
    for (size_t i = 0; i < keys->count; i++) {
        const char *key = keys->items[i] + strlen(CONFIG_HASH_PREFIX);
        volatile unsigned char differs = 0;
        for (size_t k = 0; k < SHA256_HEX_LENGTH; k++)
            differs |= (unsigned char)(hash[k] ^ key[k]);
        found |= differs == 0;
    }
    (void)snprintf(ret_domain, CLIENTS_DOMAIN_LENGTH + 1, "%s", found ? hash : "");
    return found;
}

/* ---- The rate limit ---- */

#define SETS 4096 /* a power of two */
#define WAYS 8

/* A bucket is stored as the time at which it will be full again. */
struct bucket {
    uint64_t client[2];
    uint64_t full_us; /* 0: unused */
};

struct pace {
    uint64_t interval_ns; /* time per token; 0: no limit */
    uint64_t depth_ns;    /* time to fill a bucket */
};

struct rate {
    struct pace pace; /* of each address */
    uint64_t key[2];  /* random, so that clients cannot choose their set in the table */
    struct bucket buckets[SETS][WAYS];
};

static struct pace pace_of(uint64_t per_second, uint64_t burst)
{
    struct pace pace = {0};
    if (per_second > 0) {
        pace.interval_ns = per_second < 1000000000 ? 1000000000 / per_second : 1;
        pace.depth_ns = (burst > 0 ? burst : per_second) * pace.interval_ns;
    }
    return pace;
}

int rate_new(uint64_t per_second, uint64_t burst, struct rate **ret_rate, struct brig_error *err)
{
    autofree struct rate *rate = calloc(1, sizeof *rate);
    if (!rate)
        return brig_fail_nomem(err);
    if (getrandom(rate->key, sizeof rate->key, 0) != sizeof rate->key)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "no random bytes");
    rate->pace = pace_of(per_second, burst);
    *ret_rate = take_ptr(&rate);
    return 0;
}

void rate_free(struct rate *rate)
{
    free(rate);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static struct bucket *find(struct rate *rate, const uint64_t client[2])
{
    uint64_t hash = mix(mix(client[0] ^ rate->key[0]) + (client[1] ^ rate->key[1]));
    struct bucket *set = rate->buckets[hash % SETS];
    struct bucket *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].full_us && memcmp(set[i].client, client, sizeof set[i].client) == 0)
            return &set[i];
        if (set[i].full_us < oldest->full_us)
            oldest = &set[i];
    }
    *oldest = (struct bucket){.client = {client[0], client[1]}};
    return oldest;
}

static bool take(struct rate *rate, const uint64_t client[2], struct pace pace, uint64_t now_us,
                 uint64_t *ret_wait_ms)
{
    if (pace.interval_ns == 0)
        return true;
    struct bucket *bucket = find(rate, client);
    uint64_t full_us = bucket->full_us > now_us ? bucket->full_us : now_us;
    uint64_t missing_ns = (full_us - now_us) * 1000 + pace.interval_ns;
    if (missing_ns > pace.depth_ns && full_us > now_us) {
        *ret_wait_ms = (missing_ns - pace.depth_ns) / 1000000 + 1;
        return false;
    }
    bucket->full_us = full_us + (pace.interval_ns + 999) / 1000;
    return true;
}

bool rate_take(struct rate *rate, const struct net_address *client, uint64_t now_us,
               uint64_t *ret_wait_ms)
{
    uint64_t key[2] = {0};
    memcpy(key, client->bytes, client->family == NET_V4 ? 4 : 8);
    key[1] = (uint64_t)client->family;
    return take(rate, key, rate->pace, now_us, ret_wait_ms);
}

bool rate_take_key(struct rate *rate, const char domain[CLIENTS_DOMAIN_LENGTH + 1],
                   uint64_t per_second, uint64_t burst, uint64_t now_us, uint64_t *ret_wait_ms)
{
    uint64_t key[2];
    _Static_assert(sizeof key == CLIENTS_DOMAIN_LENGTH, "a domain has its own bucket");
    memcpy(key, domain, sizeof key); /* digits: no family of an address */
    return take(rate, key, pace_of(per_second, burst), now_us, ret_wait_ms);
}
