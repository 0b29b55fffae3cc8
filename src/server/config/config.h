/* SPDX-License-Identifier: MIT */
/* brigd's configuration, from a YAML file, environment variables and built-in values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "server/config/runtime.h"
#include "server/execution.h"
#include "server/log.h"

struct brig_error;
struct str;

#define CONFIG_LIST_MAX 256
#define CONFIG_HASH_PREFIX "sha256:" /* marks an API key that is given as its hash */
#define CONFIG_KEYS_MAX 128
#define CONFIG_FILE_MAX ((size_t)256 << 10)

struct config_list {
    const char *items[CONFIG_LIST_MAX];
    size_t count;
};

/* What an item of security.allowed_keys says besides its key. */
struct config_api_key {
    const char *name; /* for logs; or NULL */
    /* The directories that may contain its work_dir; NULL: sandbox.allowed_workdir_roots. */
    const struct config_list *roots;
    uint64_t rate_limit_rps, rate_limit_burst; /* 0: the common ones */
    uint64_t max_priority;                     /* 0: queue.max_priority */
};

enum config_backend { BACKEND_AUTO, BACKEND_NATIVE };
enum config_store { STORE_SQLITE, STORE_POSTGRES, STORE_NONE };
enum config_piston { PISTON_LENIENT, PISTON_STRICT };    /* versions that clients ask for */
enum config_keep { KEEP_FULL, KEEP_HASH, KEEP_NOTHING }; /* code and output, in the history */

/* All strings are in the arena. */
struct server_config {
    struct arena arena;
    struct arena reloaded; /* strings of config_reload() */
    const char *path;      /* the file that was read, or NULL */
    struct {
        const char *listen; /* "127.0.0.1:8080", "[::1]:8080", ":8080", "unix:/path" */
        uint64_t max_body_bytes, max_header_bytes;
        uint64_t header_timeout_ms, idle_timeout_ms; /* for slow clients */
        uint64_t max_connections, max_connections_per_client;
        struct config_list cors_origins;
        struct config_list hosts;
        bool web, show_config;
        const char *access_log; /* a path, "-" for stderr, "off" */
        uint64_t drain_delay_ms, drain_timeout_ms;
        uint64_t watchdog_ms; /* a process that is silent for longer is restarted; 0: never */
        enum log_format log_format;
        bool trace; /* add the steps of each request to the access log */
    } server;
    struct {
        enum config_backend backend;
        uint64_t max_concurrent, max_queued, queue_timeout_ms;
        uint64_t default_timeout_ms, max_timeout_ms;
        uint64_t kill_grace_ms; /* between SIGTERM and SIGKILL after the time limit */
        uint64_t limits[EXECUTION_LIMITS_], max_limits[EXECUTION_LIMITS_];
        uint64_t memory_reserve_bytes; /* free memory below which no run is started */
        uint64_t max_output_bytes; /* a run that writes more than this to both streams is ended */
        bool allow_network; /* permissions.network.enabled is allowed without a list of names */
        struct config_list allowed_workdir_roots;
        const char *state_dir; /* working files of running jails */
        const char *image_dir; /* images of runtimes */
        uid_t uid_first;       /* as root: first host uid for jails */
        uint64_t uid_count;
        struct {
            bool enabled;
            uint64_t min, max;     /* per runtime and API key; a runtime may set other values */
            uint64_t memory_bytes; /* limit for all waiting jails together */
            uint64_t idle_ms;      /* time without a request after which no jails wait */
            uint64_t age_ms;       /* maximum age of a waiting jail */
            uint64_t domains;      /* number of API keys that have waiting jails at the same time */
            bool zygotes;
            uint64_t zygote_runs, zygote_age_ms;
            struct config_list preload; /* modules that zygotes import */
        } pool;
    } sandbox;
    struct {
        uint64_t max, max_per_key; /* executions that wait */
        uint64_t places_percent;   /* of max_concurrent, for executions of the queue */
        uint64_t max_priority;
        uint64_t max_wait_ms; /* for GET /executions/{id}?wait= */
        uint64_t keep_ms;     /* whole results and idempotency keys */
        uint64_t keep_per_key_bytes;
    } queue;
    struct {
        bool enabled;
        const char *secret;       /* or NULL; only the executor has it */
        struct config_list allow; /* destinations that are not public */
        uint64_t timeout_ms, attempts, retry_ms;
        uint64_t max_body_bytes;
    } callback;
    struct {
        bool enabled;
        uint64_t max, max_per_key;                   /* sandboxes; per key 0: no limit */
        uint64_t memory_per_key_bytes, pids_per_key; /* of all sandboxes of a key; 0: no limit */
        uint64_t default_timeout_ms, max_timeout_ms, max_paused_ms;
        uint64_t max_commands;      /* running in one sandbox */
        uint64_t output_kept_bytes; /* of one command */
        uint64_t waiting;           /* of each kind */
    } sandboxes;
    struct {
        bool enabled;
        bool implicit_base64; /* base64_encoded is true unless it is "false" */
        bool allow_delete;    /* of submissions */
    } judge0;
    struct {
        bool enabled;
        enum config_piston version_match;
        uint64_t output_max_bytes; /* of each stream of a stage */
    } piston;
    struct {
        enum config_store store;
        const char *path; /* SQLite */
        const char *dsn;  /* PostgreSQL */
        const char *spool_dir;
        uint64_t spool_max_bytes; /* rows waiting for PostgreSQL */
        uint64_t retention_ms;    /* 0: keep for ever */
        enum config_keep code, output;
    } database;
    struct {
        uint64_t rate_limit_rps, rate_limit_burst;         /* of each client address */
        uint64_t key_rate_limit_rps, key_rate_limit_burst; /* of each API key; 0: as an address */
        uint64_t max_executions_per_key;                   /* running or queued; 0: no limit */
        struct config_list allowed_keys;                   /* each "sha256:HEX", once loaded */
        struct config_api_key keys[CONFIG_LIST_MAX];       /* parallel to allowed_keys */
        struct config_list trusted_proxies;                /* addresses or ranges */
        bool detector;
    } security;
    struct {
        bool enabled;
        const char *cert_file, *key_file;
    } tls;
    struct {
        uint16_t port; /* 0: off */
        const char *upstream;
    } auth_proxy;
    struct runtime runtimes[RUNTIMES_MAX];
    size_t runtime_count;
    struct config_list warnings; /* to log at start */
    /* Where each value came from, in the order of the key table: "FILE:LINE", the name of a
     * variable, or NULL if it is built in. */
    const char *origins[CONFIG_KEYS_MAX];
};

/* Finds and reads the configuration: `path` if not NULL, else CONFIG_PATH, ./configs/config.yaml,
 * $XDG_CONFIG_HOME/brig/brigd.yaml, /etc/brig/brigd.yaml; then PORT and the EXECUTOR_* variables.
 * `env` is an environment. Errors are "FILE:LINE: what, and what is allowed". */
int config_load(const char *path, const char *const *env, struct server_config *ret,
                struct brig_error *err);
/* Parses YAML text only, for tests and fuzzing; `name` is for messages. `ret` must hold the result
 * of config_defaults(), and can be parsed into only once. */
int config_parse(const char *name, const void *text, size_t length, struct server_config *ret,
                 struct brig_error *err);
/* Sets the built-in values, for config_parse(). Limits of runtimes are not complete yet. */
int config_defaults(const char *const *env, struct server_config *ret, struct brig_error *err);
/* Prints the configuration in force as YAML that can be read again, with the origin of each value
 * and without secrets. */
void config_print(const struct server_config *config, struct str *out);
/* Releases the configuration, and wipes its strings: some are secrets. */
void config_done(struct server_config *config);

/* Options of the command line: `listen` if it is not NULL, and `trace`. The text is borrowed. */
void config_override(struct server_config *config, const char *listen, bool trace);

/* ---- config_reload.c: SIGHUP ---- */

/* Prints what config_reload() takes, without secrets. */
void config_reload_print(const struct server_config *config, struct str *out);
/* Takes API keys, rates and limits from a text of config_reload_print(). Pointers to the old ones
 * become invalid. On failure nothing changes. */
int config_reload(struct server_config *config, const char *text, size_t length,
                  struct brig_error *err);
/* Appends the names of keys that differ and that config_reload() does not take. */
void config_reload_rest(const struct server_config *old, const struct server_config *new,
                        struct str *out);

/* Returns the index in security.allowed_keys of the key with this domain (execution_request), or
 * CONFIG_LIST_MAX. */
size_t config_find_key(const struct server_config *config, const char *domain);
/* Returns the directories that may contain work_dir for an API key, which is given as in
 * execution_request.domain. */
const struct config_list *config_workdir_roots(const struct server_config *config,
                                               const char *domain);

const struct runtime *config_find_runtime(const struct server_config *config, const char *name);
/* Fails with an unknown language: lists the known ones and the nearest, or says that the operator
 * has disabled it. Returns BRIG_E_INVALID. */
int config_fail_language(const struct server_config *config, const char *name,
                         struct brig_error *err);
