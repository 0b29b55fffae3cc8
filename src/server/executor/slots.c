/* SPDX-License-Identifier: MIT */
/* Slots: each jail of the executor, running or waiting, has one, and as root a host uid with it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/fds.h"
#include "jail/confine/identity.h"
#include "server/config/config.h"
#include "server/executor/capacity.h"
#include "server/executor/executor.h"

#define SLOTS_MORE 64    /* more slots than max_concurrent, for runs that are ending */
#define POOL_SLOTS 16384 /* slots for waiting jails */

int executor_slots_make(struct executor *executor, struct brig_error *err)
{
    const struct server_config *config = executor->config;
    executor->as_root = identity_is_root();
    executor->run_most = config->sandbox.max_concurrent + SLOTS_MORE;
    executor->slot_count = executor->run_most + POOL_SLOTS;
    if (executor->as_root && config->sandbox.uid_count < config->sandbox.max_concurrent)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "sandbox.uid_count is %llu: as root each of max_concurrent (%llu) jails "
                         "needs a uid of its own",
                         (unsigned long long)config->sandbox.uid_count,
                         (unsigned long long)config->sandbox.max_concurrent);
    executor->has_spare_id =
        executor->as_root && config->sandbox.uid_count > config->sandbox.max_concurrent;
    if (executor->as_root)
        executor->slot_count = config->sandbox.uid_count - executor->has_spare_id;
    executor->slots = calloc(executor->slot_count, sizeof *executor->slots);
    return executor->slots ? 0 : brig_fail_nomem(err);
}

/* An eighth of the slots is for waiting jails and for runs that are ending. */
void executor_slots_fit(struct executor *executor)
{
    uint64_t files = fds_raise_limit(RLIM_INFINITY, NULL);
    size_t jails = capacity_jails(files), runs = jails - jails / 8;
    if (jails < executor->slot_count)
        executor->slot_count = jails;
    if (runs < executor->run_most)
        executor->run_most = runs;
    executor->gauges.places = executor->run_most;
    if (runs >= executor->config->sandbox.max_concurrent)
        return;
    char text[192];
    (void)snprintf(text, sizeof text,
                   "%zu executions run at once, and others wait, instead of %llu "
                   "(sandbox.max_concurrent): the limit of open files is %llu",
                   runs, (unsigned long long)executor->config->sandbox.max_concurrent,
                   (unsigned long long)files);
    executor_warn(executor, text);
}

bool executor_slot_take(struct executor *executor, size_t *ret_slot, uid_t *ret_host_uid)
{
    for (size_t i = 0; i < executor->slot_count; i++) {
        size_t slot = (executor->next_slot + i) % executor->slot_count;
        if (executor->slots[slot])
            continue;
        executor->slots[slot] = true;
        executor->slots_taken++;
        executor->next_slot = slot + 1;
        *ret_slot = slot;
        *ret_host_uid =
            executor->as_root ? executor->config->sandbox.uid_first + (uid_t)slot : (uid_t)-1;
        return true;
    }
    return false;
}

void executor_slot_free(struct executor *executor, size_t slot)
{
    if (slot >= executor->slot_count)
        return;
    executor->slots[slot] = false;
    executor->slots_taken--;
}

bool executor_slots_are_spare(const struct executor *executor)
{
    return executor->slot_count - executor->slots_taken > executor->run_most - executor->run_count;
}
