/* SPDX-License-Identifier: MIT */
/* Memory that API keys share: one key cannot take what others need. */
#include "server/executor/share.h"

#include "tap.h"

#define MOST ((size_t)1 << 20)

/* Adds pieces as long as there is room; returns how much that was. */
static size_t fill(struct share_pool *pool, struct share *share, const char *domain)
{
    size_t before = share->bytes;
    while (share_has_room(pool, domain, MOST) && share->bytes < 2 * MOST)
        share_add(pool, share, domain, 1024);
    return share->bytes - before;
}

static void test_one_key(void)
{
    struct share_pool pool = {0};
    struct share one = {0};
    tap_ok(share_has_room(&pool, "", MOST), "an empty pool has room");
    size_t held = fill(&pool, &one, "");
    tap_ok(held >= MOST / 4 * 3 && held <= MOST / 4 * 3 + 1024,
           "one key has what is for all, and no more");
    share_drop(&pool, &one, held);
    tap_is_int(pool.bytes + pool.buckets, 0, "and gives all of it back");
    tap_ok(share_has_room(&pool, "", MOST), "then there is room again");
}

static void test_a_greedy_key(void)
{
    struct share_pool pool = {0};
    struct share greedy[8] = {0}, other = {0}, third = {0};
    size_t held = 0;
    for (size_t i = 0; i < 8; i++) /* in several sandboxes */
        held += fill(&pool, &greedy[i], "0123456789abcdef");
    tap_ok(held <= MOST / 4 * 3 + 1024, "several sandboxes of a key are one");
    tap_ok(!share_has_room(&pool, "0123456789abcdef", MOST),
           "a key that fills the pool gets no more");
    held = fill(&pool, &other, "fedcba9876543210");
    tap_ok(held >= MOST / 8, "another key still has its part: %zu", held);
    held = fill(&pool, &third, "00112233445566ff");
    tap_ok(held >= MOST / 12, "and a third: %zu", held);
    tap_ok(pool.bytes <= MOST + 3 * 1024, "all together keep to the limit: %zu", pool.bytes);
    tap_is_int(pool.buckets, 3, "three keys hold some");
    for (size_t i = 0; i < 8; i++)
        share_drop(&pool, &greedy[i], greedy[i].bytes);
    tap_is_int(pool.bytes, other.bytes + third.bytes, "what the first gives back is free");
    tap_ok(share_has_room(&pool, "fedcba9876543210", MOST), "for the others");
}

static void test_many_keys(void)
{
    struct share_pool pool = {0};
    static struct share shares[1000];
    for (int i = 0; i < 1000; i++) {
        char domain[17];
        (void)snprintf(domain, sizeof domain, "%016x", (unsigned)i * 2654435761u);
        (void)fill(&pool, &shares[i], domain);
    }
    /* 1 + 1/2 + 1/3 + … of the last quarter, if each comes when the pool is full. */
    tap_ok(pool.bytes <= 3 * MOST, "a thousand keys that come one after the other: %zu",
           pool.bytes);
    for (int i = 0; i < 1000; i++)
        share_drop(&pool, &shares[i], shares[i].bytes);
    tap_is_int(pool.bytes + pool.buckets, 0, "and all of it is given back");
}

int main(void)
{
    test_one_key();
    test_a_greedy_key();
    test_many_keys();
    return tap_done();
}
