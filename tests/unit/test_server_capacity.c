/* SPDX-License-Identifier: MIT */
/* How many executions a machine has room for. */
#include "server/executor/capacity.h"

#include "tap.h"

#define MIB ((uint64_t)1 << 20)

int main(void)
{
    tap_is_int(capacity_jails(0), 2, "without descriptors there are still two jails");
    tap_is_int(capacity_jails(204), 10, "jails share the descriptors that others leave");
    tap_is_int(capacity_jails(65536), 4676, "many have room in a common limit");
    tap_ok(capacity_jails(UINT64_MAX) > 1000000, "without a limit there are enough");
    tap_is_int(capacity_places(5, 100, 1000 * MIB, 1000 * MIB), 5, "without memory none is added");
    tap_is_int(capacity_places(5, 100, 1064 * MIB, 1000 * MIB), 7, "memory makes places");
    tap_is_int(capacity_places(5, 100, UINT64_MAX, 0), 100, "up to the most");
    tap_is_int(capacity_places(0, 100, 0, 1), 1, "one can always run");
    tap_ok(capacity_free_memory() > MIB, "this machine has memory");
    return tap_done();
}
