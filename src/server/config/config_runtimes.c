/* SPDX-License-Identifier: MIT */
/* Runtimes of the configuration: built-in, changed and new. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/config/config_keys.h"

static bool has_name(const struct runtime *runtime, const char *name)
{
    if (strcmp(runtime->name, name) == 0)
        return true;
    for (size_t i = 0; runtime->aliases[i]; i++)
        if (strcmp(runtime->aliases[i], name) == 0)
            return true;
    return false;
}

/* Neither the name nor another line of it is in the configuration. */
static bool is_built_in(const struct runtime *runtime)
{
    return runtime->origin && strcmp(runtime->origin, "built in") == 0;
}

/* Names in the configuration go before those of built-in runtimes, which later versions may add. */
const struct runtime *config_find_runtime(const struct server_config *config, const char *name)
{
    const struct runtime *found = NULL;
    for (size_t i = 0; i < config->runtime_count; i++) {
        const struct runtime *runtime = &config->runtimes[i];
        if (!runtime->disabled && has_name(runtime, name) && (!found || !is_built_in(runtime)))
            found = runtime;
    }
    return found;
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

/* Completes a value and its maximum from the common ones. A value set for the runtime alone that
 * exceeds the common maximum becomes the maximum. */
static int settle_own(uint64_t *value, uint64_t *most, uint64_t common, uint64_t common_most,
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

static int settle_limits(struct server_config *config, struct runtime *runtime,
                         struct brig_error *err)
{
    for (size_t i = 0; i < EXECUTION_LIMITS_; i++) {
        char name[CONFIG_NAME_MAX], most[CONFIG_NAME_MAX];
        (void)str_fill(name, sizeof name, "limits.", runtime_limit_names[i]);
        (void)str_fill(most, sizeof most, "max_limits.", runtime_limit_names[i]);
        int result =
            settle_own(&runtime->limits[i], &runtime->max_limits[i], config->sandbox.limits[i],
                       config->sandbox.max_limits[i], name, most, err);
        if (result < 0)
            return result;
    }
    return settle_own(&runtime->timeout_ms, &runtime->max_timeout_ms,
                      config->sandbox.default_timeout_ms, config->sandbox.max_timeout_ms, "timeout",
                      "max_timeout", err);
}

/* Only these interpreters have a way to wait for their code. */
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

/* Agents have a network and a credential that are made for one request, so their jails cannot wait.
 * Neither can a built-in runtime whose program was replaced. */
static int settle_pool(struct server_config *config, struct runtime *runtime,
                       struct brig_error *err)
{
    if (runtime->agent || runtime->allow[0] || !can_park(runtime))
        runtime->parking = PARKING_NONE;
    return settle_own(&runtime->pool_min, &runtime->pool_max, config->sandbox.pool.min,
                      config->sandbox.pool.max, "pool_min", "pool_max", err);
}

static bool mentions_file(const char *const *argv)
{
    for (; *argv; argv++)
        if (strstr(*argv, "{file}") || strcmp(*argv, "{files}") == 0)
            return true;
    return false;
}

/* A command in the configuration replaces the built-in one with its compiler. */
static void drop_built_in_compiler(struct runtime *runtime)
{
    for (size_t i = 0; i < runtime_table_count; i++) {
        const struct runtime *row = &runtime_table[i];
        if (strcmp(row->name, runtime->name) == 0 && runtime->argv[0] != row->argv[0] &&
            runtime->compile[0] == row->compile[0])
            runtime->compile[0] = NULL;
    }
}

static int check_command(struct server_config *config, struct runtime *runtime,
                         struct brig_error *err)
{
    drop_built_in_compiler(runtime);
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

/* The other programs run one command in an image, without a network. */
static int check_backend(struct server_config *config, struct runtime *runtime,
                         struct brig_error *err)
{
    const char *backend = runtime_backend_names[runtime->backend];
    const char *other = runtime->agent        ? "agent"
                        : runtime->allow[0]   ? "allow"
                        : runtime->compile[0] ? "compile"
                                              : NULL;
    (void)config;
    if (runtime->backend == BACKEND_BRIG)
        return 0;
    if (!runtime->image)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "backend: %s needs an image. Add one, or write backend: brig", backend);
    if (other)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "backend: %s does not go with %s. Leave out one of them", backend, other);
    return 0;
}

static int check_names(struct server_config *config, struct runtime *runtime,
                       struct brig_error *err)
{
    for (const struct runtime *other = config->runtimes; other < runtime; other++) {
        const char *name = is_built_in(other) || is_built_in(runtime) ? NULL : runtime->name;
        for (size_t i = 0; name && !has_name(other, name); i++)
            name = runtime->aliases[i]; /* the last one is NULL */
        if (name)
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' also has the name '%s'", other->name,
                             name);
    }
    return 0;
}

int config_finish_runtimes(struct server_config *config, struct brig_error *err)
{
    static int (*const steps[])(struct server_config * config, struct runtime * runtime,
                                struct brig_error * err) = {
        check_command, check_backend, check_names, settle_limits, settle_pool};
    for (size_t i = 0; i < config->runtime_count; i++) {
        struct runtime *runtime = &config->runtimes[i];
        int result = 0;
        for (size_t k = 0; k < ARRAY_LENGTH(steps) && result == 0; k++)
            result = steps[k](config, runtime, err);
        if (result < 0)
            return brig_wrap(err, result, "%s: runtimes.%s", runtime->origin, runtime->name);
    }
    return 0;
}
