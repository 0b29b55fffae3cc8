/* SPDX-License-Identifier: MIT */
/* brigd's configuration: YAML with a table of keys, variables of the environment, built-in values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "server/execution.h"
#include "server/runtime.h"

struct brig_error;
struct str;

#define CONFIG_LIST_MAX 256
#define CONFIG_HASH_PREFIX "sha256:" /* of an API key that is given as its hash */
#define CONFIG_KEYS_MAX 96
#define CONFIG_FILE_MAX ((size_t)256 << 10)

struct config_list {
    const char *items[CONFIG_LIST_MAX];
    size_t count;
};

enum config_backend { BACKEND_AUTO, BACKEND_NATIVE };
enum config_store { STORE_SQLITE, STORE_POSTGRES, STORE_NONE };
enum config_keep { KEEP_FULL, KEEP_HASH, KEEP_NOTHING }; /* of code and output, in the history */

/* All strings are in the arena. */
struct server_config {
    struct arena arena;
    const char *path; /* the file it came from, or NULL */
    struct {
        const char *listen; /* "127.0.0.1:8080", "[::1]:8080", ":8080", "unix:/path" */
        uint64_t max_body_bytes, max_header_bytes;
        uint64_t header_timeout_ms, idle_timeout_ms; /* of slow clients */
        uint64_t max_connections, max_connections_per_client;
        struct config_list cors_origins;
        const char *access_log; /* a path, "-" for stderr, "off" */
        uint64_t drain_timeout_ms;
        bool trace; /* the access log has the steps of each request */
    } server;
    struct {
        enum config_backend backend;
        uint64_t max_concurrent, max_queued, queue_timeout_ms;
        uint64_t default_timeout_ms, max_timeout_ms;
        uint64_t kill_grace_ms; /* between TERM and KILL, at the end of a time limit */
        uint64_t limits[EXECUTION_LIMITS_], max_limits[EXECUTION_LIMITS_];
        uint64_t max_output_bytes; /* more than this, both streams together, ends a run */
        bool allow_network;        /* permissions.network.enabled without a list */
        struct config_list allowed_workdir_roots;
        const char *state_dir; /* working files of running jails */
        uid_t uid_first;       /* as root: host uids of jails */
        uint64_t uid_count;
        struct {
            bool enabled;
            uint64_t min, max;     /* of one runtime and one API key; a runtime may have its own */
            uint64_t memory_bytes; /* of all that wait, together */
            uint64_t idle_ms;      /* without a request, until nothing waits any more */
            uint64_t age_ms;       /* of one that waits */
            uint64_t domains;      /* API keys for which jails wait at the same time */
            bool zygotes;
            uint64_t zygote_runs, zygote_age_ms;
            struct config_list preload; /* modules that zygotes have imported */
        } pool;
    } sandbox;
    struct {
        enum config_store store;
        const char *path; /* of SQLite */
        const char *dsn;  /* of PostgreSQL */
        const char *spool_dir;
        uint64_t spool_max_bytes; /* of what waits for the database */
        uint64_t retention_ms;    /* 0: for ever */
        enum config_keep code, output;
    } database;
    struct {
        uint64_t rate_limit_rps, rate_limit_burst;
        uint64_t max_executions_per_key; /* running or waiting; 0: no limit */
        struct config_list allowed_keys; /* each "sha256:HEX" once config_finish() was here */
        /* Of each key the directories for its work_dir; NULL: sandbox.allowed_workdir_roots. */
        const struct config_list *key_roots[CONFIG_LIST_MAX];
        struct config_list trusted_proxies; /* addresses or ranges */
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
    struct config_list warnings; /* for the log at start */
    /* Where each value came from, in the order of the table of keys: "FILE:LINE", the name of a
     * variable, or NULL for what is built in. */
    const char *origins[CONFIG_KEYS_MAX];
};

/* Finds and reads it: `path` if not NULL, else CONFIG_PATH, ./configs/config.yaml,
 * $XDG_CONFIG_HOME/brig/brigd.yaml, /etc/brig/brigd.yaml; then PORT and the EXECUTOR_* variables. `env` is
 * an environment. Errors are "FILE:LINE: what, and what is allowed". */
int config_load(const char *path, const char *const *env, struct server_config *ret,
                struct brig_error *err);
/* The YAML text alone, for tests and fuzzing; `name` is for messages. `ret` has been set to defaults,
 * which may be read over once. */
int config_parse(const char *name, const void *text, size_t length, struct server_config *ret,
                 struct brig_error *err);
/* What is built in, for config_parse(): runtimes do not have all their limits yet. */
int config_defaults(const char *const *env, struct server_config *ret, struct brig_error *err);
/* What holds, as YAML that can be read again, each value with where it came from; no secrets. */
void config_print(const struct server_config *config, struct str *out);
void config_done(struct server_config *config);

/* The directories below which work_dir may lie for an API key, given as in execution_request.domain. */
const struct config_list *config_workdir_roots(const struct server_config *config,
                                               const char *domain);

const struct runtime *config_find_runtime(const struct server_config *config, const char *name);
/* Fails because there is no such language: with those there are and the nearest of them, or because the
 * operator has switched it off. Returns BRIG_E_INVALID. */
int config_fail_language(const struct server_config *config, const char *name,
                         struct brig_error *err);
