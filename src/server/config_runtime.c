/* SPDX-License-Identifier: MIT */
/* Runtimes of the configuration: the built-in ones, changed, and new ones. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "server/config.h"
#include "server/config_parts.h"

#define CODE_UID 65534
#define AGENT_UID 1000

static bool has_name(const struct runtime *runtime, const char *name)
{
    if (strcmp(runtime->name, name) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(runtime->aliases) && runtime->aliases[i]; i++)
        if (strcmp(runtime->aliases[i], name) == 0)
            return true;
    return false;
}

const struct runtime *config_find_runtime(const struct server_config *config, const char *name)
{
    for (size_t i = 0; i < config->runtime_count; i++)
        if (!config->runtimes[i].disabled && has_name(&config->runtimes[i], name))
            return &config->runtimes[i];
    return NULL;
}

int config_fail_language(const struct server_config *config, const char *name,
                         struct brig_error *err)
{
    struct nearest nearest;
    autostr struct str known = {0};
    nearest_begin(&nearest, name);
    for (size_t i = 0; i < config->runtime_count; i++) {
        const struct runtime *runtime = &config->runtimes[i];
        if (runtime->disabled && has_name(runtime, name))
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the language '%s' is switched off by the operator",
                             str_shown(name).text);
        if (runtime->disabled)
            continue;
        str_appendf(&known, "%s%s", known.length ? ", " : "", runtime->name);
        nearest_offer(&nearest, runtime->name, strlen(runtime->name));
    }
    (void)brig_fail(err, BRIG_E_INVALID, 0, "unsupported language '%s'; this server has %.300s",
                    str_shown(name).text, known.data ? known.data : "none");
    return nearest_advise(&nearest, "", BRIG_E_INVALID, err);
}

struct runtime *config_runtime_entry(struct server_config *config, const char *name, size_t length)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        struct runtime *runtime = &config->runtimes[i];
        if (strlen(runtime->name) == length && memcmp(runtime->name, name, length) == 0)
            return runtime;
    }
    return NULL;
}

int config_runtime_begin(struct server_config *config, const char *name, const char *file,
                         size_t line, struct brig_error *err)
{
    struct runtime *runtime = config_runtime_entry(config, name, strlen(name));
    if (!runtime) {
        if (config->runtime_count == RUNTIMES_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0, "there are more than %d", RUNTIMES_MAX);
        runtime = &config->runtimes[config->runtime_count];
        *runtime = (struct runtime){.name = arena_strdup(&config->arena, name),
                                    .profile = BRIG_SECCOMP_CODE};
        if (!runtime->name)
            return brig_fail_nomem(err);
        config->runtime_count++;
    }
    const char *origin = arena_printf(&config->arena, "%s:%zu", file, line);
    if (!origin)
        return brig_fail_nomem(err);
    runtime->origin = origin;
    return 0;
}

int config_runtime_defaults(struct server_config *config, struct brig_error *err)
{
    if (runtime_table_count > RUNTIMES_MAX)
        return brig_fail(err, BRIG_E_STATE, 0, "too many runtimes are built in");
    memcpy(config->runtimes, runtime_table, runtime_table_count * sizeof *runtime_table);
    config->runtime_count = runtime_table_count;
    return 0;
}

/* ---- At the end ---- */

/* A value and the most of it: each may be left to what holds for all; a value of its own that is
 * beyond what holds for all is the most as well. */
static int settle(uint64_t *value, uint64_t *most, uint64_t common, uint64_t common_most,
                  const char *what, const char *what_most, struct brig_error *err)
{
    bool own = *value != 0, own_most = *most != 0;
    if (!own_most)
        *most = own && *value > common_most ? *value : common_most;
    if (!own)
        *value = common < *most ? common : *most;
    if (*value > *most)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s: %" PRIu64 " is more than its %s, %" PRIu64,
                         what, *value, what_most, *most);
    return 0;
}

static int settle_limits(const struct server_config *config, struct runtime *runtime,
                         struct brig_error *err)
{
    static const struct {
        const char *value, *most;
    } names[EXECUTION_LIMITS_] = {
        [EXECUTION_MEMORY_MB] = {"limits.memory_mb", "max_limits.memory_mb"},
        [EXECUTION_PIDS] = {"limits.pids_limit", "max_limits.pids_limit"},
        [EXECUTION_DISK_MB] = {"limits.disk_mb", "max_limits.disk_mb"},
        [EXECUTION_CPU_PERCENT] = {"limits.cpu_percent", "max_limits.cpu_percent"},
    };
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++) {
        int result = settle(&runtime->limits[i], &runtime->max_limits[i], config->sandbox.limits[i],
                            config->sandbox.max_limits[i], names[i].value, names[i].most, err);
        if (result < 0)
            return result;
    }
    return settle(&runtime->timeout_ms, &runtime->max_timeout_ms,
                  config->sandbox.default_timeout_ms, config->sandbox.max_timeout_ms, "timeout",
                  "max_timeout", err);
}

/* What is there before the code comes has to know how to wait for it. */
static bool can_park(const struct runtime *runtime)
{
    const char *slash = strrchr(runtime->argv[0], '/');
    const char *name = slash ? slash + 1 : runtime->argv[0];
    bool plain = !runtime->compile[0] && runtime->input == RUNTIME_FILE;
    if (runtime->parking == PARKING_NODE)
        return plain && (strcmp(name, "node") == 0 || strcmp(name, "nodejs") == 0);
    if (runtime->parking == PARKING_ZYGOTE)
        return plain && strncmp(name, "python3", strlen("python3")) == 0;
    return false;
}

/* An agent has a network and a credential, which are made for one request; and where the program of a
 * built-in runtime was replaced, so is its way to wait. */
static int settle_pool(const struct server_config *config, struct runtime *runtime,
                       struct brig_error *err)
{
    if (runtime->agent || runtime->allow[0] || !can_park(runtime))
        runtime->parking = PARKING_NONE;
    return settle(&runtime->pool_min, &runtime->pool_max, config->sandbox.pool.min,
                  config->sandbox.pool.max, "pool_min", "pool_max", err);
}

static bool mentions_file(const char *const *argv)
{
    for (; *argv; argv++)
        if (strstr(*argv, "{file}"))
            return true;
    return false;
}

static int check_command(struct server_config *config, struct runtime *runtime,
                         struct brig_error *err)
{
    if (!runtime->argv[0])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "it has no command. Add one, such as command: [ruby, \"{file}\"]");
    if (!runtime->file_name)
        runtime->file_name = arena_concat(&config->arena, "main.", runtime->name);
    if (!runtime->file_name)
        return brig_fail_nomem(err);
    if (runtime->input == RUNTIME_FILE && !mentions_file(runtime->argv) &&
        !mentions_file(runtime->compile))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "command and compile do not contain {file}, so the code would not be run. "
                         "Add it, or input: stdin");
    return 0;
}

static int check_names(struct server_config *config, const struct runtime *runtime,
                       struct brig_error *err)
{
    for (const struct runtime *other = config->runtimes; other < runtime; other++) {
        if (has_name(other, runtime->name))
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' also has the name '%s'", other->name,
                             runtime->name);
        for (size_t i = 0; i < ARRAY_LENGTH(runtime->aliases) && runtime->aliases[i]; i++)
            if (has_name(other, runtime->aliases[i]))
                return brig_fail(err, BRIG_E_INVALID, 0, "'%s' also has the name '%s'", other->name,
                                 runtime->aliases[i]);
    }
    return 0;
}

int config_runtime_finish(struct server_config *config, struct brig_error *err)
{
    for (size_t i = 0; i < config->runtime_count; i++) {
        struct runtime *runtime = &config->runtimes[i];
        int result = check_command(config, runtime, err);
        if (result == 0)
            result = check_names(config, runtime, err);
        if (result == 0)
            result = settle_limits(config, runtime, err);
        if (result == 0)
            result = settle_pool(config, runtime, err);
        if (result < 0)
            return brig_wrap(err, result, "%s: runtimes.%s", runtime->origin, runtime->name);
        runtime->inside_uid = runtime->agent ? AGENT_UID : CODE_UID;
    }
    return 0;
}
