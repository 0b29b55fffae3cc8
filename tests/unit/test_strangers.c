/* SPDX-License-Identifier: MIT */
/* Which ids root gives to jails that are to have one of their own. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/policy.h"
#include "tap.h"

static struct policy_range range_of(const char *text)
{
    autofile FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    return policy_find_range(file);
}

static void check(const char *text, uint32_t first, uint32_t count, const char *sentence)
{
    struct policy_range range = range_of(text);
    tap_ok(range.first == first && range.count == count, "%s", sentence);
}

int main(void)
{
    const uint32_t first = POLICY_STRANGER_UID, count = POLICY_STRANGER_COUNT;
    check("ann:100000:65536\nbrig:500000:1000\n", 500000, 1000, "those that are set aside");
    check("brig:65536:1\n", 65536, 1, "one is enough");
    check("brig:4294900000:67294\n", 4294900000, 67294, "up to the last id there is");
    check("ann:100000:65536\n", first, count, "without any, our own");
    check("brigd:500000:1000\nxbrig:500000:1000\n", first, count, "other people's are not ours");
    check("brig:1000:1000\n", first, count, "ids of people are not taken");
    check("brig:0:4294967295\n", first, count, "nor root's");
    check("brig:500000:0\n", first, count, "nor none");
    check("brig:4294900000:67295\n", first, count, "nor what is no id");
    check("brig:4294967296:10\nbrig:-5:10\nbrig:x:1\nbrig:500000\nbrig:500000:10 \nbrig\n", first,
          count, "nor what is no range");
    check("brig:x:1\nbrig:500000:10\n", 500000, 10, "of several the first that can be used");
    check(" ", first, count, "an empty file has none");
    return tap_done();
}
