/* SPDX-License-Identifier: MIT */
/* The interpreter from which the jails of one pool are forked. No code of anybody's runs in it, and it
 * holds no secret: its policy is the one of a run. */
#include "server/warden/pool_zygote.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/str.h"
#include "jail/template/zygote.h"
#include "server/config.h"
#include "server/warden/jail_check.h"
#include "server/warden/warden.h"

struct pool_zygote *warden_zygote_new(struct warden *warden, const struct runtime *runtime)
{
    struct pool_zygote *own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    own->warden = warden;
    own->runtime = runtime;
    own->source.fd = -1;
    return own;
}

static int start(struct pool_zygote *own, const struct jail *jail, const char *modules,
                 struct brig_error *err)
{
    const struct warden *warden = own->warden;
    char file[sizeof RUNTIME_WORKSPACE + 1 + EXECUTION_NAME_MAX];
    (void)snprintf(file, sizeof file, RUNTIME_WORKSPACE "/%s", jail_file_name(own->runtime));
    struct zygote_config config = {.policy = jail->policy,
                                   .argv = jail->argv,
                                   .file = file,
                                   .modules = modules,
                                   .library = warden->pools.library,
                                   .groups = warden->pools.groups};
    if (warden->as_root) { /* each slot's, and the one behind them */
        config.first_id = warden->config->sandbox.uid_first;
        config.id_count = (uint32_t)warden->slot_count + 1;
    }
    return zygote_new(&config, &own->zygote, err);
}

int warden_zygote_build(void *what, struct brig_error *err)
{
    struct pool_zygote *own = what;
    const struct warden *warden = own->warden;
    const struct config_list *preload = &warden->config->sandbox.pool.preload;
    autostr struct str modules = {0};
    struct jail jail;
    for (size_t i = 0; i < preload->count; i++)
        str_appendf(&modules, "%s%s", i > 0 ? " " : "", preload->items[i]);
    if (modules.failed)
        return brig_fail_nomem(err);
    uid_t host_uid = warden->as_root ? warden->config->sandbox.uid_first : (uid_t)-1;
    int result = warden_jail_make_late(&warden->ground, own->runtime, host_uid, &jail, err);
    if (result == 0)
        result = start(own, &jail, modules.data, err);
    warden_jail_done(&jail);
    return result;
}

void warden_zygote_give_up(struct pool_zygote *own)
{
    own->gone = true;
    warden_unwatch(own->warden, &own->source);
}

static void heard(void *owner, uint32_t events)
{
    struct pool_zygote *own = owner;
    struct brig_error err = {0};
    (void)events;
    if (own->gone || zygote_process(own->zygote, &err) == 0)
        return;
    warden_zygote_give_up(own);
    warden_pools_zygote_lost(own->warden, &err);
}

int warden_zygote_adopt(struct pool_zygote *own, struct brig_error *err)
{
    own->born_ms = clock_now_ms();
    own->source =
        (struct warden_source){.ready = heard, .owner = own, .fd = zygote_fd(own->zygote)};
    return warden_watch(own->warden, &own->source, EPOLLIN, err);
}

bool warden_zygote_is_ready(const struct pool_zygote *own)
{
    return own && own->zygote && !own->gone && zygote_is_ready(own->zygote);
}

bool warden_zygote_is_worn(const struct pool_zygote *own, uint64_t now_ms)
{
    if (!own || own->gone)
        return true;
    const struct server_config *config = own->warden->config;
    return own->runs >= config->sandbox.pool.zygote_runs ||
           now_ms >= own->born_ms + config->sandbox.pool.zygote_age_ms;
}

void warden_zygote_bury(struct pool_zygote *own)
{
    if (!own)
        return;
    if (!own->gone)
        warden_unwatch(own->warden, &own->source);
    own->gone = true;
    own->next = own->warden->pools.buried;
    own->warden->pools.buried = own;
}

void warden_zygotes_clear(struct warden *warden)
{
    while (warden->pools.buried) {
        struct pool_zygote *own = warden->pools.buried;
        warden->pools.buried = own->next;
        zygote_free(own->zygote);
        free(own);
    }
}
