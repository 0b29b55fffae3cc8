/* SPDX-License-Identifier: MIT */
/* How often a client may ask. A bucket is kept as the moment at which it will be full again, which
 * is all there is to know of it. */
#include "server/http/rate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "policy/net_address.h"

#define SETS 4096 /* a power of two */
#define WAYS 8

struct bucket {
    uint64_t client[2];
    uint64_t full_us; /* 0: unused */
};

struct rate {
    uint64_t interval_ns; /* of one token; 0: no limit */
    uint64_t depth_ns;    /* of a whole bucket */
    uint64_t key[2];      /* so that nobody can choose who shares a set with whom */
    struct bucket buckets[SETS][WAYS];
};

int rate_new(uint64_t per_second, uint64_t burst, struct rate **ret_rate, struct brig_error *err)
{
    autofree struct rate *rate = calloc(1, sizeof *rate);
    if (!rate)
        return brig_fail_nomem(err);
    if (getrandom(rate->key, sizeof rate->key, 0) != sizeof rate->key)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "no random bytes");
    if (per_second > 0) {
        rate->interval_ns = per_second < 1000000000 ? 1000000000 / per_second : 1;
        rate->depth_ns = (burst > 0 ? burst : per_second) * rate->interval_ns;
    }
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

bool rate_take(struct rate *rate, const struct net_address *client, uint64_t now_us,
               uint64_t *ret_wait_ms)
{
    uint64_t key[2] = {0};
    if (rate->interval_ns == 0)
        return true;
    memcpy(key, client->bytes, client->family == NET_V4 ? 4 : 8);
    key[1] = (uint64_t)client->family;
    struct bucket *bucket = find(rate, key);
    uint64_t full_us = bucket->full_us > now_us ? bucket->full_us : now_us;
    uint64_t missing_ns = (full_us - now_us) * 1000 + rate->interval_ns;
    if (missing_ns > rate->depth_ns && full_us > now_us) {
        *ret_wait_ms = (missing_ns - rate->depth_ns) / 1000000 + 1;
        return false;
    }
    bucket->full_us = full_us + (rate->interval_ns + 999) / 1000;
    return true;
}
