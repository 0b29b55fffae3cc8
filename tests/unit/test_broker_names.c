/* SPDX-License-Identifier: MIT */
/* The names a jail has asked for, and their addresses; and the order of timers. */
#include <time.h>

#include "net/broker.h"
#include "net/broker_wire.h"
#include "tap.h"

static struct net_address address_of(const char *text)
{
    struct net_address address;
    if (!net_address_read(text, strlen(text), &address))
        tap_bail("'%s' is no address", text);
    return address;
}

static void check_address(const struct names *names, const char *text, const char *name)
{
    struct net_address address = address_of(text);
    tap_is_str(names_find(names, &address), name, "%s is %s", text, name ? name : "no name's");
}

static void test_names(void)
{
    struct names names = {.limit = 2};
    tap_is_int(names_need(&names, "a.example"), 0, "the first name is the first");
    tap_is_int(names_need(&names, "b.example"), 1, "the second the second");
    tap_is_int(names_need(&names, "a.example"), 0, "asked for again it is the same");
    tap_is_int(names_need(&names, "c.example"), -1, "one past the limit is refused");
    check_address(&names, "198.18.0.16", "a.example");
    check_address(&names, "198.18.0.17", "b.example");
    check_address(&names, "fd62:7269:6700::11", "b.example");
    check_address(&names, "198.18.0.18", NULL);
    check_address(&names, "198.18.0.15", NULL);
    check_address(&names, "198.18.0.2", NULL);
    check_address(&names, "fd62:7269:6700::f", NULL);
    check_address(&names, "fd62:7269:6700:0:1::10", NULL);
    check_address(&names, "fd62:7269:6701::10", NULL);
    check_address(&names, "10.0.0.16", NULL);
    names_done(&names);
}

static void test_ranges(void)
{
    static const struct {
        const char *text;
        bool ours;
    } rows[] = {{"198.18.0.0", true},         {"198.19.255.255", true},
                {"198.17.255.255", false},    {"198.20.0.0", false},
                {"fd62:7269:6700::", true},   {"fd62:7269:6700:ffff::1", true},
                {"fd62:7269:6701::1", false}, {"fd62:7269:66ff::1", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct net_address address = address_of(rows[i].text);
        tap_is_int(names_is_ours(&address), rows[i].ours, "%s is%s of the range", rows[i].text,
                   rows[i].ours ? "" : " not");
    }
}

/* As many as there can be, so that the last address is still in the range, and found. */
static void test_many(void)
{
    struct names names = {.limit = DOOR_NAMES_MAX};
    char name[32];
    size_t wrong = 0;
    for (int i = 0; i < DOOR_NAMES_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%d.example", i);
        wrong += names_need(&names, name) != i;
    }
    for (int i = 0; i < DOOR_NAMES_MAX; i++) {
        struct net_address v4 = names_ipv4((size_t)i), v6 = names_ipv6((size_t)i);
        (void)snprintf(name, sizeof name, "n%d.example", i);
        const char *found4 = names_find(&names, &v4), *found6 = names_find(&names, &v6);
        wrong += !found4 || strcmp(found4, name) != 0 || !found6 || strcmp(found6, name) != 0;
    }
    tap_is_int(wrong, 0, "%d names all have their own addresses", DOOR_NAMES_MAX);
    tap_is_int(names_need(&names, "more.example"), -1, "and there is no more");
    names_done(&names);
}

/* Names are the jail's choice: none is searched for among all that look like it. */
static void test_alike(void)
{
    struct names names = {.limit = DOOR_NAMES_MAX};
    char name[64];
    size_t wrong = 0;
    clock_t before = clock();
    for (int i = 0; i < DOOR_NAMES_MAX; i++) {
        (void)snprintf(name, sizeof name, "the-same-beginning-%d.example", i);
        wrong += names_need(&names, name) != i;
    }
    for (int i = 0; i < DOOR_NAMES_MAX; i++) {
        (void)snprintf(name, sizeof name, "the-same-beginning-%d.other.example", i);
        wrong += names_need(&names, name) != -1;
    }
    tap_is_int(wrong, 0, "%d names that look alike", DOOR_NAMES_MAX);
    tap_ok((clock() - before) / CLOCKS_PER_SEC < 10, "take no time to be found");
    names_done(&names);
}

#define TIMERS 500

static struct timer *take_at(struct loop *loop, int64_t now_ms)
{
    loop->now_ms = now_ms;
    struct timer *timer = loop_take_timer(loop);
    loop->now_ms = 0;
    return timer;
}

static void test_timers(void)
{
    struct loop loop = {.epoll = -1};
    static struct timer all[TIMERS];
    uint32_t state = 1;
    tap_is_int(loop_wait_ms(&loop, 0), -1, "without a timer nothing is waited for");
    for (size_t i = 0; i < TIMERS; i++) {
        state = state * 1103515245 + 12345;
        loop_arm(&loop, &all[i], state >> 16);
    }
    for (size_t i = 0; i < TIMERS; i += 3)
        loop_disarm(&all[i]);
    for (size_t i = 1; i < TIMERS; i += 3)
        loop_arm(&loop, &all[i], all[i].due_ms / 2);
    for (size_t i = 2; i < TIMERS; i += 6)
        loop_arm(&loop, &all[i], all[i].due_ms * 2);
    size_t count = 0, wrong = 0;
    int64_t last = -1;
    struct timer *timer;
    while ((timer = take_at(&loop, INT64_MAX))) {
        wrong += timer->due_ms < last || timer->node.self;
        last = timer->due_ms;
        count++;
    }
    tap_is_int(wrong, 0, "timers come in their order");
    tap_is_int(count, TIMERS - (TIMERS + 2) / 3, "those that were disarmed do not come");
    loop_arm(&loop, &all[0], 100);
    tap_is_int(loop_wait_ms(&loop, 40), 60, "what is waited for is the first");
    tap_ok(!take_at(&loop, 99), "before it is due it is not taken");
    tap_ok(take_at(&loop, 100) == &all[0], "when it is due it is");
    loop_done(&loop);
}

int main(void)
{
    test_names();
    test_ranges();
    test_many();
    test_alike();
    test_timers();
    return tap_done();
}
