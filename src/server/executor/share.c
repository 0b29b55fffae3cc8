/* SPDX-License-Identifier: MIT */
/* Bytes that API keys share. */
#include "server/executor/share.h"

#include <stdint.h>

/* FNV-1a. A domain is the beginning of the key's SHA-256, so that no client can choose its bucket. */
static unsigned bucket_of(const char *domain)
{
    uint32_t hash = 2166136261u;
    for (; *domain; domain++)
        hash = (hash ^ (unsigned char)*domain) * 16777619u;
    return hash % SHARE_BUCKETS;
}

bool share_has_room(const struct share_pool *pool, const char *domain, size_t most)
{
    size_t held = pool->of_bucket[bucket_of(domain)];
    size_t keys = pool->buckets + (held == 0);
    return pool->bytes <= most / 4 * 3 || held < most / 4 / keys;
}

void share_add(struct share_pool *pool, struct share *share, const char *domain, size_t bytes)
{
    if (bytes == 0)
        return;
    if (share->bytes == 0)
        share->bucket = bucket_of(domain);
    size_t *bucket = &pool->of_bucket[share->bucket];
    pool->buckets += *bucket == 0;
    *bucket += bytes;
    share->bytes += bytes;
    pool->bytes += bytes;
}

void share_drop(struct share_pool *pool, struct share *share, size_t bytes)
{
    size_t *bucket = &pool->of_bucket[share->bucket];
    if (bytes == 0)
        return;
    *bucket -= bytes;
    pool->buckets -= *bucket == 0;
    share->bytes -= bytes;
    pool->bytes -= bytes;
}
