/* SPDX-License-Identifier: MIT */
/* The configuration as a whole: built-in values, then a file, then variables. */
#include "server/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/users.h"
#include "server/config_keys.h"
#include "server/config_parts.h"

#define ROOT_STATE "/var/lib/brig"
#define ROOT_RUN "/run/brigd"
#define SYSTEM_FILE "/etc/brig/brigd.yaml"
#define LOCAL_FILE "configs/config.yaml"

/* ---- The environment ---- */

/* NULL also if it is empty. */
static const char *variable(const char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return (*env)[length + 1] ? *env + length + 1 : NULL;
    return NULL;
}

static const char *absolute_variable(const char *const *env, const char *name)
{
    const char *value = variable(env, name);
    return value && value[0] == '/' ? value : NULL;
}

static const char *home_of(struct arena *arena, const char *const *env)
{
    char line[USERS_LINE_MAX];
    struct users_user user;
    const char *home = absolute_variable(env, "HOME");
    if (home)
        return home;
    if (users_find(geteuid(), line, &user) && user.home[0] == '/')
        return arena_strdup(arena, user.home);
    return NULL;
}

/* systemd separates several with colons; ours is the first. */
static const char *systemd_directory(struct arena *arena, const char *const *env, const char *name)
{
    const char *value = absolute_variable(env, name);
    return value ? arena_printf(arena, "%.*s", (int)strcspn(value, ":"), value) : NULL;
}

static const char *state_base(struct arena *arena, const char *const *env)
{
    const char *directory = systemd_directory(arena, env, "STATE_DIRECTORY");
    if (directory)
        return directory;
    if (geteuid() == 0)
        return ROOT_STATE;
    directory = absolute_variable(env, "XDG_STATE_HOME");
    if (directory)
        return arena_concat(arena, directory, "/brig");
    const char *home = home_of(arena, env);
    return home ? arena_concat(arena, home, "/.local/state/brig") : NULL;
}

static const char *run_directory(struct arena *arena, const char *const *env, const char *state)
{
    const char *directory = systemd_directory(arena, env, "RUNTIME_DIRECTORY");
    if (directory)
        return directory;
    if (geteuid() == 0)
        return ROOT_RUN;
    directory = absolute_variable(env, "XDG_RUNTIME_DIR");
    return directory ? arena_concat(arena, directory, "/brigd")
                     : arena_concat(arena, state, "/run");
}

/* ---- What is built in ---- */

int config_defaults(const char *const *env, struct server_config *ret, struct brig_error *err)
{
    *ret = (struct server_config){0};
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        int result = key->initial ? config_value_set(key, ret, &ret->arena, key->initial, err) : 0;
        if (result < 0)
            return brig_wrap(err, result, "%s", key->name);
    }
    const char *state = state_base(&ret->arena, env);
    if (!state)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "no place for the history: uid %u has no home. Set HOME or XDG_STATE_HOME",
                         geteuid());
    ret->database.path = arena_concat(&ret->arena, state, "/history.sqlite");
    ret->sandbox.state_dir = run_directory(&ret->arena, env, state);
    if (ret->arena.failed)
        return brig_fail_nomem(err);
    return config_runtime_defaults(ret, err);
}

/* ---- Variables ---- */

static int set_variable(struct server_config *config, const char *variable_name,
                        const char *key_name, const char *text, struct brig_error *err)
{
    const struct config_key *key = config_key_find(config_keys, config_key_count, key_name);
    int result = config_value_set(key, config, &config->arena, text, err);
    if (result < 0)
        return brig_wrap(err, result, "variable %s", variable_name);
    config->origins[key - config_keys] = variable_name;
    return 0;
}

static int set_port(struct server_config *config, const char *text, struct brig_error *err)
{
    char listen[CONFIG_NAME_MAX];
    uint64_t port = 0;
    if (parse_uint(text, UINT16_MAX, PARSE_ZERO_OK, &port, NULL) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "variable PORT: '%s' is not a port from 0 to 65535", str_shown(text).text);
    const char *old = config->server.listen;
    if (str_starts_with(old, "unix:"))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "variable PORT: server.listen is '%s', which has no port. Unset PORT",
                         str_shown(old).text);
    const char *colon = strrchr(old, ':');
    (void)snprintf(listen, sizeof listen, "%.*s:%u", (int)(colon - old), old, (unsigned)port);
    return set_variable(config, "PORT", "server.listen", listen, err);
}

static int read_variables(const char *const *env, struct server_config *config,
                          struct brig_error *err)
{
    static const char *const names[][2] = {
        {"EXECUTOR_MEMORY_LIMIT_MB", "sandbox.default_limits.memory_mb"},
        {"EXECUTOR_CPU_LIMIT_PERCENT", "sandbox.default_limits.cpu_percent"},
        {"EXECUTOR_POOL_ENABLED", "sandbox.pool.enabled"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *text = variable(env, names[i][0]);
        int result = text ? set_variable(config, names[i][0], names[i][1], text, err) : 0;
        if (result < 0)
            return result;
    }
    char grace[CONFIG_NAME_MAX];
    const char *text = variable(env, "SANDBOX_KILL_GRACE_MS");
    if (text) {
        (void)snprintf(grace, sizeof grace, "%sms", text);
        int result =
            set_variable(config, "SANDBOX_KILL_GRACE_MS", "sandbox.kill_grace", grace, err);
        if (result < 0)
            return result;
    }
    text = variable(env, "PORT");
    return text ? set_port(config, text, err) : 0;
}

/* ---- The file ---- */

static int read_file(int fd, const char *path, struct server_config *config, struct brig_error *err)
{
    autofree char *text = malloc(CONFIG_FILE_MAX + 1);
    size_t length = 0;
    if (!text)
        return brig_fail_nomem(err);
    while (length <= CONFIG_FILE_MAX) {
        ssize_t count = read(fd, text + length, CONFIG_FILE_MAX + 1 - length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "read '%s'", str_shown(path).text);
        if (count == 0)
            break;
        length += (size_t)count;
    }
    config->path = arena_strdup(&config->arena, path);
    int result =
        config->path ? config_yaml_read(path, text, length, config, err) : brig_fail_nomem(err);
    explicit_bzero(text, length); /* there may be keys in it */
    return result;
}

/* 1 if it was read, 0 if there is none and none is wanted. */
static int try_file(const char *path, bool wanted, struct server_config *config,
                    struct brig_error *err)
{
    if (!path)
        return 0;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && !wanted && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "configuration '%s'", str_shown(path).text);
    int result = read_file(fd, path, config, err);
    return result < 0 ? result : 1;
}

static int find_file(const char *path, const char *const *env, struct server_config *config,
                     struct brig_error *err)
{
    if (!path)
        path = variable(env, "CONFIG_PATH");
    if (path)
        return try_file(path, true, config, err);
    const char *base = absolute_variable(env, "XDG_CONFIG_HOME");
    const char *home = base ? NULL : home_of(&config->arena, env);
    if (home)
        base = arena_concat(&config->arena, home, "/.config");
    const char *own = base ? arena_concat(&config->arena, base, "/brig/brigd.yaml") : NULL;
    const char *const places[] = {LOCAL_FILE, own, SYSTEM_FILE};
    int result = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(places) && result == 0; i++)
        result = try_file(places[i], false, config, err);
    return result;
}

int config_load(const char *path, const char *const *env, struct server_config *ret,
                struct brig_error *err)
{
    struct server_config *config = ret;
    int result = config_defaults(env, config, err);
    if (result == 0)
        result = find_file(path, env, config, err);
    if (result >= 0)
        result = read_variables(env, config, err);
    if (result == 0)
        result = config_finish(config, err);
    if (result < 0)
        config_done(config);
    return result;
}

int config_parse(const char *name, const void *text, size_t length, struct server_config *ret,
                 struct brig_error *err)
{
    int result = config_yaml_read(name, text, length, ret, err);
    return result < 0 ? result : config_finish(ret, err);
}

const struct config_list *config_workdir_roots(const struct server_config *config,
                                               const char *domain)
{
    const struct config_list *keys = &config->security.allowed_keys;
    for (size_t i = 0; i < keys->count && *domain; i++)
        if (config->security.key_roots[i] &&
            strncasecmp(keys->items[i] + strlen(CONFIG_HASH_PREFIX), domain, strlen(domain)) == 0)
            return config->security.key_roots[i];
    return &config->sandbox.allowed_workdir_roots;
}

void config_done(struct server_config *config)
{
    arena_done(&config->arena);
    *config = (struct server_config){0};
}
