/* SPDX-License-Identifier: MIT */
/* brigd's configuration: what is understood, what is said of what is not, and that what is printed can
 * be read again. */
#include "server/config/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/str.h"
#include "server/config/config_keys.h"
#include "tap.h"

static const char *const no_env[] = {"HOME=/home/someone", NULL};
static struct server_config config; /* too large for a stack */

static int parse(const char *text, struct brig_error *err)
{
    config_done(&config);
    int result = config_defaults(no_env, &config, err);
    return result < 0 ? result : config_parse("f.yaml", text, strlen(text), &config, err);
}

static void check_taken(const char *text, const char *name)
{
    struct brig_error err = {0};
    tap_is_int(parse(text, &err), 0, "%s", name);
    tap_is_str(err.message, "", "without a message");
}

static void check_refused(const char *text, const char *start, const char *named)
{
    struct brig_error err = {0};
    tap_is_int(parse(text, &err), BRIG_E_INVALID, "refused: %s", text);
    tap_ok(str_starts_with(err.message, start), "the message begins with %s: %s", start,
           err.message);
    tap_has_str(err.message, named, "and says %s", named);
}

static void test_defaults(void)
{
    check_taken("", "nothing at all is a configuration");
    tap_is_str(config.server.listen, "127.0.0.1:8080", "it listens at the loopback");
    tap_is_int(config.server.max_body_bytes, 8 << 20, "a body has 8 MiB");
    tap_is_int(config.sandbox.max_concurrent, 1000, "a thousand run at once");
    tap_is_int(config.sandbox.default_timeout_ms, 10000, "for ten seconds");
    tap_is_int(config.sandbox.max_timeout_ms, 60000, "at most sixty");
    tap_is_int(config.sandbox.kill_grace_ms, 0, "without grace");
    tap_is_int(config.sandbox.limits[EXECUTION_MEMORY_MB], 256, "with 256 MiB");
    tap_is_int(config.sandbox.limits[EXECUTION_PIDS], 50, "and 50 processes");
    tap_is_int(config.sandbox.limits[EXECUTION_DISK_MB], 100, "and 100 MiB of disk");
    tap_is_int(config.sandbox.limits[EXECUTION_CPU_PERCENT], 100, "and one processor");
    tap_is_int(config.database.store, STORE_SQLITE, "the history is in SQLite");
    tap_is_int(config.security.rate_limit_rps, 100, "a hundred requests a second");
    tap_ok(config.security.detector && !config.sandbox.allow_network && !config.tls.enabled,
           "switches stand as they should");
    tap_is_int(config.sandbox.allowed_workdir_roots.count, 0, "no work_dir is allowed");
    tap_is_int(config.runtime_count, runtime_table_count, "all runtimes are there");
    const struct runtime *claude = config_find_runtime(&config, "claude");
    tap_ok(claude && claude->limits[EXECUTION_MEMORY_MB] == 1024 && claude->timeout_ms == 300000 &&
               claude->max_timeout_ms >= 300000 && claude->agent,
           "claude has its own limits");
    const struct runtime *python = config_find_runtime(&config, "python3");
    tap_ok(python && python->limits[EXECUTION_MEMORY_MB] == 256 && python->timeout_ms == 10000 &&
               python->max_limits[EXECUTION_MEMORY_MB] == 1024 && !python->agent,
           "python is found by another name and has the common ones");
    tap_ok(config_find_runtime(&config, "cobol") == NULL, "others are not found");
    tap_is_int(config.warnings.count, 0, "there is no warning");
}

static void test_everything(void)
{
    check_taken(
        "server:\n"
        "  listen: \"[::1]:9000\"\n"
        "  max_body: 1M\n"
        "  max_header: 8k\n"
        "  header_timeout: 5s\n"
        "  idle_timeout: 1m\n"
        "  max_connections: 10\n"
        "  max_connections_per_client: 5\n"
        "  cors_origins: [https://a.example, 'http://localhost:3000']\n"
        "  hosts: [brigd.internal, brigd]\n"
        "  web: false\n"
        "  show_config: true\n"
        "  access_log: /var/log/brigd.log\n"
        "  log_format: json\n"
        "  drain_delay: 1s\n"
        "  drain_timeout: 0\n"
        "  watchdog: 0\n"
        "  trace: true\n"
        "sandbox:\n"
        "  backend: native\n"
        "  max_concurrent: 7\n"
        "  max_queued: 0\n"
        "  queue_timeout: 250ms\n"
        "  default_timeout: 20s\n"
        "  max_timeout: 2m\n"
        "  kill_grace: 1s\n"
        "  default_limits: {memory_mb: 512, pids_limit: 60, disk_mb: 5, cpu_percent: 50}\n"
        "  max_limits: {memory_mb: 2048, pids_limit: 61, disk_mb: 6, cpu_percent: 51}\n"
        "  memory_reserve: 1G\n"
        "  max_output: 2M\n"
        "  allow_network: true\n"
        "  allowed_workdir_roots:\n"
        "    - /home/user/projects\n"
        "    - /opt/workspaces\n"
        "  state_dir: /tmp/x\n"
        "  image_dir: /tmp/i\n"
        "  uid_first: 100000\n"
        "  uid_count: 10\n"
        "  pool: {enabled: true, min: 3, max: 9, memory: 64M, idle_timeout: 1m, max_age: 2m,\n"
        "         max_domains: 4, zygotes: false, zygote_runs: 7, zygote_age: 3m,\n"
        "         preload: [json, os.path]}\n"
        "queue: {max: 5, max_per_key: 2, places_percent: 50, max_priority: 3, max_wait: 5s,\n"
        "        keep: 1h, keep_per_key: 2M}\n"
        "callback: {enabled: false, secret: hidden, allow: ['10.0.0.0/8:8080', 'host:99'],\n"
        "           timeout: 1s, attempts: 2, retry: 3s, max_body: 32k}\n"
        "sandboxes: {enabled: false, max: 7, max_per_key: 3, memory_per_key: 1G, pids_per_key: "
        "99,\n"
        "            default_timeout: 1m, max_timeout: 2h, max_paused: 1d, max_commands: 5,\n"
        "            output_kept: 64k, waiting: 3}\n"
        "judge0: {enabled: false, implicit_base64: true, allow_delete: true}\n"
        "piston: {enabled: false, version_match: strict, output_max_size: 64k}\n"
        "database:\n"
        "  dsn: postgres://u:secret@db/x?sslmode=disable\n"
        "  path: /tmp/h.sqlite\n"
        "  spool_dir: /tmp/s\n"
        "  spool_max: 1G\n"
        "  retention: 0\n"
        "  code: hash\n"
        "  output: nothing\n"
        "security:\n"
        "  rate_limit_rps: 0\n"
        "  rate_limit_burst: 3\n"
        "  key_rate_limit_rps: 2\n"
        "  key_rate_limit_burst: 5\n"
        "  max_executions_per_key: 4\n"
        "  allowed_keys: [abcdefgh]\n"
        "  trusted_proxies: [10.0.0.0/8, '::1']\n"
        "  detector: false\n"
        "tls: {enabled: true, cert_file: /c, key_file: /k}\n"
        "auth_proxy: {port: 8081, upstream: 'https://api.example.org'}\n",
        "a file with every key is understood");
    tap_is_str(config.server.listen, "[::1]:9000", "texts are read");
    tap_is_int(config.server.max_body_bytes, 1 << 20, "sizes are");
    tap_is_int(config.sandbox.queue_timeout_ms, 250, "durations are");
    tap_is_int(config.auth_proxy.port, 8081, "ports are");
    tap_is_int(config.queue.keep_ms, 3600000, "the queue is");
    tap_is_str(config.callback.allow.items[1], "host:99", "destinations are");
    tap_is_int(config.sandbox.uid_first, 100000, "uids are");
    tap_ok(config.sandbox.allow_network && !config.security.detector, "switches are");
    tap_is_int(config.server.cors_origins.count, 2, "lists are, in one line");
    tap_is_str(config.sandbox.allowed_workdir_roots.items[1], "/opt/workspaces", "and in several");
    tap_is_int(config.database.store, STORE_POSTGRES, "a DSN chooses PostgreSQL");
    tap_ok(config.database.code == KEEP_HASH && config.database.output == KEEP_NOTHING,
           "choices are read");
    for (size_t i = 0; i < config_key_count; i++)
        tap_ok(config.origins[i] || strcmp(config_keys[i].name, "database.store") == 0,
               "%s has its origin", config_keys[i].name);
    tap_is_int(config.warnings.count, 1, "there is a warning");
    tap_has_str(config.warnings.items[0], "sslmode=disable", "of sslmode=disable");
}

static void test_refusals(void)
{
    check_refused("serve:\n  listen: :80\n", "f.yaml:1: ", "Did you mean 'server'?");
    check_refused("server:\n  lisen: :80\n", "f.yaml:2: ", "Did you mean 'server.listen'?");
    check_refused("server:\n  zzzzzzzz: 1\n", "f.yaml:2: ", "Known here: listen, max_body");
    check_refused("zzzzzzzzzzz: 1\n", "f.yaml:1: ", "runtimes");
    check_refused("server.listen: :80\n", "f.yaml:1: ", "below each other");
    check_refused("\nserver:\n  listen: [a]\n",
                  "f.yaml:3: ", "a list where there should be a text");
    check_refused("server:\n  listen: {a: b}\n", "f.yaml:2: ", "a mapping where");
    check_refused("server: 8080\n", "f.yaml:1: ", "'server' is a section");
    check_refused("server:\n  cors_origins: x\n", "f.yaml:2: ", "a single value where");
    check_refused("server:\n  cors_origins: x\n", "f.yaml:2: ", "brackets: [a, b]");
    check_refused("server:\n\tlisten: :80\n", "f.yaml:2: ", "not tabs");
    check_refused("server:\n  cors_origins: [[x]]\n", "f.yaml:2: ", "nested or empty item");
    check_refused("server:\n  listen: :80\n  listen: :81\n",
                  "f.yaml:3: ", "given twice; the first time in line 2");
    check_refused("tls: {enabled: false}\nserver:\ntls: {enabled: false}\n",
                  "f.yaml:3: ", "'tls' is given twice");
    check_refused("tls:\n  enabled: yes\n", "f.yaml:2: tls.enabled: ", "not true or false");
    check_refused("server:\n  max_connections: 0\n", "f.yaml:2: ", "from 1 to 65536");
    check_refused("server:\n  max_connections: 65537\n", "f.yaml:2: ", "from 1 to 65536");
    check_refused("server:\n  max_connections: -1\n", "f.yaml:2: ", "'-1'");
    check_refused("server:\n  max_connections: 99999999999999999999999\n", "f.yaml:2: ", "from 1");
    check_refused("server:\n  max_body: much\n", "f.yaml:2: ", "a size from 1k to 24M");
    check_refused("sandbox:\n  max_timeout: 25h\n", "f.yaml:2: ", "a duration from 1ms to 1d");
    check_refused("sandbox:\n  backend: docker\n", "f.yaml:2: ", "without a container engine");
    check_refused("sandbox:\n  backend: containerd\n", "f.yaml:2: ", "auto or native");
    check_refused("sandbox:\n  backend: other\n", "f.yaml:2: ", "one of auto, native");
    check_refused("sandbox:\n  default_limits:\n    memory: 3\n",
                  "f.yaml:3: ", "sandbox.default_limits.memory_mb");
    check_refused("sandbox:\n  default_timeout: 20s\n  max_timeout: 10s\n",
                  "f.yaml:2: ", "f.yaml:3");
    check_refused("sandbox:\n  state_dir: here\n", "f.yaml:2: ", "'here'");
    check_refused("sandbox:\n  allowed_workdir_roots: [rel]\n", "f.yaml:2: ", "'rel'");
    check_refused("database:\n  store: postgres\n", "f.yaml:2: ", "database.dsn is missing");
    check_refused("database:\n  dsn: mysql://u:secret@db/x\n",
                  "f.yaml:2: database.dsn: ", "is not a connection string");
    check_refused("database:\n  store: sqlite\n  dsn: host=x\n", "f.yaml:2: ", "f.yaml:3");
    check_refused("tls:\n  enabled: true\n", "f.yaml:2: ", "tls.cert_file is missing");
    check_refused("security:\n  allowed_keys: [short]\n", "f.yaml:2: ", "8 to 512");
    check_refused("security:\n  allowed_keys: [\"\"]\n", "f.yaml:2: ", "this one has 0");
    check_refused("sandbox:\n  allowed_workdir_roots: ['']\n", "f.yaml:2: ", "absolute");
    check_refused("security:\n  trusted_proxies: ['']\n", "f.yaml:2: ", "''");
    check_refused("security:\n  allowed_keys: [\"sha256:12\"]\n", "f.yaml:2: ", "64 hexadecimal");
    check_refused("security:\n  trusted_proxies: [nowhere]\n", "f.yaml:2: ", "'nowhere'");
    check_refused("server:\n  listen: 8080\n", "f.yaml:2: ", "HOST:PORT");
    check_refused("server:\n  listen: :99999\n", "f.yaml:2: ", "0 to 65535");
    check_refused("server:\n  listen: example.org:80\n", "f.yaml:2: ", "[IPv6]:PORT");
    check_refused("server:\n  listen: \"\"\n", "f.yaml:2: ", "cannot be empty");
    check_refused("server: [\n", "f.yaml:", "");
    check_refused("- a\n- b\n", "f.yaml:1: ", "sections");
    check_refused("server:\n  listen: \"a\\0b\"\n", "f.yaml:2: ", "NUL");
    check_refused("--- {}\n--- {}\n", "f.yaml:2: ", "second document");
    check_refused("? [a]\n: b\n", "f.yaml:1: ", "a word");
    check_refused("\xff\xfe\xfd", "f.yaml: byte", "");
}

static void test_bombs(void)
{
    check_refused("server: &a {}\ntls: *a\n", "f.yaml:1: ", "aliases");
    check_refused("a: &a [x,x]\nb: &b [*a,*a]\n", "f.yaml:1: ", "aliases");
    check_refused("server:\n  listen: !!binary aGk=\n", "f.yaml:2: ", "tags");
    check_refused("server:\n  listen: *none\n", "f.yaml:2: ", "aliases");
    autostr struct str deep = {0};
    for (size_t i = 0; i < 100000; i++)
        str_append_char(&deep, '[');
    check_refused(deep.data, "f.yaml:1: ", "sections");
    autostr struct str large = {0};
    while (large.length <= CONFIG_FILE_MAX)
        str_append(&large, "#\n");
    check_refused(large.data, "f.yaml: ", "more than 256 KiB");
    large.data[CONFIG_FILE_MAX] = '\0';
    check_taken(large.data, "one of just that size is read");
    autostr struct str many = {0};
    str_append(&many, "security:\n  trusted_proxies:\n");
    for (size_t i = 0; i < CONFIG_LIST_MAX; i++)
        str_append(&many, "   - 10.0.0.1\n");
    check_taken(many.data, "a list may have as many items as there is room for");
    str_append(&many, "   - 10.0.0.1\n");
    check_refused(many.data, "f.yaml:259: ", "at most 256 items");
}

static void test_runtimes(void)
{
    check_taken("runtimes:\n"
                "  ruby:\n"
                "    command: [ruby, '{file}']\n"
                "    file: main.rb\n"
                "    aliases: [rb]\n"
                "    package: ruby\n"
                "    timeout: 20s\n"
                "    limits: {memory_mb: 2048}\n"
                "  c:\n"
                "    compile: [cc, -o, /tmp/a, '{file}']\n"
                "    command: [/tmp/a]\n"
                "    root: /srv/gcc\n"
                "  python:\n"
                "    command: [python3.11, '{file}']\n"
                "  claude: {disabled: true}\n",
                "runtimes can be added and changed");
    const struct runtime *ruby = config_find_runtime(&config, "rb");
    tap_ok(ruby && strcmp(ruby->argv[1], "{file}") == 0 && !ruby->argv[2], "with a command");
    tap_is_int(ruby->timeout_ms, 20000, "with a time");
    tap_is_int(ruby->limits[EXECUTION_MEMORY_MB], 2048, "with a limit");
    tap_is_int(ruby->max_limits[EXECUTION_MEMORY_MB], 2048, "that is the most as well");
    tap_is_int(ruby->limits[EXECUTION_PIDS], 50, "and with what holds for all");
    tap_is_int(ruby->profile, BRIG_SECCOMP_CODE, "confined as code is");
    tap_is_str(ruby->origin, "f.yaml:2", "and with its origin");
    const struct runtime *c = config_find_runtime(&config, "c");
    tap_ok(c && strcmp(c->file_name, "main.c") == 0 && strcmp(c->root, "/srv/gcc") == 0,
           "a file name is made where there is none");
    const struct runtime *python = config_find_runtime(&config, "python");
    tap_ok(python && strcmp(python->argv[0], "python3.11") == 0 && !python->argv[2] &&
               strcmp(python->file_name, "main.py") == 0,
           "one that is built in is changed in part");
    tap_ok(!config_find_runtime(&config, "claude"), "or is taken away");

    check_refused("runtimes:\n  raku: {file: x.raku}\n", "f.yaml:2: ", "no command");
    check_refused("runtimes:\n  raku: {command: [raku]}\n", "f.yaml:2: ", "{file}");
    check_refused("runtimes:\n  ruby: {comand: [ruby]}\n", "f.yaml:2: ", "runtimes.ruby.command");
    check_refused("runtimes:\n  'a b': {command: [ruby]}\n", "f.yaml:2: ", "'a b'");
    check_refused("runtimes:\n  ruby: x\n", "f.yaml:2: ", "section");
    check_refused("runtimes:\n  python: {timeout: 9s}\n  x: {command: ['{file}'], aliases: [py]}\n",
                  "f.yaml:3: ", "python");
    check_refused("runtimes:\n  x: {command: ['{file}'], file: a/b}\n", "f.yaml:2: ", "'a/b'");
    check_refused("runtimes:\n  python: {timeout: 9s, max_timeout: 8s}\n", "f.yaml:2: ", "timeout");
    check_refused("runtimes:\n  python: {limits: {memory_mb: 9, memory_mb: 9}}\n",
                  "f.yaml:2: ", "twice");
    check_refused("runtimes:\n  python: {command: [1,2,3,4,5,6,7,8,9,1,1,1,1,1,1,1]}\n",
                  "f.yaml:2: ", "at most 15");
}

static void test_backends(void)
{
    check_taken("runtimes:\n  x: {command: [x, '{file}'], image: 'x:1'}\n", "an image");
    tap_is_int(config_find_runtime(&config, "x")->backend, BACKEND_BRIG, "is run by brig");
    check_taken("runtimes:\n  x: {command: [x, '{file}'], image: 'x:1', backend: runsc}\n",
                "an image with a backend");
    tap_is_int(config_find_runtime(&config, "x")->backend, BACKEND_RUNSC, "is run by it");
    check_refused("runtimes:\n  x: {command: [x, '{file}'], image: 'x:1', backend: docker}\n",
                  "f.yaml:2: ", "crun");
    check_refused("runtimes:\n  x: {command: [x, '{file}'], backend: crun}\n",
                  "f.yaml:2: ", "backend: crun needs an image");
    check_refused("runtimes:\n  c: {image: 'x:1', backend: runc}\n",
                  "f.yaml:2: ", "backend: runc does not go with compile");
    check_refused("runtimes:\n  x: {command: [x, '{file}'], image: 'x:1', backend: runc, "
                  "allow: [example.com]}\n",
                  "f.yaml:2: ", "allow");
    check_refused("runtimes:\n  claude: {image: 'x:1', backend: runc}\n", "f.yaml:2: ", "agent");
}

static void test_names(void)
{
    check_taken("runtimes:\n  cpp: {command: [clang++, '{file}']}\n"
                "  x: {command: [x, '{file}'], aliases: [ruby]}\n",
                "names of built-in runtimes can be used");
    tap_is_str(config_find_runtime(&config, "cpp")->argv[0], "clang++", "by a name");
    tap_is_str(config_find_runtime(&config, "ruby")->argv[0], "x", "by an alias");
    tap_is_str(config_find_runtime(&config, "g++")->name, "c++", "other aliases stay");
    check_taken("runtimes:\n  c: {command: [tcc, -run, '{file}']}\n", "a command for C");
    tap_ok(!config_find_runtime(&config, "c")->compile[0], "takes the place of the compiler too");
    check_taken("runtimes:\n  c: {timeout: 9s}\n", "a time limit for C");
    tap_is_str(config_find_runtime(&config, "c")->compile[0], "gcc", "leaves the compiler");
}

static const struct runtime *runtime_with(const char *yaml, const char *name)
{
    check_taken(yaml, "a runtime whose jails wait");
    return config_find_runtime(&config, name);
}

static void test_pools(void)
{
    const struct runtime *runtime = runtime_with("", "python");
    tap_ok(config.sandbox.pool.enabled && config.sandbox.pool.zygotes, "jails wait, and zygotes");
    tap_is_int(runtime->parking, PARKING_ZYGOTE, "python's are forked");
    tap_ok(runtime->pool_min == 2 && runtime->pool_max == 16, "two, and at most sixteen");
    tap_is_int(config_find_runtime(&config, "node")->parking, PARKING_NODE, "node's run already");
    tap_is_int(config_find_runtime(&config, "bash")->parking, PARKING_NONE,
               "a shell's do not wait");
    tap_is_int(config_find_runtime(&config, "claude")->parking, PARKING_NONE,
               "and agents' do not wait");
    runtime = runtime_with("runtimes:\n  node: {command: [bun, '{file}']}\n", "node");
    tap_is_int(runtime->parking, PARKING_NONE, "another program than node cannot wait");
    runtime = runtime_with("runtimes:\n  node: {command: [/opt/node, '{file}']}\n", "node");
    tap_is_int(runtime->parking, PARKING_NODE, "the same program elsewhere can");
    runtime = runtime_with("runtimes:\n  bash: {command: [zsh, '{file}']}\n", "bash");
    tap_is_int(runtime->parking, PARKING_NONE, "nor can a shell");
    runtime = runtime_with("runtimes:\n  x: {command: [x, '{file}'], parking: none}\n", "x");
    tap_is_int(runtime->parking, PARKING_NONE, "it can be turned off for one");
    runtime = runtime_with("runtimes:\n  x: {command: [x, '{file}'], allow: [a.example]}\n", "x");
    tap_is_int(runtime->parking, PARKING_NONE, "and is off for one with a network");
    runtime = runtime_with("runtimes:\n  x: {command: [x, '{file}'], pool_min: 40}\n", "x");
    tap_ok(runtime->pool_min == 40 && runtime->pool_max == 40,
           "a number of its own is the most too");
    check_refused("runtimes:\n  x: {command: [x, '{file}'], pool_min: 4, pool_max: 3}\n",
                  "f.yaml:2: ", "pool_max, 3");
    check_refused("sandbox:\n  pool: {min: 4, max: 3}\n", "f.yaml:2: ", "sandbox.pool.max");
    check_refused("sandbox:\n  pool: {preload: ['os;x']}\n", "f.yaml:2: ", "'os;x'");
    check_refused("sandbox:\n  pool: {preload: [os..path]}\n", "f.yaml:2: ", "name of a module");
    check_refused("sandbox:\n  pool: {max: 4097}\n", "f.yaml:2: ", "4096");
}

static void test_follow(void)
{
    check_taken("sandbox:\n  default_timeout: 2m\n", "a default beyond the most");
    tap_is_int(config.sandbox.max_timeout_ms, 120000, "raises it if it was not set");
    check_taken("sandbox:\n  max_limits: {memory_mb: 64}\n", "a most below the default");
    tap_is_int(config.sandbox.limits[EXECUTION_MEMORY_MB], 64, "lowers that if it was not set");
    tap_is_int(config_find_runtime(&config, "python")->limits[EXECUTION_MEMORY_MB], 64,
               "also for runtimes");
    check_taken("database:\n  dsn: none\n", "'none' as DSN");
    tap_is_int(config.database.store, STORE_NONE, "turns the history off");
    check_taken("database:\n  dsn: \"\"\n  store:\n", "an empty DSN");
    tap_is_int(config.database.store, STORE_SQLITE, "is none");
    check_taken("server:\n  listen: 0.0.0.0:80\nsecurity:\n  allowed_keys: [abcdefgh]\n",
                "listening to everybody with keys");
    tap_has_str(config.warnings.items[0], "unencrypted", "is warned of without TLS");
}

/* How a key is known to the processes of the server. */
static const struct config_list *roots_of(const char *key)
{
    char hash[SHA256_HEX_LENGTH + 1];
    sha256_hex(key, strlen(key), hash);
    hash[16] = '\0';
    return config_workdir_roots(&config, hash);
}

static void test_key_roots(void)
{
    check_taken("sandbox: {allowed_workdir_roots: [/all]}\n"
                "security:\n"
                "  allowed_keys:\n"
                "    - plain-key-1\n"
                "    - {key: plain-key-2, workdir_roots: [/srv/2, /srv/two]}\n"
                "    - workdir_roots: []\n"
                "      key: plain-key-3\n"
                "    - {key: plain-key-4, name: ci, rate_limit_rps: 3, rate_limit_burst: 9}\n",
                "keys with and without roots");
    tap_is_int(config.security.allowed_keys.count, 4, "each is a key");
    tap_is_str(roots_of("plain-key-1")->items[0], "/all", "one without has those of all");
    tap_is_str(roots_of("plain-key-4")->items[0], "/all", "also as a mapping");
    tap_is_str(config_workdir_roots(&config, "")->items[0], "/all", "and so has no key");
    tap_is_int(roots_of("plain-key-2")->count, 2, "one with roots");
    tap_is_str(roots_of("plain-key-2")->items[1], "/srv/two", "has these");
    tap_is_int(roots_of("plain-key-3")->count, 0, "or none");
    tap_is_str(config.security.keys[3].name, "ci", "a key has a name");
    tap_is_int(config.security.keys[3].rate_limit_rps, 3, "a rate");
    tap_is_int(config.security.keys[3].rate_limit_burst, 9, "and a burst");
    tap_ok(!config.security.keys[0].name && !config.security.keys[1].name, "others have none");
#define KEYS "security:\n  allowed_keys: "
    static const char form[] = "security.allowed_keys: an item is a key, or {key: KEY, ";
    check_refused(KEYS "[{workdir_roots: [/a]}]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{}]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{key: plain-key-1, key: plain-key-2}]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{key: plain-key-1, workdir_roots: [], workdir_roots: []}]\n",
                  "f.yaml:2: ", form);
    check_refused(KEYS "[{key: plain-key-1, workdir_roots: /a}]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{key: plain-key-1, workdir_roots: }]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{key: plain-key-1, workdir_roots: [[/a]]}]\n",
                  "f.yaml:2: ", "workdir_roots: a nested or empty item");
    check_refused(KEYS "[{key: [plain-key-1]}]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{key: }]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{plain-key-1: [/a]}]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{key: plain-key-1, name: a, name: b}]\n", "f.yaml:2: ", form);
    check_refused(KEYS "[{key: plain-key-1, name: 'a b'}]\n", "f.yaml:2: ", "'a b'");
    check_refused(KEYS "[{key: plain-key-1, rate_limit_rps: 0}]\n",
                  "f.yaml:2: ", "rate_limit_rps: '0' is not a whole number from 1");
    struct brig_error err = {0};
    (void)parse(KEYS "[{plain-key-1: [/a]}]\n", &err);
    tap_ok(!strstr(err.message, "plain-key-1"), "a key in the wrong place is not repeated");
    check_refused(KEYS "[{key: plain-key-1, workdir_roots: [a]}]\n",
                  "f.yaml:2: ", "workdir_roots: path 'a'");
    check_refused(KEYS "[{key: short, workdir_roots: [/a]}]\n", "f.yaml:2: ", "8 to 512");
    check_refused(KEYS "[plain-key-1, {key: plain-key-1, workdir_roots: [/a]}]\n",
                  "f.yaml:2: ", "items 1 and 2 are the same key");
    check_refused("server:\n  cors_origins: [{key: x}]\n", "f.yaml:2: ", "nested");
#undef KEYS
}

static void test_print(void)
{
    check_taken(
        "database:\n  dsn: postgres://me:s3cr3t@db:5432/x\n"
        "security:\n  allowed_keys: [plain-key-1, {key: k-123456, workdir_roots: ['/k\"']}]\n"
        "sandbox:\n  allowed_workdir_roots: ['/a \"b\\', \"/c\\x01\"]\n"
        "runtimes:\n  ruby: {command: [ruby, '{file}']}\n",
        "a configuration with secrets");
    autostr struct str first = {0}, second = {0};
    config_print(&config, &first);
    tap_ok(!strstr(first.data, "s3cr3t") && !strstr(first.data, "plain-key-1"),
           "prints none of them");
    tap_has_str(first.data, "user=me dbname=x host=db port=5432", "but the rest");
    tap_has_str(first.data, "# f.yaml:2", "with where it came from");
    tap_has_str(first.data, "# built in", "or that it is built in");
    struct brig_error err = {0};
    tap_is_int(parse(first.data, &err), 0, "it can be read again: %s", err.message);
    tap_is_str(config.sandbox.allowed_workdir_roots.items[1], "/c\x01", "with any character");
    tap_is_str(roots_of("k-123456")->items[0], "/k\"", "and the roots of a key");
    config_print(&config, &second);
    check_taken(second.data, "and once more");
    for (char *a = first.data, *b = second.data; a && b;) {
        size_t a_length = strcspn(a, "#\n"), b_length = strcspn(b, "#\n");
        if (a_length != b_length || memcmp(a, b, a_length) != 0) {
            tap_fail("'%.*s' is not '%.*s'", (int)a_length, a, (int)b_length, b);
            break;
        }
        a = strchr(a, '\n') ? strchr(a, '\n') + 1 : NULL;
        b = strchr(b, '\n') ? strchr(b, '\n') + 1 : NULL;
    }
    static const char *const dsns[][2] = {
        {"postgres://u:pw@h/d", "user=u dbname=d host=h"},
        {"postgres://h/d", "dbname=d host=h"},
        {"postgresql://u:p@h/d?password=x", "user=u dbname=d host=h"},
        {"host=h password='a b' user=u", "user=u host=h"},
        {"host=h password=a\\ b user=u", "user=u host=h"},
        {"password = x host=h sslpassword=y", "host=h"},
        {"host=h dbname='it''s'", ""},
        {"host=h dbname='a \\'b'", "dbname='a \\'b' host=h"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(dsns); i++) {
        autostr struct str shown = {0};
        config_dsn_print(dsns[i][0], &shown);
        tap_is_str(shown.data ? shown.data : "", dsns[i][1], "no password of %s", dsns[i][0]);
    }
}

static void check_load(const char *path, const char *const *env, int wanted, const char *named)
{
    struct brig_error err = {0};
    config_done(&config);
    tap_is_int(config_load(path, env, &config, &err), wanted, "loading: %s", err.message);
    if (wanted < 0)
        tap_has_str(err.message, named, "says %s", named);
}

static void write_file(const char *path, const char *text)
{
    autofile FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0)
        tap_bail("cannot write %s", path);
}

static void test_load(void)
{
    char directory[] = "/tmp/test-server-config-XXXXXX";
    if (!mkdtemp(directory) || chdir(directory) < 0)
        tap_bail("no directory");
    char config_path[256], xdg[256];
    (void)snprintf(config_path, sizeof config_path, "CONFIG_PATH=%s/own.yaml", directory);
    (void)snprintf(xdg, sizeof xdg, "XDG_CONFIG_HOME=%s/xdg", directory);
    const char *env[] = {"HOME=/nonexistent", xdg, NULL, NULL, NULL, NULL, NULL};
    check_load(NULL, env, 0, "");
    tap_is_str(config.path, NULL, "without a file there is none");
    (void)mkdir("xdg", 0700);
    (void)mkdir("xdg/brig", 0700);
    (void)mkdir("configs", 0700);
    write_file("xdg/brig/brigd.yaml", "server: {listen: \":1\"}\n");
    check_load(NULL, env, 0, "");
    tap_is_str(config.server.listen, ":1", "the XDG place is looked at");
    write_file("configs/config.yaml", "server: {listen: \":2\"}\n");
    check_load(NULL, env, 0, "");
    tap_is_str(config.server.listen, ":2", "after ./configs/config.yaml");
    env[2] = config_path;
    check_load(NULL, env, BRIG_E_INVALID, "own.yaml");
    write_file("own.yaml", "server: {listen: \"[::1]:3\"}\n");
    check_load(NULL, env, 0, "");
    tap_is_str(config.server.listen, "[::1]:3", "after CONFIG_PATH");
    check_load("configs/config.yaml", env, 0, "");
    tap_is_str(config.server.listen, ":2", "after what is given");
    check_load("nowhere.yaml", env, BRIG_E_INVALID, "nowhere.yaml");
    check_load("/", env, BRIG_E_SYSTEM, "'/'");
    env[3] = "PORT=4";
    env[4] = "EXECUTOR_MEMORY_LIMIT_MB=512";
    env[5] = "SANDBOX_KILL_GRACE_MS=1500";
    check_load(NULL, env, 0, "");
    tap_is_str(config.server.listen, "[::1]:4", "PORT replaces the port");
    tap_is_int(config.sandbox.limits[EXECUTION_MEMORY_MB], 512, "the memory is a variable's");
    tap_is_int(config.sandbox.kill_grace_ms, 1500, "so is the grace");
    env[5] = "EXECUTOR_CPU_LIMIT_PERCENT=50";
    check_load(NULL, env, 0, "");
    tap_is_int(config.sandbox.limits[EXECUTION_CPU_PERCENT], 50, "so is the CPU");
    env[5] = "EXECUTOR_CPU_LIMIT_PERCENT=half";
    check_load(NULL, env, BRIG_E_INVALID, "EXECUTOR_CPU_LIMIT_PERCENT");
    env[5] = "SANDBOX_KILL_GRACE_MS=5s";
    check_load(NULL, env, BRIG_E_INVALID, "SANDBOX_KILL_GRACE_MS");
    env[5] = NULL;
    env[3] = "PORT=http";
    check_load(NULL, env, BRIG_E_INVALID, "PORT");
    write_file("own.yaml", "server: {listen: \"unix:/run/x\"}\n");
    env[3] = "PORT=5";
    check_load(NULL, env, BRIG_E_INVALID, "Unset PORT");
    const char *files[] = {"own.yaml", "configs/config.yaml", "xdg/brig/brigd.yaml"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        (void)unlink(files[i]);
    (void)rmdir("configs");
    (void)rmdir("xdg/brig");
    (void)rmdir("xdg");
    (void)rmdir(directory);
}

/* Whether the bytes are in one page of freed or used heap; the stack and files do not count. */
static bool range_has(int memory, off_t start, off_t end, const char *wanted)
{
    char page[4096];
    for (off_t at = start; at < end; at += (off_t)sizeof page)
        if (pread(memory, page, sizeof page, at) == (ssize_t)sizeof page &&
            memmem(page, sizeof page, wanted, strlen(wanted)))
            return true;
    return false;
}

static bool heap_has(const char *wanted)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    autoclose int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    char line[512];
    bool found = false;
    while (maps && fgets(line, sizeof line, maps)) {
        char *rest = NULL;
        off_t start = (off_t)strtoull(line, &rest, 16);
        off_t end = *rest == '-' ? (off_t)strtoull(rest + 1, &rest, 16) : 0;
        bool anonymous = !strchr(line, '/') && (!strchr(line, '[') || strstr(line, "[heap]"));
        /* A sanitizer's tables are larger. */
        if (anonymous && str_starts_with(rest, " rw-p") && end - start <= (off_t)64 << 20)
            found = found || range_has(memory, start, end, wanted);
    }
    if (maps)
        (void)fclose(maps);
    return found;
}

/* A DSN is kept as it is written; the text is made on the stack, so that it is in the heap only if the
 * configuration has put it there. */
static void test_secrets_are_wiped(void)
{
    char word[32], text[128];
    (void)snprintf(word, sizeof word, "hunter%d", 42424242);
    (void)snprintf(text, sizeof text, "database: {dsn: 'postgres://me:%s@db/x'}\n", word);
    check_taken(text, "a configuration with a password");
    tap_ok(heap_has(word), "while it is in use, the password is in memory");
    config_done(&config);
    tap_ok(!heap_has(word), "after config_done() it is not");
    (void)snprintf(text, sizeof text, "database: {dsn: 'postgres://me:%s@db/x'}\nserver: 5\n",
                   word);
    struct brig_error err = {0};
    tap_is_int(parse(text, &err), BRIG_E_INVALID, "a configuration that is refused");
    config_done(&config);
    tap_ok(!heap_has(word), "leaves none either");

    /* What a reload replaces: the name of a key is no secret, but lies where one would. */
    check_taken("", "a configuration that is reloaded");
    for (int i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof text,
                       "security: {allowed_keys: [{key: 'some-long-key-0123', name: %s-%d}]}\n",
                       word, i);
        tap_is_int(config_reload(&config, text, strlen(text), &err), 0, "reload %d", i + 1);
    }
    (void)snprintf(text, sizeof text, "%s-1", word);
    tap_ok(heap_has(text), "the new texts are in memory");
    text[strlen(text) - 1] = '0';
    tap_ok(!heap_has(text), "the replaced ones are wiped");
}

static void test_sha256(void)
{
    char text[SHA256_HEX_LENGTH + 1];
    sha256_hex("", 0, text);
    tap_is_str(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
               "the hash of nothing");
    sha256_hex("abc", 3, text);
    tap_is_str(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
               "of three letters");
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    sha256_hex(two, strlen(two), text);
    tap_is_str(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
               "of what needs two blocks");
    autofree char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    sha256_hex(million, 1000000, text);
    tap_is_str(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
               "of a million letters");
}

int main(void)
{
    test_defaults();
    test_everything();
    test_refusals();
    test_bombs();
    test_runtimes();
    test_backends();
    test_names();
    test_pools();
    test_follow();
    test_key_roots();
    test_print();
    test_load();
    test_secrets_are_wiped();
    test_sha256();
    config_done(&config);
    return tap_done();
}
