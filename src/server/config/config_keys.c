/* SPDX-License-Identifier: MIT */
/* The table of configuration keys. */
#include "server/config/config_keys.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/listen.h"

#define HOUR_MS ((uint64_t)60 * 60 * 1000)
#define DAY_MS (24 * HOUR_MS)
#define YEARS_MS (3650 * DAY_MS)
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define LIMIT_MAX 1048576 /* memory and disk in MiB; processes */
#define CPU_PERCENT_MAX 102400
#define POOL_MAX 4096

#define PLACED(name_, type_, where, member)                                                        \
    .name = (name_), .type = (type_), .offset = offsetof(struct where, member),                    \
    .width = sizeof(((struct where *)0)->member)
#define KEY(name_, type_, member) PLACED(name_, type_, server_config, member)
#define RUNTIME_KEY(name_, type_, member) PLACED(name_, type_, runtime, member)

static const char *const backends[] = {"auto", "native", NULL};
static const char *const stores[] = {"sqlite", "postgres", "none", NULL};
static const char *const version_matches[] = {"lenient", "strict", NULL};
static const char *const keeps[] = {"full", "hash", "nothing", NULL};
static const char *const profiles[] = {"dev", "code", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const inputs[] = {"file", "stdin", NULL};
static const char *const parkings[] = {"exec", "open", "node", "zygote", "none", NULL};

const struct config_key config_keys[] = {
    {KEY("server.listen", CONFIG_TEXT, server.listen), .initial = "127.0.0.1:8080",
     .check = listen_check,
     .doc = "Where to listen: ADDRESS:PORT, [IPv6]:PORT, :PORT for every address, or unix:PATH. "
            "The variable PORT replaces the port."},
    {KEY("server.max_body", CONFIG_SIZE, server.max_body_bytes), .initial = "8M", .min = KIB,
     .max = 24 * MIB, .doc = "Largest body of a request; more is answered with 413."},
    {KEY("server.max_header", CONFIG_SIZE, server.max_header_bytes), .initial = "16k", .min = KIB,
     .max = MIB, .doc = "Largest head of a request."},
    {KEY("server.header_timeout", CONFIG_DURATION, server.header_timeout_ms), .initial = "10s",
     .min = 100, .max = HOUR_MS, .doc = "How long a client may take to send a request."},
    {KEY("server.idle_timeout", CONFIG_DURATION, server.idle_timeout_ms), .initial = "60s",
     .min = 100, .max = HOUR_MS, .doc = "How long a connection may lie idle between requests."},
    {KEY("server.max_connections", CONFIG_NUMBER, server.max_connections), .initial = "4096",
     .min = 1, .max = 65536, .doc = "Most connections at once."},
    {KEY("server.max_connections_per_client", CONFIG_NUMBER, server.max_connections_per_client),
     .initial = "2048", .min = 1, .max = 65536,
     .doc = "Most connections at once from one address."},
    {KEY("server.cors_origins", CONFIG_LIST, server.cors_origins), .check = config_check_origin,
     .doc = "Origins whose pages may use the server from a browser, such as "
            "https://tools.example.org; * for any. None: no CORS headers are sent."},
    {KEY("server.hosts", CONFIG_LIST, server.hosts), .check = config_check_word,
     .doc =
         "Names under which clients may reach a server without API keys, such as "
         "brigd.internal. Addresses and localhost always work; other names are refused, as a web "
         "page could have made its name lead here."},
    {KEY("server.web", CONFIG_BOOLEAN, server.web), .initial = "true",
     .doc = "Whether a browser gets a page at /, to run code and to look at executions and at the "
            "server. It needs an API key where programs need one."},
    {KEY("server.show_config", CONFIG_BOOLEAN, server.show_config), .initial = "false",
     .doc = "Whether GET /config shows the configuration, without secrets, to everybody who has an "
            "API key. It does without keys."},
    {KEY("server.access_log", CONFIG_TEXT, server.access_log), .initial = "-",
     .check = config_check_log,
     .doc =
         "Where each request is logged as a line of JSON, with its key, language and outcome: "
         "an absolute path, - for standard "
         "error, or off. SIGHUP opens a file anew, after it was moved away. Requests without a key "
         "may add 32 KiB a second; a line with the member skipped says how many more there were."},
    {KEY("server.log_format", CONFIG_CHOICE, server.log_format), .initial = "text",
     .choices = log_formats,
     .doc = "How brigd writes its own messages to standard error: text, or json with the members "
            "time, level, process and message."},
    {KEY("server.drain_delay", CONFIG_DURATION, server.drain_delay_ms), .initial = "0",
     .max = HOUR_MS,
     .doc = "How long new requests are still taken after SIGTERM, for load balancers that have to "
            "notice first that /readyz answers 503. After it new requests are answered with 503."},
    {KEY("server.drain_timeout", CONFIG_DURATION, server.drain_timeout_ms), .initial = "30s",
     .max = HOUR_MS, .doc = "How long running executions may then go on before they are ended."},
    {KEY("server.watchdog", CONFIG_DURATION, server.watchdog_ms), .initial = "30s", .max = HOUR_MS,
     .doc = "A process of brigd that hangs for so long is killed and started again; 0: never. "
            "Executions end with the executor. Where systemd sets WATCHDOG_USEC, it is told "
            "that brigd is alive."},
    {KEY("server.trace", CONFIG_BOOLEAN, server.trace), .initial = "false",
     .doc = "Whether the access log tells where the time of each execution went, step by step in "
            "microseconds. --trace-requests is the same."},

    {KEY("sandbox.backend", CONFIG_CHOICE, sandbox.backend), .initial = "auto", .choices = backends,
     .check = config_check_backend,
     .doc = "brigd makes its jails itself, so auto and native are the same. A runtime with an "
            "image can "
            "have another backend."},
    {KEY("sandbox.max_concurrent", CONFIG_NUMBER, sandbox.max_concurrent), .initial = "1000",
     .min = 1, .max = 100000, .doc = "Most executions at once."},
    {KEY("sandbox.max_queued", CONFIG_NUMBER, sandbox.max_queued), .initial = "1000", .max = 100000,
     .doc = "Most requests that wait for a running execution to end; beyond it the answer is 503."},
    {KEY("sandbox.queue_timeout", CONFIG_DURATION, sandbox.queue_timeout_ms), .initial = "30s",
     .min = 1, .max = HOUR_MS, .doc = "How long one of them may wait."},
    {KEY("sandbox.default_timeout", CONFIG_DURATION, sandbox.default_timeout_ms), .initial = "10s",
     .min = 1, .max = DAY_MS, .doc = "Time an execution has if its request does not say."},
    {KEY("sandbox.max_timeout", CONFIG_DURATION, sandbox.max_timeout_ms), .initial = "60s",
     .min = 1, .max = DAY_MS,
     .doc = "Most time that a request may ask for. A runtime may have its own."},
    {KEY("sandbox.kill_grace", CONFIG_DURATION, sandbox.kill_grace_ms), .initial = "0",
     .max = HOUR_MS,
     .doc = "At the end of that time: how long between SIGTERM and SIGKILL. 0 kills at once. The "
            "variable SANDBOX_KILL_GRACE_MS, in milliseconds, replaces it."},
    {KEY("sandbox.default_limits.memory_mb", CONFIG_NUMBER, sandbox.limits[EXECUTION_MEMORY_MB]),
     .initial = "256", .min = 8, .max = LIMIT_MAX,
     .doc = "Memory of an execution, in MiB, if its request does not say. The variable "
            "EXECUTOR_MEMORY_LIMIT_MB replaces it."},
    {KEY("sandbox.default_limits.pids_limit", CONFIG_NUMBER, sandbox.limits[EXECUTION_PIDS]),
     .initial = "50", .min = 1, .max = LIMIT_MAX, .doc = "Processes and threads."},
    {KEY("sandbox.default_limits.disk_mb", CONFIG_NUMBER, sandbox.limits[EXECUTION_DISK_MB]),
     .initial = "100", .min = 1, .max = LIMIT_MAX, .doc = "What can be written, in MiB."},
    {KEY("sandbox.default_limits.cpu_percent", CONFIG_NUMBER,
         sandbox.limits[EXECUTION_CPU_PERCENT]),
     .initial = "100", .min = 1, .max = CPU_PERCENT_MAX,
     .doc = "Share of the processors; 100 is one of them. The variable "
            "EXECUTOR_CPU_LIMIT_PERCENT replaces it."},
    {KEY("sandbox.max_limits.memory_mb", CONFIG_NUMBER, sandbox.max_limits[EXECUTION_MEMORY_MB]),
     .initial = "1024", .min = 8, .max = LIMIT_MAX,
     .doc = "Most memory that a request may ask for. A runtime may have its own."},
    {KEY("sandbox.max_limits.pids_limit", CONFIG_NUMBER, sandbox.max_limits[EXECUTION_PIDS]),
     .initial = "500", .min = 1, .max = LIMIT_MAX, .doc = "Most processes and threads."},
    {KEY("sandbox.max_limits.disk_mb", CONFIG_NUMBER, sandbox.max_limits[EXECUTION_DISK_MB]),
     .initial = "1024", .min = 1, .max = LIMIT_MAX, .doc = "Most disk."},
    {KEY("sandbox.max_limits.cpu_percent", CONFIG_NUMBER,
         sandbox.max_limits[EXECUTION_CPU_PERCENT]),
     .initial = "400", .min = 1, .max = CPU_PERCENT_MAX, .doc = "Largest share of the processors."},
    {KEY("sandbox.memory_reserve", CONFIG_SIZE, sandbox.memory_reserve_bytes), .initial = "128M",
     .max = 1024 * GIB,
     .doc = "Executions wait while the machine, or the cgroup of brigd, has less free memory. One "
            "runs in any case."},
    {KEY("sandbox.max_output", CONFIG_SIZE, sandbox.max_output_bytes), .initial = "64M", .min = KIB,
     .max = 1024 * GIB,
     .doc =
         "An execution that writes more than this is ended. Of what it writes, 1 MiB of standard "
         "output and 256 KiB of standard error are kept."},
    {KEY("sandbox.allow_network", CONFIG_BOOLEAN, sandbox.allow_network), .initial = "false",
     .doc = "Whether a request may have the network without naming hosts: then any public "
            "destination, never the host's own networks."},
    {KEY("sandbox.allowed_workdir_roots", CONFIG_LIST, sandbox.allowed_workdir_roots),
     .check = config_check_path,
     .doc =
         "Directories below which work_dir of a request may lie. None: work_dir is refused. A key "
         "in security.allowed_keys may have its own instead."},
    {KEY("sandbox.state_dir", CONFIG_PATH, sandbox.state_dir),
     .doc = "Working files of running jails. Default: $RUNTIME_DIRECTORY, /run/brigd for root, "
            "$XDG_RUNTIME_DIR/brigd, or ~/.local/state/brig/run."},
    {KEY("sandbox.image_dir", CONFIG_PATH, sandbox.image_dir),
     .doc = "Where the images of runtimes are. Default: images in $STATE_DIRECTORY, in "
            "/var/lib/brig for root, or in ~/.local/state/brig."},
    {KEY("sandbox.uid_first", CONFIG_NUMBER, sandbox.uid_first), .initial = "1879048192", .min = 1,
     .max = 4294900000,
     .doc = "When brigd runs as root, each jail has a host uid of its own; this is the first. "
            "Nobody else may use them."},
    {KEY("sandbox.uid_count", CONFIG_NUMBER, sandbox.uid_count), .initial = "65536", .min = 1,
     .max = 16777216, .doc = "How many there are."},
    {KEY("sandbox.pool.enabled", CONFIG_BOOLEAN, sandbox.pool.enabled), .initial = "true",
     .doc = "Whether jails are made ahead and wait for code. Each is for one execution. A request "
            "with limits, variables, arguments, files or a network of its own begins cold, as "
            "does every request that finds none waiting. The variable EXECUTOR_POOL_ENABLED "
            "replaces it."},
    {KEY("sandbox.pool.min", CONFIG_NUMBER, sandbox.pool.min), .initial = "2", .max = POOL_MAX,
     .doc = "How many wait for a runtime that was used of late, by each API key. A runtime may "
            "have its own."},
    {KEY("sandbox.pool.max", CONFIG_NUMBER, sandbox.pool.max), .initial = "16", .min = 1,
     .max = POOL_MAX,
     .doc = "To how many that grows when requests find none waiting. A runtime may have its own."},
    {KEY("sandbox.pool.memory", CONFIG_SIZE, sandbox.pool.memory_bytes), .initial = "512M",
     .max = 1024 * GIB, .doc = "Most memory of all jails that wait; beyond it none are made."},
    {KEY("sandbox.pool.idle_timeout", CONFIG_DURATION, sandbox.pool.idle_ms), .initial = "5m",
     .min = 1, .max = DAY_MS,
     .doc = "After so long without a request for a runtime its waiting jails are ended."},
    {KEY("sandbox.pool.max_age", CONFIG_DURATION, sandbox.pool.age_ms), .initial = "10m", .min = 1,
     .max = DAY_MS, .doc = "One that has waited so long is replaced."},
    {KEY("sandbox.pool.max_domains", CONFIG_NUMBER, sandbox.pool.domains), .initial = "16",
     .min = 1, .max = 1024,
     .doc = "For how many API keys jails wait at the same time; the one that was unused longest "
            "makes room. Jails and zygotes of one key are never used for another."},
    {KEY("sandbox.pool.zygotes", CONFIG_BOOLEAN, sandbox.pool.zygotes), .initial = "true",
     .doc = "Whether Python executions are forked from an interpreter that is running already, one "
            "for each API key. They share its hash seed and the addresses of its memory; without "
            "it, Python is started anew in each jail."},
    {KEY("sandbox.pool.zygote_runs", CONFIG_NUMBER, sandbox.pool.zygote_runs), .initial = "1000",
     .min = 1, .max = 1000000000,
     .doc = "After so many executions such an interpreter is replaced,"},
    {KEY("sandbox.pool.zygote_age", CONFIG_DURATION, sandbox.pool.zygote_age_ms), .initial = "10m",
     .min = 1, .max = DAY_MS, .doc = "and after so much time."},
    {KEY("sandbox.pool.preload", CONFIG_LIST, sandbox.pool.preload), .check = config_check_module,
     .doc = "Python modules that it imports before any code comes, such as json or numpy."},

    {KEY("queue.max", CONFIG_NUMBER, queue.max), .initial = "1000", .max = 100000,
     .doc = "Most executions of POST /executions that wait; beyond it the answer is 503. They "
            "survive a restart of brigd."},
    {KEY("queue.max_per_key", CONFIG_NUMBER, queue.max_per_key), .initial = "200", .min = 1,
     .max = 100000, .doc = "Most of them of one API key; beyond it the answer is 429."},
    {KEY("queue.places_percent", CONFIG_NUMBER, queue.places_percent), .initial = "75", .min = 1,
     .max = 100,
     .doc = "Their share of sandbox.max_concurrent; the others are for POST /execute. One runs in "
            "any case."},
    {KEY("queue.max_priority", CONFIG_NUMBER, queue.max_priority), .initial = "10",
     .max = EXECUTION_PRIORITY_MAX,
     .doc = "Highest priority that a request may ask for. A key in security.allowed_keys may have "
            "its own max_priority."},
    {KEY("queue.max_wait", CONFIG_DURATION, queue.max_wait_ms), .initial = "60s", .min = 1000,
     .max = HOUR_MS, .doc = "Longest wait of GET /executions/{id}?wait=SECONDS."},
    {KEY("queue.keep", CONFIG_DURATION, queue.keep_ms), .initial = "1d", .min = 60000,
     .max = YEARS_MS,
     .doc = "How long whole results of POST /executions, with their files, and idempotency keys "
            "with their results are kept."},
    {KEY("queue.keep_per_key", CONFIG_SIZE, queue.keep_per_key_bytes), .initial = "1G", .min = MIB,
     .max = 1024 * GIB,
     .doc =
         "The most bytes that are kept for one API key: whole results, submissions of Judge0 and "
         "requests that wait. Beyond it the oldest results are removed, with their submissions, "
         "idempotency keys and callbacks; a request that does not fit even then is answered with "
         "429, or by Judge0's interface with 503. Without API keys all clients share it."},

    {KEY("callback.enabled", CONFIG_BOOLEAN, callback.enabled), .initial = "true",
     .doc = "Whether POST /executions takes a callback: a URL that is sent the result."},
    {KEY("callback.secret", CONFIG_TEXT, callback.secret), .secret = true,
     .doc = "Signs callbacks whose request brings no secret of its own. Without it such requests "
            "are refused."},
    {KEY("callback.allow", CONFIG_LIST, callback.allow), .check = config_check_destination,
     .doc = "Destinations of callbacks that are not public: an address or a range with ports, such "
            "as 10.0.0.0/8:8080, or host:8080 for a service on the loopback of this machine, which "
            "has the name host. None: callbacks reach public addresses only."},
    {KEY("callback.timeout", CONFIG_DURATION, callback.timeout_ms), .initial = "10s", .min = 100,
     .max = 300000, .doc = "Time for one attempt."},
    {KEY("callback.attempts", CONFIG_NUMBER, callback.attempts), .initial = "6", .min = 1,
     .max = 100, .doc = "How often an answer other than 2xx is tried again, with the first."},
    {KEY("callback.retry", CONFIG_DURATION, callback.retry_ms), .initial = "5s", .min = 1,
     .max = HOUR_MS, .doc = "Time to the second attempt; doubled for each that follows."},
    {KEY("callback.max_body", CONFIG_SIZE, callback.max_body_bytes), .initial = "1M",
     .min = 16 * KIB, .max = 16 * MIB,
     .doc = "A result that is larger is sent without its files, and if need be without output."},

    {KEY("sandboxes.enabled", CONFIG_BOOLEAN, sandboxes.enabled), .initial = "true",
     .doc = "Whether clients may create sandboxes: jails that stay, for many commands."},
    {KEY("sandboxes.max", CONFIG_NUMBER, sandboxes.max), .initial = "500", .min = 1, .max = 10000,
     .doc = "Most sandboxes at once; beyond it the answer is 503."},
    {KEY("sandboxes.max_per_key", CONFIG_NUMBER, sandboxes.max_per_key), .initial = "100",
     .max = 10000,
     .doc = "Most sandboxes of one API key; beyond it the answer is 429. Without API keys all "
            "clients are one. 0 is no limit."},
    {KEY("sandboxes.memory_per_key", CONFIG_SIZE, sandboxes.memory_per_key_bytes), .initial = "32G",
     .max = 1024 * GIB,
     .doc = "Most memory that the sandboxes of one API key may have together, by their limits. 0 "
            "is no limit."},
    {KEY("sandboxes.pids_per_key", CONFIG_NUMBER, sandboxes.pids_per_key), .initial = "10000",
     .max = 10000000, .doc = "The same for processes and threads."},
    {KEY("sandboxes.default_timeout", CONFIG_DURATION, sandboxes.default_timeout_ms),
     .initial = "5m", .min = 1000, .max = 365 * DAY_MS,
     .doc = "After this time a sandbox is ended, if its creator does not say."},
    {KEY("sandboxes.max_timeout", CONFIG_DURATION, sandboxes.max_timeout_ms), .initial = "24h",
     .min = 1000, .max = 365 * DAY_MS, .doc = "Most time that a client may ask for at once."},
    {KEY("sandboxes.max_paused", CONFIG_DURATION, sandboxes.max_paused_ms), .initial = "7d",
     .min = 1000, .max = 365 * DAY_MS,
     .doc = "A sandbox that is paused for so long is ended. Its deadline stands still meanwhile."},
    {KEY("sandboxes.max_commands", CONFIG_NUMBER, sandboxes.max_commands), .initial = "32",
     .min = 1, .max = 56, .doc = "Most commands that run in one sandbox at a time."},
    {KEY("sandboxes.output_kept", CONFIG_SIZE, sandboxes.output_kept_bytes), .initial = "1M",
     .min = 4 * KIB, .max = MIB,
     .doc = "How much of the newest output of a command is kept, for clients that connect later."},
    {KEY("sandboxes.waiting", CONFIG_NUMBER, sandboxes.waiting), .initial = "2", .max = 64,
     .doc =
         "After code was run in a sandbox (POST /sandboxes/{id}/run): how many sandboxes with the "
         "same settings wait, with a started interpreter, for the next request, until "
         "sandbox.pool.idle_timeout is over. Those with env or an image never wait. 0: none."},

    {KEY("judge0.enabled", CONFIG_BOOLEAN, judge0.enabled), .initial = "true",
     .doc = "Whether clients of Judge0 are answered below /judge0."},
    {KEY("judge0.implicit_base64", CONFIG_BOOLEAN, judge0.implicit_base64), .initial = "false",
     .doc =
         "Whether base64_encoded is true unless a request says false, as for Judge0 1.14; else it "
         "is as for 1.13."},
    {KEY("judge0.allow_delete", CONFIG_BOOLEAN, judge0.allow_delete), .initial = "false",
     .doc = "Whether an API key that is also sent as X-Auth-User may remove its submissions."},

    {KEY("piston.enabled", CONFIG_BOOLEAN, piston.enabled), .initial = "true",
     .doc = "Whether clients of Piston are served at /api/v2 and /api/v2/piston."},
    {KEY("piston.version_match", CONFIG_CHOICE, piston.version_match), .initial = "lenient",
     .choices = version_matches,
     .doc = "Clients of Piston name a version. lenient takes the version that is installed, strict "
            "refuses a request whose version it is not."},
    {KEY("piston.output_max_size", CONFIG_SIZE, piston.output_max_bytes), .initial = "1M",
     .min = KIB, .max = MIB,
     .doc = "A stage of a request of a Piston client that writes more to one stream is ended; of "
            "standard error at most 256 KiB."},

    {KEY("database.store", CONFIG_CHOICE, database.store), .initial = "sqlite", .choices = stores,
     .doc = "Where the history of executions is kept. Default: sqlite, or postgres if there is a "
            "database.dsn; none turns the history off."},
    {KEY("database.path", CONFIG_PATH, database.path),
     .doc = "The file of SQLite. Default: history.sqlite in $STATE_DIRECTORY, in /var/lib/brig for "
            "root, or in ~/.local/state/brig."},
    {KEY("database.dsn", CONFIG_TEXT, database.dsn), .secret = true, .check = config_check_dsn,
     .doc = "Connection string of PostgreSQL, as a URL or as key=value words. Its password may "
            "also be "
            "in a file that it names as passfile=PATH."},
    {KEY("database.spool_dir", CONFIG_PATH, database.spool_dir),
     .doc = "Where rows wait for PostgreSQL. Default: spool beside the file of SQLite."},
    {KEY("database.spool_max", CONFIG_SIZE, database.spool_max_bytes), .initial = "1G",
     .min = 16 * MIB, .max = 1024 * GIB,
     .doc = "Most bytes that wait. Beyond it code and output of new rows are left out, and their "
            "hashes kept; at twice the size new executions are answered with 503."},
    {KEY("database.retention", CONFIG_DURATION, database.retention_ms), .initial = "90d",
     .max = YEARS_MS, .doc = "How long rows are kept; 0 is for ever."},
    {KEY("database.code", CONFIG_CHOICE, database.code), .initial = "full", .choices = keeps,
     .doc = "What is kept of the code: all of it, its SHA-256, or nothing."},
    {KEY("database.output", CONFIG_CHOICE, database.output), .initial = "full", .choices = keeps,
     .doc = "The same of what it wrote."},

    {KEY("security.rate_limit_rps", CONFIG_NUMBER, security.rate_limit_rps), .initial = "100",
     .max = 1000000,
     .doc =
         "Requests a second from one address; 0 is no limit. /health and /metrics do not count."},
    {KEY("security.rate_limit_burst", CONFIG_NUMBER, security.rate_limit_burst), .initial = "200",
     .min = 1, .max = 1000000, .doc = "How many may come at once."},
    {KEY("security.key_rate_limit_rps", CONFIG_NUMBER, security.key_rate_limit_rps), .initial = "0",
     .max = 1000000,
     .doc = "Requests a second with one API key, from all addresses. Then the limit of the address "
            "does not apply to them. 0: it does, and the key has no limit."},
    {KEY("security.key_rate_limit_burst", CONFIG_NUMBER, security.key_rate_limit_burst),
     .initial = "0", .max = 1000000,
     .doc = "How many of them may come at once; 0: as many as in a second."},
    {KEY("security.allowed_keys", CONFIG_LIST, security.allowed_keys),
     .check = config_check_api_key, .secret = true, .is_api_keys = true,
     .doc =
         "API keys, each as it is or as sha256: and the 64 hexadecimal digits of its hash. None: "
         "everybody who reaches the server may use it. An item may also be a mapping such as "
         "{key: KEY, name: ci, rate_limit_rps: 5, rate_limit_burst: 10, workdir_roots: "
         "[/srv/one]}: "
         "its name in the access log; its rate, in place of security.key_rate_limit_rps and "
         "key_rate_limit_burst; max_priority, in place of that of queue; and the only directories "
         "below which work_dir of its requests may "
         "lie, whatever sandbox.allowed_workdir_roots has, with [] none."},
    {KEY("security.max_executions_per_key", CONFIG_NUMBER, security.max_executions_per_key),
     .initial = "0", .max = 200000,
     .doc = "Most executions that one API key may have at a time, running and waiting together; "
            "beyond it the answer is 429. 0 is no limit: then one key can take all of "
            "sandbox.max_concurrent and sandbox.max_queued."},
    {KEY("security.trusted_proxies", CONFIG_LIST, security.trusted_proxies),
     .check = config_check_range, .doc = "Addresses or ranges whose X-Forwarded-For is believed."},
    {KEY("security.detector", CONFIG_BOOLEAN, security.detector), .initial = "true",
     .doc = "Whether code is looked through for attempts to escape before it is run."},

    {KEY("tls.enabled", CONFIG_BOOLEAN, tls.enabled), .initial = "false",
     .doc = "Whether to speak HTTPS. SIGHUP reads the files again."},
    {KEY("tls.cert_file", CONFIG_PATH, tls.cert_file),
     .doc = "The certificate and its chain, PEM."},
    {KEY("tls.key_file", CONFIG_PATH, tls.key_file), .doc = "Its private key, PEM."},

    {KEY("auth_proxy.port", CONFIG_NUMBER, auth_proxy.port), .initial = "0", .max = 65535,
     .doc = "Port inside the jails of agents at which requests have the credential added to them, "
            "so that it is nowhere in the jail; 0: it is a file in the jail instead."},
    {KEY("auth_proxy.upstream", CONFIG_TEXT, auth_proxy.upstream),
     .initial = "https://api.anthropic.com", .check = config_check_upstream,
     .doc = "Where such requests go."},
};
const size_t config_key_count = ARRAY_LENGTH(config_keys);
_Static_assert(ARRAY_LENGTH(config_keys) <= CONFIG_KEYS_MAX, "each key has an origin");

const struct config_key config_runtime_keys[] = {
    {RUNTIME_KEY("command", CONFIG_WORDS, argv), .max = RUNTIME_ARGV_MAX - 1,
     .doc =
         "The program and its arguments. {file} is the path of the code, {memory_mb} the limit."},
    {RUNTIME_KEY("compile", CONFIG_WORDS, compile), .max = RUNTIME_ARGV_MAX - 1,
     .doc = "The compile stage: run first, in the same jail. The word {files} stands for the code "
            "and all files of the request with the same suffix."},
    {RUNTIME_KEY("file", CONFIG_TEXT, file_name), .check = config_check_file_name,
     .doc = "The name that the code has as a file, such as main.rb."},
    {RUNTIME_KEY("aliases", CONFIG_WORDS, aliases), .max = RUNTIME_ALIASES_MAX - 1,
     .check = config_check_word, .doc = "Other names that a request may use."},
    {RUNTIME_KEY("version_argument", CONFIG_TEXT, version_argument),
     .doc = "Makes the program, or the compiler, print its version; by default --version."},
    {RUNTIME_KEY("package", CONFIG_TEXT, package),
     .doc = "The package to install where the program is missing."},
    {RUNTIME_KEY("root", CONFIG_PATH, root),
     .doc = "A directory that is its root, instead of the host's system."},
    {RUNTIME_KEY("image", CONFIG_TEXT, image), .check = config_check_image,
     .doc = "A container image that is its root, such as python:3.12-slim, loaded by brig image "
            "load --store. Its variables are set. No jails of it wait for code."},
    {RUNTIME_KEY("backend", CONFIG_CHOICE, backend), .choices = runtime_backend_names,
     .doc =
         "What runs the image: brig, which is the default, or crun, runc or runsc in a jail. The "
         "last three have no network, compile stage or sandboxes."},
    {RUNTIME_KEY("profile", CONFIG_CHOICE, profile), .choices = profiles,
     .doc = "Its system calls: code denies by default, dev denies what is dangerous."},
    {RUNTIME_KEY("input", CONFIG_CHOICE, input), .choices = inputs,
     .doc = "Whether the code is a file, or standard input."},
    {RUNTIME_KEY("agent", CONFIG_BOOLEAN, agent),
     .doc = "An agent: a fresh home that can be written, work_dir, and the hosts of allow."},
    {RUNTIME_KEY("disabled", CONFIG_BOOLEAN, disabled), .doc = "Takes it out of the table."},
    {RUNTIME_KEY("allow", CONFIG_WORDS, allow), .max = 7, .check = config_check_word,
     .doc = "Hosts that it always reaches."},
    {RUNTIME_KEY("parking", CONFIG_CHOICE, parking), .choices = parkings,
     .doc = "How its jails wait for code: node, with Node running; zygote, forked from a running "
            "Python; or none. Node and zygote need the program to be node or python3. Agents, and "
            "runtimes that have hosts to reach, do not wait. The words exec and open of earlier "
            "versions mean none."},
    {RUNTIME_KEY("pool_min", CONFIG_NUMBER, pool_min), .max = POOL_MAX,
     .doc = "Instead of sandbox.pool.min, if it is not 0."},
    {RUNTIME_KEY("pool_max", CONFIG_NUMBER, pool_max), .max = POOL_MAX,
     .doc = "Instead of sandbox.pool.max, if it is not 0."},
    {RUNTIME_KEY("timeout", CONFIG_DURATION, timeout_ms), .min = 1, .max = DAY_MS,
     .doc = "Time it has if the request does not say."},
    {RUNTIME_KEY("max_timeout", CONFIG_DURATION, max_timeout_ms), .min = 1, .max = DAY_MS,
     .doc = "Most that a request may ask for."},
    {RUNTIME_KEY("limits.memory_mb", CONFIG_NUMBER, limits[EXECUTION_MEMORY_MB]), .min = 8,
     .max = LIMIT_MAX, .doc = "Memory, in MiB, if the request does not say."},
    {RUNTIME_KEY("limits.pids_limit", CONFIG_NUMBER, limits[EXECUTION_PIDS]), .min = 1,
     .max = LIMIT_MAX, .doc = "Processes and threads."},
    {RUNTIME_KEY("limits.disk_mb", CONFIG_NUMBER, limits[EXECUTION_DISK_MB]), .min = 1,
     .max = LIMIT_MAX, .doc = "What can be written, in MiB."},
    {RUNTIME_KEY("limits.cpu_percent", CONFIG_NUMBER, limits[EXECUTION_CPU_PERCENT]), .min = 1,
     .max = CPU_PERCENT_MAX, .doc = "Share of the processors."},
    {RUNTIME_KEY("max_limits.memory_mb", CONFIG_NUMBER, max_limits[EXECUTION_MEMORY_MB]), .min = 8,
     .max = LIMIT_MAX, .doc = "Most memory that a request may ask for."},
    {RUNTIME_KEY("max_limits.pids_limit", CONFIG_NUMBER, max_limits[EXECUTION_PIDS]), .min = 1,
     .max = LIMIT_MAX, .doc = "Most processes and threads."},
    {RUNTIME_KEY("max_limits.disk_mb", CONFIG_NUMBER, max_limits[EXECUTION_DISK_MB]), .min = 1,
     .max = LIMIT_MAX, .doc = "Most disk."},
    {RUNTIME_KEY("max_limits.cpu_percent", CONFIG_NUMBER, max_limits[EXECUTION_CPU_PERCENT]),
     .min = 1, .max = CPU_PERCENT_MAX, .doc = "Largest share of the processors."},
};
const size_t config_runtime_key_count = ARRAY_LENGTH(config_runtime_keys);

#define API_KEY(name_, type_, member) PLACED(name_, type_, config_api_key, member)
const struct config_key config_api_key_keys[] = {
    {API_KEY("name", CONFIG_TEXT, name), .check = config_check_word},
    {API_KEY("rate_limit_rps", CONFIG_NUMBER, rate_limit_rps), .min = 1, .max = 1000000},
    {API_KEY("rate_limit_burst", CONFIG_NUMBER, rate_limit_burst), .min = 1, .max = 1000000},
    {API_KEY("max_priority", CONFIG_NUMBER, max_priority), .min = 1, .max = EXECUTION_PRIORITY_MAX},
};
const size_t config_api_key_key_count = ARRAY_LENGTH(config_api_key_keys);

const struct config_key *config_key_find(const struct config_key *keys, size_t count,
                                         const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

bool config_key_is_section(const struct config_key *keys, size_t count, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (strncmp(keys[i].name, name, length) == 0 && keys[i].name[length] == '.')
            return true;
    return false;
}

void config_key_hint(const struct config_key *keys, size_t count, const char *prefix,
                     const char *shown_prefix, const char *name, struct str *out)
{
    struct nearest nearest;
    autostr struct str known = {0};
    const char *before = "";
    nearest_begin(&nearest, name);
    for (size_t i = 0; i < count; i++) {
        if (str_starts_with(keys[i].name, prefix))
            nearest_offer_section(&nearest, keys[i].name + strlen(prefix), &before, &known);
    }
    if (nearest.best[0])
        str_appendf(out, "Did you mean '%s%s'?", shown_prefix, nearest.best);
    else
        str_appendf(out, "Known here: %s", known.data ? known.data : "none");
}
