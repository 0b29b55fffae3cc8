/* SPDX-License-Identifier: MIT */
/* How many jails wait for code. */
#include "server/executor/pool_size.h"

#include "tap.h"

#define IDLE_MS 60000

static void test_begin(void)
{
    struct pool_size size;
    pool_size_init(&size, 2, 16, 1000);
    tap_is_int(pool_size_settle(&size, 0, IDLE_MS, 1000), 2, "in the beginning the least wait");
    pool_size_init(&size, 5, 3, 1000);
    tap_is_int(size.target, 3, "and never more than the most");
    pool_size_init(&size, 0, 16, 1000);
    tap_is_int(size.target, 0, "or none");
    pool_size_missed(&size, 1001);
    tap_is_int(size.target, 1, "until somebody finds none");
}

static void test_growth(void)
{
    struct pool_size size;
    pool_size_init(&size, 2, 16, 0);
    pool_size_missed(&size, 1);
    tap_is_int(size.target, 4, "who finds none makes them twice as many");
    pool_size_missed(&size, 2);
    pool_size_missed(&size, 3);
    tap_is_int(size.target, 16, "each time");
    pool_size_missed(&size, 4);
    tap_is_int(size.target, 16, "up to the most");
    for (int i = 0; i < 100; i++)
        pool_size_taken(&size, 15, 5);
    tap_is_int(size.target, 16, "who finds one changes nothing");
}

static void test_shrinking(void)
{
    struct pool_size size;
    pool_size_init(&size, 2, 16, 0);
    for (int i = 0; i < 3; i++)
        pool_size_missed(&size, 1);
    tap_is_int(pool_size_settle(&size, 16, IDLE_MS, POOL_PERIOD_MS - 1), 16,
               "within a period all stay");
    tap_is_int(pool_size_settle(&size, 16, IDLE_MS, POOL_PERIOD_MS), 16,
               "and after one in which none was left");
    pool_size_taken(&size, 12, POOL_PERIOD_MS + 1);
    tap_is_int(pool_size_settle(&size, 16, IDLE_MS, 2 * POOL_PERIOD_MS), 10,
               "where 12 were never needed, half of them go");
    pool_size_taken(&size, 9, 2 * POOL_PERIOD_MS + 1);
    uint64_t now = 2 * POOL_PERIOD_MS;
    for (int i = 0; i < 10; i++) {
        now += POOL_PERIOD_MS;
        pool_size_taken(&size, size.target - 1, now);
        (void)pool_size_settle(&size, size.target, IDLE_MS, now);
    }
    tap_is_int(size.target, 2, "down to the least");
}

static void test_idleness(void)
{
    struct pool_size size;
    pool_size_init(&size, 2, 16, 0);
    tap_is_int(pool_size_settle(&size, 2, IDLE_MS, IDLE_MS - 1), 2, "before it is idle they wait");
    tap_is_int(pool_size_settle(&size, 2, IDLE_MS, IDLE_MS), 0, "afterwards none");
    pool_size_missed(&size, IDLE_MS + 1);
    tap_is_int(size.target, 4, "until somebody comes again");
    pool_size_init(&size, 2, 16, 0);
    (void)pool_size_settle(&size, 2, IDLE_MS, IDLE_MS);
    pool_size_taken(&size, 0, IDLE_MS + 1);
    tap_is_int(size.target, 2, "also if there was one left");
}

int main(void)
{
    test_begin();
    test_growth();
    test_shrinking();
    test_idleness();
    return tap_done();
}
