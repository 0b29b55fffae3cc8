/* SPDX-License-Identifier: MIT */
/* What holds between several keys of the configuration, and what is worth a warning. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/str.h"
#include "server/config.h"
#include "server/config_keys.h"
#include "server/config_parts.h"

#define UID_LAST 4294967294u /* the one above it means "none" */

static const char *origin_of(const struct server_config *config, const char *name)
{
    const struct config_key *key = config_key_find(config_keys, config_key_count, name);
    return key ? config->origins[key - config_keys] : NULL;
}

/* "FILE:LINE", or the name for what is built in. */
static const char *place_of(const struct server_config *config, const char *name)
{
    const char *origin = origin_of(config, name);
    return origin ? origin : "built in";
}

__attribute__((format(printf, 2, 3))) static int warn(struct server_config *config,
                                                      const char *format, ...)
{
    char text[BRIG_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (config->warnings.count == CONFIG_LIST_MAX)
        return 0;
    const char *copy = arena_strdup(&config->arena, text);
    if (!copy)
        return BRIG_E_NOMEM;
    config->warnings.items[config->warnings.count++] = copy;
    return 0;
}

/* ---- A value and the most of it ---- */

struct bound {
    const char *name, *most_name;
    uint64_t *value, *most;
};

/* Where only one of the two was set, the other follows it. */
static int settle(struct server_config *config, struct bound bound, struct brig_error *err)
{
    if (*bound.value <= *bound.most)
        return 0;
    if (!origin_of(config, bound.most_name))
        *bound.most = *bound.value;
    else if (!origin_of(config, bound.name))
        *bound.value = *bound.most;
    else
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s: %s is more than %s (%s). Lower the one or raise the other",
                         place_of(config, bound.name), bound.name, bound.most_name,
                         place_of(config, bound.most_name));
    return 0;
}

static int settle_all(struct server_config *config, struct brig_error *err)
{
#define LIMIT(name, which)                                                                         \
    {                                                                                              \
        "sandbox.default_limits." name, "sandbox.max_limits." name,                                \
            &config->sandbox.limits[which], &config->sandbox.max_limits[which]                     \
    }
    const struct bound bounds[] = {
        {"sandbox.default_timeout", "sandbox.max_timeout", &config->sandbox.default_timeout_ms,
         &config->sandbox.max_timeout_ms},
        {"sandbox.pool.min", "sandbox.pool.max", &config->sandbox.pool.min,
         &config->sandbox.pool.max},
        LIMIT("memory_mb", EXECUTION_MEMORY_MB),
        LIMIT("pids_limit", EXECUTION_PIDS),
        LIMIT("disk_mb", EXECUTION_DISK_MB),
        LIMIT("cpu_percent", EXECUTION_CPU_PERCENT),
    };
#undef LIMIT
    for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++) {
        int result = settle(config, bounds[i], err);
        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- The database ---- */

static int choose_store(struct server_config *config, struct brig_error *err)
{
    bool chosen = origin_of(config, "database.store") != NULL;
    if (config->database.dsn && strcmp(config->database.dsn, "none") == 0) {
        config->database.dsn = NULL;
        if (!chosen)
            config->database.store = STORE_NONE;
    }
    if (!chosen && config->database.dsn)
        config->database.store = STORE_POSTGRES;
    if (config->database.store == STORE_POSTGRES && !config->database.dsn)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s: database.store is postgres, but database.dsn is missing. Add one, "
                         "such as postgres://brig@localhost/brig",
                         place_of(config, "database.store"));
    if (config->database.store == STORE_SQLITE && config->database.dsn)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s: database.store is sqlite, but there is a database.dsn (%s). Take one "
                         "of them out",
                         place_of(config, "database.store"), place_of(config, "database.dsn"));
    return 0;
}

static int finish_database(struct server_config *config, struct brig_error *err)
{
    int result = choose_store(config, err);
    if (result < 0)
        return result;
    if (!config->database.path)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s: database.path is empty. Leave it out",
                         place_of(config, "database.path"));
    if (!config->database.spool_dir) {
        const char *slash = strrchr(config->database.path, '/');
        config->database.spool_dir =
            arena_printf(&config->arena, "%.*s/spool", (int)(slash - config->database.path),
                         config->database.path);
    }
    return config->database.spool_dir ? 0 : brig_fail_nomem(err);
}

/* ---- The rest ---- */

static int check_tls(const struct server_config *config, struct brig_error *err)
{
    if (!config->tls.enabled)
        return 0;
    const char *missing = !config->tls.cert_file  ? "tls.cert_file"
                          : !config->tls.key_file ? "tls.key_file"
                                                  : NULL;
    if (!missing)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0, "%s: tls.enabled is true, but %s is missing",
                     place_of(config, "tls.enabled"), missing);
}

static int check_uids(const struct server_config *config, struct brig_error *err)
{
    if (config->sandbox.uid_first + config->sandbox.uid_count - 1 <= UID_LAST)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "%s: sandbox.uid_first and uid_count go beyond the last uid, %u",
                     place_of(config, "sandbox.uid_first"), UID_LAST);
}

static bool is_local(const char *listen)
{
    return str_starts_with(listen, "127.") || str_starts_with(listen, "[::1]:") ||
           str_starts_with(listen, "localhost:") || str_starts_with(listen, "unix:");
}

/* That there are no keys is said where it is known who reaches the socket. */
static int warn_of(struct server_config *config, struct brig_error *err)
{
    int result = 0;
    bool local = is_local(config->server.listen), keys = config->security.allowed_keys.count > 0;
    if (keys && !local && !config->tls.enabled)
        result |= warn(config, "API keys cross the network unencrypted: tls.enabled is false. That "
                               "is safe only with a TLS proxy in front");
    if (config->database.store == STORE_POSTGRES && config_dsn_is_plain(config->database.dsn))
        result |= warn(config, "database.dsn says sslmode=disable: code and output reach the "
                               "database in the clear");
    if (!config->tls.enabled && (config->tls.cert_file || config->tls.key_file))
        result |= warn(config, "there is a certificate, but tls.enabled is false");
    return result < 0 ? brig_fail_nomem(err) : 0;
}

/* From here on keys are hashes alone, so that no process of the server has them in its memory. */
static int hash_keys(struct server_config *config, struct brig_error *err)
{
    struct config_list *keys = &config->security.allowed_keys;
    for (size_t i = 0; i < keys->count; i++) {
        char hash[SHA256_HEX_LENGTH + 1];
        const char *key = keys->items[i];
        if (str_starts_with(key, CONFIG_HASH_PREFIX))
            continue;
        sha256_hex(key, strlen(key), hash);
        keys->items[i] = arena_concat(&config->arena, CONFIG_HASH_PREFIX, hash);
        if (!keys->items[i])
            return brig_fail_nomem(err);
        explicit_bzero((char *)(uintptr_t)key, strlen(key)); /* it is the arena's */
    }
    return 0;
}

/* A key that is given twice would have two answers to where its work_dir may lie. */
static int check_key_roots(const struct server_config *config, struct brig_error *err)
{
    const struct config_list *keys = &config->security.allowed_keys;
    const struct config_list *const *roots = config->security.key_roots;
    for (size_t i = 0; i < keys->count; i++)
        for (size_t j = 0; j < i; j++)
            if ((roots[i] || roots[j]) && strcasecmp(keys->items[i], keys->items[j]) == 0)
                return brig_fail(err, BRIG_E_INVALID, 0,
                                 "%s: security.allowed_keys: items %zu and %zu are the same key, "
                                 "which has workdir_roots. Give it once",
                                 place_of(config, "security.allowed_keys"), j + 1, i + 1);
    return 0;
}

int config_finish(struct server_config *config, struct brig_error *err)
{
    int result = hash_keys(config, err);
    if (result == 0)
        result = check_key_roots(config, err);
    if (result == 0)
        result = settle_all(config, err);
    if (result == 0)
        result = finish_database(config, err);
    if (result == 0)
        result = check_tls(config, err);
    if (result == 0)
        result = check_uids(config, err);
    if (result == 0 && !config->sandbox.state_dir)
        result = brig_fail(err, BRIG_E_INVALID, 0, "%s: sandbox.state_dir is empty. Leave it out",
                           place_of(config, "sandbox.state_dir"));
    if (result == 0)
        result = config_runtime_finish(config, err);
    return result == 0 ? warn_of(config, err) : result;
}
