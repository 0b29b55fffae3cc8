/* SPDX-License-Identifier: MIT */
/* The list of destinations that wait for the user's answer. */
#include "cli/network/ask.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

static void happen(struct ask *ask, unsigned number, enum brig_net_verdict verdict)
{
    struct brig_net_event event = {.verdict = verdict, .port = 443};
    (void)snprintf(event.name, sizeof event.name, "n%u.example", number);
    ask_event(ask, &event);
}

static bool waits(const struct ask *ask, const char *text)
{
    for (size_t i = 0; i < ask->count; i++)
        if (strcmp(ask->destinations[i].text, text) == 0)
            return ask->destinations[i].waiting;
    return false;
}

static void test_refused(void)
{
    struct ask ask = ASK_INIT;
    for (unsigned i = 0; i < ASK_DESTINATIONS_MAX; i++)
        happen(&ask, i, BRIG_NET_WAITING);
    tap_is_int((long)ask.count, ASK_DESTINATIONS_MAX, "as many as can wait are listed");
    happen(&ask, 1000, BRIG_NET_WAITING);
    tap_ok(!waits(&ask, "n1000.example:443"), "one more is not, while all of them wait");
    for (unsigned i = 1; i < ASK_DESTINATIONS_MAX; i++)
        happen(&ask, i, BRIG_NET_DENIED);
    happen(&ask, 1001, BRIG_NET_WAITING);
    tap_ok(waits(&ask, "n1001.example:443"), "refused ones make room for one that waits");
    tap_ok(waits(&ask, "n0.example:443"), "one that still waits stays");
    tap_is_str(ask.destinations[1].text, "n2.example:443", "and the oldest refused one goes");
    tap_is_int((long)ask.count, ASK_DESTINATIONS_MAX, "the list has the same length");
}

int main(void)
{
    test_refused();
    return tap_done();
}
