/* SPDX-License-Identifier: MIT */
/* The interpreter from which the jails of one pool are forked. No code of anybody's runs in it, and it
 * holds no secret: its policy is the one of a run. */
#include "server/executor/pool_zygote.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "jail/prepare/zygote.h"
#include "server/config.h"
#include "server/executor/executor.h"
#include "server/executor/jail_check.h"

static int start(struct pool_zygote *own, const struct jail *jail, const char *modules,
                 struct brig_error *err)
{
    const struct executor *executor = own->executor;
    char file[sizeof RUNTIME_WORKSPACE + 1 + EXECUTION_NAME_MAX];
    (void)snprintf(file, sizeof file, RUNTIME_WORKSPACE "/%s", jail_file_name(own->runtime));
    struct zygote_config config = {.policy = jail->policy,
                                   .argv = jail->argv,
                                   .file = file,
                                   .modules = modules,
                                   .library = executor->pools.library};
    if (executor->as_root) { /* each slot's, and the one behind them */
        config.first_id = executor->config->sandbox.uid_first;
        config.id_count = (uint32_t)executor->slot_count + 1;
    }
    return zygote_new(&config, &own->zygote, err);
}

static int build(struct pool_zygote *own, struct brig_error *err)
{
    const struct executor *executor = own->executor;
    const struct config_list *preload = &executor->config->sandbox.pool.preload;
    autostr struct str modules = {0};
    struct jail jail;
    for (size_t i = 0; i < preload->count; i++)
        str_appendf(&modules, "%s%s", i > 0 ? " " : "", preload->items[i]);
    if (modules.failed)
        return brig_fail_nomem(err);
    uid_t host_uid = executor->as_root ? executor->config->sandbox.uid_first : (uid_t)-1;
    int result = executor_jail_make_late(&executor->ground, own->runtime, host_uid, &jail, err);
    if (result == 0)
        result = start(own, &jail, modules.data, err);
    executor_jail_done(&jail);
    return result;
}

void executor_zygote_give_up(struct pool_zygote *own)
{
    own->gone = true;
    executor_unwatch(own->executor, &own->source);
}

static void heard(void *owner, uint32_t events)
{
    struct pool_zygote *own = owner;
    struct brig_error err = {0};
    (void)events;
    if (own->gone || zygote_process(own->zygote, &err) == 0)
        return;
    executor_zygote_give_up(own);
    executor_pools_zygote_lost(own->executor, &err);
}

static int adopt(struct pool_zygote *own, struct brig_error *err)
{
    own->born_ms = clock_now_ms();
    own->source =
        (struct executor_source){.ready = heard, .owner = own, .fd = zygote_fd(own->zygote)};
    return executor_watch(own->executor, &own->source, EPOLLIN, err);
}

int executor_zygote_new(struct executor *executor, const struct runtime *runtime,
                        struct pool_zygote **ret_zygote, struct brig_error *err)
{
    struct pool_zygote *own = calloc(1, sizeof *own);
    if (!own)
        return brig_fail_nomem(err);
    *own = (struct pool_zygote){.executor = executor, .runtime = runtime, .source.fd = -1};
    int result = build(own, err);
    if (result == 0)
        result = adopt(own, err);
    if (result < 0) {
        zygote_free(own->zygote);
        free(own);
        return result;
    }
    *ret_zygote = own;
    return 0;
}

bool executor_zygote_is_ready(const struct pool_zygote *own)
{
    return own && own->zygote && !own->gone && zygote_is_ready(own->zygote);
}

bool executor_zygote_is_worn(const struct pool_zygote *own, uint64_t now_ms)
{
    if (!own || own->gone)
        return true;
    const struct server_config *config = own->executor->config;
    return own->runs >= config->sandbox.pool.zygote_runs ||
           now_ms >= own->born_ms + config->sandbox.pool.zygote_age_ms;
}

void executor_zygote_bury(struct pool_zygote *own)
{
    if (!own)
        return;
    if (!own->gone)
        executor_unwatch(own->executor, &own->source);
    own->gone = true;
    own->next = own->executor->pools.buried;
    own->executor->pools.buried = own;
}

void executor_zygotes_clear(struct executor *executor)
{
    while (executor->pools.buried) {
        struct pool_zygote *own = executor->pools.buried;
        executor->pools.buried = own->next;
        zygote_free(own->zygote);
        free(own);
    }
}
