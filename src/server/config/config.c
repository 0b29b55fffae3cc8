/* SPDX-License-Identifier: MIT */
/* The whole configuration: built-in values, then a file, then variables; and checks that involve
 * several keys. */
#include "server/config/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/parse.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/users.h"
#include "server/config/config_keys.h"

#define ROOT_STATE "/var/lib/brig"
#define ROOT_RUN "/run/brigd"
#define SYSTEM_FILE "/etc/brig/brigd.yaml"
#define LOCAL_FILE "configs/config.yaml"
#define UID_LAST 4294967294u /* the next one is (uid_t)-1 */

/* ---- The environment ---- */

/* Returns NULL for an empty variable too. */
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

/* systemd separates several directories with colons; use the first. */
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

/* ---- Built-in values ---- */

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
    ret->sandbox.image_dir = arena_concat(&ret->arena, state, "/images");
    ret->sandbox.state_dir = run_directory(&ret->arena, env, state);
    if (ret->arena.failed)
        return brig_fail_nomem(err);
    assert(runtime_table_count <= RUNTIMES_MAX);
    memcpy(ret->runtimes, runtime_table, runtime_table_count * sizeof *runtime_table);
    ret->runtime_count = runtime_table_count;
    return 0;
}

/* ---- Checks between keys, and warnings ---- */

static const char *origin_of(const struct server_config *config, const char *name)
{
    const struct config_key *key = config_key_find(config_keys, config_key_count, name);
    return key ? config->origins[key - config_keys] : NULL;
}

/* "FILE:LINE", the name of a variable, or "built in". */
static const char *place_of(const struct server_config *config, const char *name)
{
    const char *origin = origin_of(config, name);
    return origin ? origin : "built in";
}

/* A value and its maximum: if only one of the two was set, the other follows it. */
static int settle(struct server_config *config, const char *name, const char *most_name,
                  uint64_t *value, uint64_t *most, struct brig_error *err)
{
    if (*value <= *most)
        return 0;
    if (!origin_of(config, most_name))
        *most = *value;
    else if (!origin_of(config, name))
        *value = *most;
    else
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "%s: %s is more than %s (%s). Lower the one or raise the other",
                         place_of(config, name), name, most_name, place_of(config, most_name));
    return 0;
}

static int settle_all(struct server_config *config, struct brig_error *err)
{
    int result = settle(config, "sandbox.default_timeout", "sandbox.max_timeout",
                        &config->sandbox.default_timeout_ms, &config->sandbox.max_timeout_ms, err);
    if (result == 0)
        result = settle(config, "sandbox.pool.min", "sandbox.pool.max", &config->sandbox.pool.min,
                        &config->sandbox.pool.max, err);
    for (size_t i = 0; result == 0 && i < EXECUTION_LIMITS_; i++) {
        char name[CONFIG_NAME_MAX], most[CONFIG_NAME_MAX];
        (void)str_fill(name, sizeof name, "sandbox.default_limits.", runtime_limit_names[i]);
        (void)str_fill(most, sizeof most, "sandbox.max_limits.", runtime_limit_names[i]);
        result = settle(config, name, most, &config->sandbox.limits[i],
                        &config->sandbox.max_limits[i], err);
    }
    return result;
}

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

static int check_tls(struct server_config *config, struct brig_error *err)
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

static int check_uids(struct server_config *config, struct brig_error *err)
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

static void warn(struct server_config *config, bool condition, const char *text)
{
    if (condition && config->warnings.count < CONFIG_LIST_MAX)
        config->warnings.items[config->warnings.count++] = text;
}

/* The supervisor warns if there are no API keys: it knows whether other machines can reach the
 * socket. */
static void warn_of(struct server_config *config)
{
    warn(config,
         config->security.allowed_keys.count > 0 && !is_local(config->server.listen) &&
             !config->tls.enabled,
         "API keys cross the network unencrypted: tls.enabled is false. That is safe only with a "
         "TLS proxy in front");
    warn(config,
         config->database.store == STORE_POSTGRES && config_dsn_is_plain(config->database.dsn),
         "database.dsn says sslmode=disable: code and output reach the database in the clear");
    warn(config,
         config->database.store == STORE_SQLITE && origin_of(config, "database.dsn") &&
             !origin_of(config, "database.store"),
         "database.dsn is empty: the history is kept in database.path, an SQLite file. For no "
         "history write store: none");
    warn(config, !config->tls.enabled && (config->tls.cert_file || config->tls.key_file),
         "there is a certificate, but tls.enabled is false");
}

/* After this, keys exist only as lower-case hashes: no process of the server has a key in its
 * memory. */
static int hash_keys(struct server_config *config, struct brig_error *err)
{
    struct config_list *keys = &config->security.allowed_keys;
    for (size_t i = 0; i < keys->count; i++) {
        char hash[SHA256_HEX_LENGTH + 1];
        char *key = (char *)(uintptr_t)keys->items[i]; /* in the arena, so writable */
        if (str_starts_with(key, CONFIG_HASH_PREFIX)) {
            for (char *c = key + strlen(CONFIG_HASH_PREFIX); *c; c++)
                *c = (char)tolower((unsigned char)*c);
            continue;
        }
        sha256_hex(key, strlen(key), hash);
        keys->items[i] = arena_concat(&config->arena, CONFIG_HASH_PREFIX, hash);
        if (!keys->items[i])
            return brig_fail_nomem(err);
        explicit_bzero(key, strlen(key));
    }
    return 0;
}

/* A key that is listed twice could have two different rates or lists of directories. */
static int check_keys(struct server_config *config, struct brig_error *err)
{
    const struct config_list *keys = &config->security.allowed_keys;
    const struct config_api_key *items = config->security.keys;
    for (size_t i = 0; i < keys->count; i++)
        for (size_t j = 0; j < i; j++)
            if (memcmp(&items[i], &items[j], sizeof *items) != 0 &&
                strcmp(keys->items[i], keys->items[j]) == 0)
                return brig_fail(err, BRIG_E_INVALID, 0,
                                 "%s: security.allowed_keys: items %zu and %zu are the same key. "
                                 "Give it once",
                                 place_of(config, "security.allowed_keys"), j + 1, i + 1);
    return 0;
}

static int check_state_dir(struct server_config *config, struct brig_error *err)
{
    if (config->sandbox.state_dir)
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0, "%s: sandbox.state_dir is empty. Leave it out",
                     place_of(config, "sandbox.state_dir"));
}

static int finish(struct server_config *config, struct brig_error *err)
{
    static int (*const steps[])(struct server_config * config, struct brig_error * err) = {
        hash_keys, check_keys, settle_all,      finish_database,
        check_tls, check_uids, check_state_dir, config_finish_runtimes,
    };
    int result = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(steps) && result == 0; i++)
        result = steps[i](config, err);
    if (result == 0)
        warn_of(config);
    return result;
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
    static const struct {
        const char *name, *key, *unit;
    } rows[] = {
        {"EXECUTOR_MEMORY_LIMIT_MB", "sandbox.default_limits.memory_mb", ""},
        {"EXECUTOR_CPU_LIMIT_PERCENT", "sandbox.default_limits.cpu_percent", ""},
        {"EXECUTOR_POOL_ENABLED", "sandbox.pool.enabled", ""},
        {"SANDBOX_KILL_GRACE_MS", "sandbox.kill_grace", "ms"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const char *text = variable(env, rows[i].name);
        char value[CONFIG_NAME_MAX];
        (void)snprintf(value, sizeof value, "%s%s", text ? text : "", rows[i].unit);
        int result = text ? set_variable(config, rows[i].name, rows[i].key, value, err) : 0;
        if (result < 0)
            return result;
    }
    const char *port = variable(env, "PORT");
    return port ? set_port(config, port, err) : 0;
}

/* ---- The file ---- */

static int read_file(int fd, const char *path, struct server_config *config, struct brig_error *err)
{
    autostr struct str text = {0};
    str_reserve(&text, 2 * CONFIG_FILE_MAX); /* so that realloc() does not leave copies behind */
    int failed = read_all(fd, CONFIG_FILE_MAX, &text);
    if (failed < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -failed, "read '%s'", str_shown(path).text);
    config->path = arena_strdup(&config->arena, path);
    int result = config->path ? config_yaml_read(path, text.data, text.length, config, err)
                              : brig_fail_nomem(err);
    explicit_bzero(text.data, text.length); /* it may contain keys */
    return result;
}

/* brigd may be started in a directory such as /tmp, where another user has put LOCAL_FILE. */
static int check_owner(int fd, struct brig_error *err)
{
    struct stat info;
    if (fstat(fd, &info) == 0 && (info.st_uid == geteuid() || info.st_uid == 0) &&
        !(info.st_mode & S_IWOTH))
        return 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "another user can write to '" LOCAL_FILE
                     "'. If you trust it: brigd -c " LOCAL_FILE);
}

/* What helps where a file that nobody has named may not be read. */
static const char *advice_for(const char *path)
{
    if (strcmp(path, SYSTEM_FILE) == 0)
        return " (for a brigd of your own create ~/.config/brig/brigd.yaml)";
    if (strcmp(path, LOCAL_FILE) == 0)
        return " (in the working directory: change to another, or name a file with -c)";
    return "";
}

/* Returns 1 if the file was read, 0 if it does not exist and is not `wanted`. */
static int try_file(const char *path, bool wanted, struct server_config *config,
                    struct brig_error *err)
{
    /* A reload must not wait for the writer of a FIFO. */
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && !wanted && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    /* Not skipped if it is for the service's user only: brigd would run without the keys in it. */
    if (fd < 0)
        return brig_fail(err, BRIG_E_INVALID, errno, "configuration '%s'%s", str_shown(path).text,
                         !wanted && errno == EACCES ? advice_for(path) : "");
    if (!wanted && strcmp(path, LOCAL_FILE) == 0 && check_owner(fd, err) < 0)
        return BRIG_E_INVALID;
    (void)fcntl(fd, F_SETFL, 0); /* a pipe from another program may be slow */
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
        result = places[i] ? try_file(places[i], false, config, err) : 0;
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
        result = finish(config, err);
    if (result < 0)
        config_done(config);
    return result;
}

static void note_option(struct server_config *config, const char *name, const char *option)
{
    config->origins[config_key_find(config_keys, config_key_count, name) - config_keys] = option;
}

void config_override(struct server_config *config, const char *listen, bool trace)
{
    if (listen) {
        config->server.listen = listen;
        note_option(config, "server.listen", "--listen");
    }
    if (trace) {
        config->server.trace = true;
        note_option(config, "server.trace", "--trace-requests");
    }
}

int config_parse(const char *name, const void *text, size_t length, struct server_config *ret,
                 struct brig_error *err)
{
    int result = config_yaml_read(name, text, length, ret, err);
    return result < 0 ? result : finish(ret, err);
}

size_t config_find_key(const struct server_config *config, const char *domain)
{
    const struct config_list *keys = &config->security.allowed_keys;
    for (size_t i = 0; i < keys->count && *domain; i++)
        if (strncmp(keys->items[i] + strlen(CONFIG_HASH_PREFIX), domain, strlen(domain)) == 0)
            return i;
    return CONFIG_LIST_MAX;
}

const struct config_list *config_workdir_roots(const struct server_config *config,
                                               const char *domain)
{
    static const struct config_list none = {0};
    size_t key = config_find_key(config, domain);
    if (*domain && key == CONFIG_LIST_MAX)
        return &none; /* the key was removed since the request came */
    if (*domain && config->security.keys[key].roots)
        return config->security.keys[key].roots;
    return &config->sandbox.allowed_workdir_roots;
}

void config_done(struct server_config *config)
{
    arena_wipe(&config->arena);
    arena_wipe(&config->reloaded);
    *config = (struct server_config){0};
}
