/* SPDX-License-Identifier: MIT */
/* The part of the configuration that SIGHUP changes. It travels between the processes as the text
 * that --print-config prints: API keys are hashes in it, and there is no connection string. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/config/config_keys.h"

/* Keys that config_reload() takes, by the beginnings of their names. Not callback.secret, which is
 * not in the text. */
static const char *const reloaded[] = {
    "security.",
    "sandbox.default_limits.",
    "sandbox.max_limits.",
    "sandbox.default_timeout",
    "sandbox.max_timeout",
    "sandbox.max_queued",
    "sandbox.queue_timeout",
    "queue.",
    "callback.enabled",
    "callback.allow",
    "callback.timeout",
    "callback.attempts",
    "callback.retry",
    "callback.max_body",
    "sandboxes.",
};

void config_reload_print(const struct server_config *config, struct str *out)
{
    struct server_config copy = *config;
    copy.database.dsn = copy.callback.secret = NULL; /* its reader needs no database */
    copy.database.store = STORE_NONE;
    config_print(&copy, out);
}

static bool is_reloaded(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(reloaded); i++)
        if (str_starts_with(name, reloaded[i]))
            return true;
    return false;
}

static bool is_same(const struct config_key *key, const struct server_config *one,
                    const struct server_config *other)
{
    autostr struct str a = {0}, b = {0};
    config_value_print(key, one, &a);
    config_value_print(key, other, &b);
    return !a.failed && !b.failed && str_equal(a.data, b.data);
}

void config_reload_rest(const struct server_config *old, const struct server_config *new,
                        struct str *out)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const char *name = config_keys[i].name;
        bool option = old->origins[i] && str_starts_with(old->origins[i], "--");
        if (!option && !is_reloaded(name) && !is_same(&config_keys[i], old, new))
            str_concat(out, out->length ? ", " : "", name);
    }
}

/* Runtimes themselves do not change: processes refer to them by their index. */
static void take_runtime(struct runtime *runtime, const struct server_config *from)
{
    for (size_t i = 0; i < from->runtime_count; i++) {
        const struct runtime *other = &from->runtimes[i];
        if (strcmp(other->name, runtime->name) != 0)
            continue;
        memcpy(runtime->limits, other->limits, sizeof runtime->limits);
        memcpy(runtime->max_limits, other->max_limits, sizeof runtime->max_limits);
        runtime->timeout_ms = other->timeout_ms;
        runtime->max_timeout_ms = other->max_timeout_ms;
    }
}

/* Takes the members of the keys in `reloaded`, so that there is one list of them. */
static void take(struct server_config *config, const struct server_config *from)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        if (is_reloaded(key->name))
            memcpy((char *)config + key->offset, (const char *)from + key->offset, key->width);
    }
    memcpy(config->security.keys, from->security.keys, sizeof config->security.keys);
    for (size_t i = 0; i < config->runtime_count; i++)
        take_runtime(&config->runtimes[i], from);
}

/* A file that is empty or incomplete while it is written, or a misspelt variable, must not open a
 * server that asks for keys. */
static int check_keys(const struct server_config *config, const struct server_config *from,
                      struct brig_error *err)
{
    if (config->security.allowed_keys.count == 0 || from->security.allowed_keys.count > 0)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "security.allowed_keys is empty: brigd would no longer ask for a key. If that "
                     "is meant, restart brigd");
}

int config_reload(struct server_config *config, const char *text, size_t length,
                  struct brig_error *err)
{
    static const char *const env[] = {"HOME=/", NULL}; /* every path is in the text */
    autofree struct server_config *from = calloc(1, sizeof *from);
    if (!from)
        return brig_fail_nomem(err);
    int result = config_defaults(env, from, err);
    if (result == 0)
        result = config_parse("the new configuration", text, length, from, err);
    if (result == 0)
        result = check_keys(config, from, err);
    if (result < 0) {
        config_done(from);
        return result;
    }
    take(config, from);
    arena_wipe(&config->reloaded);
    config->reloaded = from->arena; /* has the strings that were taken */
    return 0;
}
