/* SPDX-License-Identifier: MIT */
/* Bytes of memory that the sandboxes of all API keys share. Three quarters are for the keys that ask
 * first. When they are used up, each key may still hold its part of the last quarter, so no key can
 * take all of it. The parts become smaller with each key that holds some, but nothing is taken back:
 * together, keys that come one after the other can hold about twice the whole. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Keys are told apart by a hash: two that fall into one bucket share a part. */
#define SHARE_BUCKETS 256

struct share_pool {
    size_t bytes;   /* in use */
    size_t buckets; /* that use any */
    size_t of_bucket[SHARE_BUCKETS];
};

/* What one sandbox holds; zeroed at first. */
struct share {
    size_t bytes;
    unsigned bucket; /* of the key that had it when it began to hold some */
};

/* Returns whether a sandbox of this key may hold more, of a pool of `most` bytes. */
bool share_has_room(const struct share_pool *pool, const char *domain, size_t most);
void share_add(struct share_pool *pool, struct share *share, const char *domain, size_t bytes);
/* Gives back some of what was added. */
void share_drop(struct share_pool *pool, struct share *share, size_t bytes);
