/* SPDX-License-Identifier: MIT */
/* For tests of the executor: a real one in a process of its own, and this process in the place of the
 * supervisor, the http process and the history process. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brig/brig.h>

#include "await.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/execution.h"
#include "server/message.h"
#include "server/role.h"
#include "tap.h"

#define ROWS_MAX 8192
#define DONES_MAX 2048

/* What came for one execution. */
struct answer {
    bool done;
    char id[EXECUTION_ID_LENGTH + 1]; /* as it was told, before anything else */
    struct str out[2];                /* pieces of a stream */
    size_t pieces;
    char stages[64]; /* "+compile -compile=0 +run -run=0" */
    struct execution_result result;
};

struct rig {
    struct server_config config;
    char state_dir[64];
    pid_t executor;
    struct channel *supervisor, *http, *history;
    uint64_t tag;
    bool deaf; /* the history process says nothing is safe */
    struct answer *answers;
    enum message_type rows[ROWS_MAX]; /* what the history process was told */
    size_t row_count;
    uint64_t row_tag;
    size_t begin_bytes; /* of the last row of a beginning */
    struct execution_result last_row;
    int killed; /* the last MESSAGE_KILLED, or -1 */
    struct message_gauges gauges;
    char *runtimes;
    char warning[512];
};

/* Until the configuration's own is there. */
__attribute__((weak)) const struct runtime *config_find_runtime(const struct server_config *config,
                                                                const char *name)
{
    for (size_t i = 0; i < config->runtime_count; i++)
        if (strcmp(config->runtimes[i].name, name) == 0)
            return &config->runtimes[i];
    return NULL;
}

/* BRIG_TEST_POOLS=on: jails wait for what these tests run. */
static inline void rig_pools(struct server_config *config)
{
    const char *pools = getenv("BRIG_TEST_POOLS");
    config->sandbox.pool.enabled = pools && strcmp(pools, "on") == 0;
    config->sandbox.pool.memory_bytes = (uint64_t)1 << 30;
    config->sandbox.pool.idle_ms = config->sandbox.pool.age_ms = 600000;
    config->sandbox.pool.domains = 8;
    for (size_t i = 0; i < config->runtime_count; i++) {
        config->runtimes[i].pool_min = 2;
        config->runtimes[i].pool_max = 2;
    }
}

static inline void rig_config(struct rig *rig)
{
    static const struct runtime more[] = {
        {.name = "perl", .argv = {"perl", "{file}"}, .file_name = "main.pl", .package = "perl"},
        {.name = "ruby", .argv = {"ruby", "{file}"}, .file_name = "main.rb", .package = "ruby"},
        {.name = "c",
         .compile = {"cc", "-o", "/tmp/main", "{files}"},
         .argv = {"/tmp/main"},
         .file_name = "main.c",
         .package = "gcc"},
        {.name = "missing", .argv = {"no-such-program"}, .package = "no-such-package"},
    };
    struct server_config *config = &rig->config;
    const uint64_t limits[EXECUTION_LIMITS_] = {256, 50, 100, 100};
    const uint64_t most[EXECUTION_LIMITS_] = {1024, 500, 1000, 400};
    (void)snprintf(rig->state_dir, sizeof rig->state_dir, "/tmp/brig-executor-XXXXXX");
    if (!mkdtemp(rig->state_dir))
        tap_bail("mkdtemp: %s", strerror(errno));
    memcpy(config->sandbox.limits, limits, sizeof limits);
    memcpy(config->sandbox.max_limits, most, sizeof most);
    config->sandbox.max_concurrent = 2000;
    config->sandbox.default_timeout_ms = 30000;
    config->sandbox.max_timeout_ms = 600000;
    config->sandbox.max_output_bytes = (uint64_t)16 << 20;
    config->sandbox.state_dir = rig->state_dir;
    config->sandbox.uid_first = 1800000000 + (unsigned)getpid() % 100000 * 4000;
    config->sandbox.uid_count = 4000;
    config->server.drain_timeout_ms = 20000;
    for (size_t i = 0; i < runtime_table_count; i++)
        config->runtimes[config->runtime_count++] = runtime_table[i];
    for (size_t i = 0; i < ARRAY_LENGTH(more); i++) {
        config->runtimes[config->runtime_count] = more[i];
        config->runtimes[config->runtime_count].profile = BRIG_SECCOMP_CODE;
        config->runtimes[config->runtime_count++].origin = "test";
    }
    for (size_t i = 0; i < config->runtime_count; i++) { /* as the configuration does it */
        struct runtime *runtime = &config->runtimes[i];
        for (size_t k = 0; k < EXECUTION_LIMITS_ && !runtime->agent; k++) {
            runtime->limits[k] = limits[k];
            runtime->max_limits[k] = most[k];
        }
        if (!runtime->agent) {
            runtime->timeout_ms = config->sandbox.default_timeout_ms;
            runtime->max_timeout_ms = config->sandbox.max_timeout_ms;
        }
    }
    rig_pools(config);
}

static inline struct channel *connect_peer(struct rig *rig, enum server_role role)
{
    int ends[2];
    struct channel *channel = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        channel_new(&ends[0], &channel, NULL) < 0 ||
        channel_send_fd(rig->supervisor, MESSAGE_PEER, role, ends[1], NULL) < 0)
        tap_bail("no peer");
    (void)close(ends[1]);
    return channel;
}

static inline void rig_fork(struct rig *rig)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        tap_bail("socketpair: %s", strerror(errno));
    (void)fflush(stdout);
    rig->executor = fork();
    if (rig->executor == 0) {
        struct brig_error err = {0};
        struct channel *control = NULL;
        (void)close(ends[0]);
        if (channel_new(&ends[1], &control, NULL) < 0)
            _exit(9);
        (void)signal(SIGTERM, SIG_IGN); /* as the supervisor has it */
        int result = executor_main(&rig->config, control, &(struct role_fds){-1, -1}, &err);
        if (result < 0)
            (void)fprintf(stderr, "# executor: %s\n", err.message);
        channel_free(control);
        exit(result < 0 ? 1 : 0); /* and not _exit(): leaks are looked for */
    }
    (void)close(ends[1]);
    if (rig->executor < 0 || channel_new(&ends[0], &rig->supervisor, NULL) < 0)
        tap_bail("no executor");
}

static inline void rig_start(struct rig *rig)
{
    rig_fork(rig);
    rig->history = connect_peer(rig, ROLE_HISTORY);
    rig->http = connect_peer(rig, ROLE_HTTP);
    rig->killed = -1;
    if (!rig->answers)
        rig->answers = calloc(DONES_MAX, sizeof *rig->answers);
    if (!rig->answers)
        tap_bail("out of memory");
}

/* ---- what comes ---- */

static inline void take_row(struct rig *rig, const struct message *message)
{
    if (rig->row_count < ROWS_MAX)
        rig->rows[rig->row_count++] = message->type;
    if (message->type == MESSAGE_BEGIN)
        rig->begin_bytes = message->length;
    rig->row_tag = message->tag;
    if (message->type == MESSAGE_END) {
        execution_result_done(&rig->last_row);
        if (execution_result_decode(message->bytes, message->length, &rig->last_row, NULL) < 0)
            tap_fail("a row can be read");
    }
    if (!rig->deaf)
        (void)channel_send(rig->history, MESSAGE_STORED, message->tag, NULL, 0, NULL);
}

static inline void take_stage(struct answer *answer, const struct message *message)
{
    struct message_stage stage;
    size_t length = strlen(answer->stages);
    memcpy(&stage, message->bytes, sizeof stage);
    const char *name = stage.stage == STAGE_COMPILE ? "compile" : "run";
    if (stage.ended)
        (void)snprintf(answer->stages + length, sizeof answer->stages - length, " -%s=%d/%u", name,
                       stage.exit_code, stage.signal);
    else
        (void)snprintf(answer->stages + length, sizeof answer->stages - length, " +%s", name);
}

static inline void take_from_http(struct rig *rig, struct message *message)
{
    struct answer *answer = &rig->answers[message->tag % DONES_MAX];
    switch (message->type) {
    case MESSAGE_BEGUN:
        (void)snprintf(answer->id, sizeof answer->id, "%s", message->bytes);
        break;
    case MESSAGE_OUTPUT:
        answer->pieces++;
        str_append_bytes(&answer->out[message->bytes[0] - 1], message->bytes + 1,
                         message->length - 1);
        break;
    case MESSAGE_DONE:
        if (execution_result_decode(message->bytes, message->length, &answer->result, NULL) < 0)
            tap_bail("a result cannot be read");
        answer->done = true;
        break;
    case MESSAGE_STAGE:
        take_stage(answer, message);
        break;
    case MESSAGE_KILLED:
        rig->killed = message->bytes[0];
        break;
    case MESSAGE_GAUGES:
        memcpy(&rig->gauges, message->bytes, sizeof rig->gauges);
        break;
    case MESSAGE_ROW:
        break;
    case MESSAGE_RUNTIMES:
        free(rig->runtimes);
        rig->runtimes = take_ptr(&message->bytes);
        break;
    default:
        tap_fail("the http process has no use for message %d", (int)message->type);
    }
}

/* Everything that is there; false once the executor is gone. */
static inline bool pump(struct rig *rig)
{
    struct channel *channels[] = {rig->supervisor, rig->http, rig->history};
    bool alive = true;
    for (size_t i = 0; i < ARRAY_LENGTH(channels); i++) {
        if (channels[i] && channel_wants_write(channels[i]))
            (void)channel_flush(channels[i], NULL);
        for (int got = 1; channels[i] && got == 1;) {
            automessage struct message message = {.fd = -1};
            got = channel_receive(channels[i], &message, NULL);
            if (got < 0 && i == 0)
                alive = false;
            if (got == 1 && i == 0 && message.type == MESSAGE_WARNING)
                (void)snprintf(rig->warning, sizeof rig->warning, "%s", message.bytes);
            if (got == 1 && i == 1)
                take_from_http(rig, &message);
            if (got == 1 && i == 2)
                take_row(rig, &message);
        }
    }
    return alive;
}

/* Until something has happened, or the time is over. */
static inline bool wait_for(struct rig *rig, bool (*happened)(struct rig *rig, uint64_t argument),
                            uint64_t argument)
{
    uint64_t deadline = clock_now_ms() + (uint64_t)await_ms();
    while (clock_now_ms() < deadline) {
        bool alive = pump(rig);
        if (happened(rig, argument))
            return true;
        if (!alive)
            return false;
        struct pollfd fds[3] = {
            {.fd = channel_fd(rig->supervisor), .events = POLLIN},
            {.fd = rig->http ? channel_fd(rig->http) : -1, .events = POLLIN},
            {.fd = rig->history ? channel_fd(rig->history) : -1, .events = POLLIN}};
        (void)poll(fds, 3, 200);
    }
    return false;
}

static inline bool is_done(struct rig *rig, uint64_t tag)
{
    return rig->answers[tag % DONES_MAX].done;
}

static inline bool has_output(struct rig *rig, uint64_t tag)
{
    return rig->answers[tag % DONES_MAX].pieces > 0;
}

static inline bool has_rows(struct rig *rig, uint64_t count)
{
    return rig->row_count >= count;
}

static inline bool is_answered(struct rig *rig, uint64_t argument)
{
    (void)argument;
    return rig->killed >= 0;
}

/* ---- what is asked ---- */

static inline struct execution_request request_for(const char *language, const char *code)
{
    return (struct execution_request){.id = "",
                                      .request_id = "test",
                                      .client = "127.0.0.1",
                                      .domain = "",
                                      .language = language,
                                      .code = {code, strlen(code)},
                                      .stdin_bytes = {"", 0}};
}

static inline uint64_t send_request(struct rig *rig, const struct execution_request *request)
{
    autostr struct str bytes = {0};
    uint64_t tag = ++rig->tag;
    struct answer *answer = &rig->answers[tag % DONES_MAX];
    execution_result_done(&answer->result);
    str_done(&answer->out[0]);
    str_done(&answer->out[1]);
    *answer = (struct answer){0};
    if (execution_request_encode(request, &bytes, NULL) < 0 ||
        channel_send(rig->http, MESSAGE_EXECUTE, tag, bytes.data, bytes.length, NULL) < 0)
        tap_bail("a request cannot be sent");
    return tag;
}

/* Sends it and waits for the result. */
static inline const struct answer *execute(struct rig *rig, const struct execution_request *request)
{
    uint64_t tag = send_request(rig, request);
    if (!wait_for(rig, is_done, tag))
        tap_bail("no answer to a request; the last warning was '%s'", rig->warning);
    return &rig->answers[tag % DONES_MAX];
}

static inline const struct execution_result *run_code(struct rig *rig, const char *language,
                                                      const char *code)
{
    struct execution_request request = request_for(language, code);
    return &execute(rig, &request)->result;
}

static inline void show(const struct execution_result *result)
{
    tap_diag("%s, exit code %d, signal %d, '%s', stderr '%.2000s'",
             execution_status_name(result->status), result->exit_code, result->signal,
             result->message, result->error_output.data);
    for (size_t i = 0; i < result->unenforced_count; i++)
        tap_diag("unenforced: %s", result->unenforced[i]);
}

static inline void is_output(const struct execution_result *result, const char *output,
                             const char *name)
{
    if (!tap_ok(result->status == EXECUTION_OK && strcmp(result->output.data, output) == 0, "%s",
                name)) {
        show(result);
        tap_diag("got: '%.2000s'", result->output.data);
    }
}

static inline void is_status(const struct execution_result *result, enum execution_status status,
                             const char *name)
{
    if (!tap_ok(result->status == status, "%s", name))
        show(result);
}

/* ---- its end ---- */

static inline void drop_peers(struct rig *rig)
{
    channel_free(take_ptr(&rig->supervisor));
    channel_free(take_ptr(&rig->http));
    channel_free(take_ptr(&rig->history));
}

/* Drains it; its exit status, or -1. */
static inline int rig_drain(struct rig *rig)
{
    int status = 0;
    (void)channel_send(rig->supervisor, MESSAGE_DRAIN, 0, NULL, 0, NULL);
    uint64_t deadline = clock_now_ms() + (uint64_t)await_ms();
    while (clock_now_ms() < deadline && pump(rig)) {
        struct pollfd fd = {.fd = channel_fd(rig->supervisor), .events = POLLIN};
        (void)poll(&fd, 1, 20);
    }
    if (waitpid(rig->executor, &status, 0) != rig->executor || !WIFEXITED(status))
        return -1;
    drop_peers(rig);
    return WEXITSTATUS(status);
}

/* What an executor that was killed has left, too. */
static inline void remove_state(const struct rig *rig)
{
    autodir DIR *dir = opendir(rig->state_dir);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    (void)rmdir(rig->state_dir);
}

static inline void rig_done(struct rig *rig)
{
    for (size_t i = 0; rig->answers && i < DONES_MAX; i++) {
        execution_result_done(&rig->answers[i].result);
        str_done(&rig->answers[i].out[0]);
        str_done(&rig->answers[i].out[1]);
    }
    execution_result_done(&rig->last_row);
    free(rig->answers);
    free(rig->runtimes);
    remove_state(rig);
}

/* A group of checks; the name may be given as an argument to run it alone. */
struct rig_test {
    const char *name;
    void (*run)(void);
};

/* Ends the program if an interpreter that its tests use is not installed. */
static inline void need_interpreters(void)
{
    static const char *const programs[] = {"node", "ruby", "perl"};
    for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/usr/bin/%s", programs[i]);
        if (access(path, X_OK) < 0) {
            printf("1..0 # SKIP %s is not installed\n", programs[i]);
            exit(0);
        }
    }
}

static inline void run_tests(const struct rig_test *tests, size_t count, int argc, char **argv)
{
    for (size_t i = 0; i < count; i++)
        if (argc < 2 || strcmp(argv[1], tests[i].name) == 0)
            tests[i].run();
}
