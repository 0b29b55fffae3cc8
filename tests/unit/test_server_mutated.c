/* SPDX-License-Identifier: MIT */
/* Messages with bytes changed, cut and added, to a real executor and a real history process: who sends them may be
 * in anybody's hands. Each is taken or ends its channel; neither process ends, and both go on to serve. */
#include "channel_support.h"
#include "executor_support.h"

#include <sys/stat.h>

#define MUTATIONS 400
#define BYTES_MAX 16384

static struct rig rig;

/* ---- Mutations; the same in every run ---- */

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint32_t any(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

static uint8_t odd_byte(void)
{
    static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff, '/', '.', '\'', '\n', '*'};
    return any(3) ? bytes[any(ARRAY_LENGTH(bytes))] : (uint8_t)any(256);
}

/* A letter among texts, so that what is said changes and its form does not. */
static size_t any_letter(const char *bytes, size_t length)
{
    for (int i = 0; i < 64; i++) {
        size_t at = any((uint32_t)length);
        if (bytes[at] >= 'a' && bytes[at] <= 'z')
            return at;
    }
    return 0;
}

static void mutate(const struct str *from, char bytes[BYTES_MAX], size_t *ret_length)
{
    size_t length = from->length < BYTES_MAX ? from->length : BYTES_MAX;
    memcpy(bytes, from->data, length);
    if (any(2)) {
        for (uint32_t i = any(4) + 1; i > 0; i--)
            bytes[any_letter(bytes, length)] = (char)odd_byte();
        *ret_length = length;
        return;
    }
    for (uint32_t i = any(4) + 1; i > 0 && length > 0; i--) {
        size_t at = any((uint32_t)length);
        switch (any(6)) {
        case 0: /* cut */
            length = at;
            break;
        case 1: /* one byte less, and all behind it moved */
            memmove(bytes + at, bytes + at + 1, length - at - 1);
            length--;
            break;
        case 2: /* a length or a count as large as there is */
            memset(bytes + at, 0xff, length - at < 8 ? length - at : 8);
            break;
        default:
            bytes[at] = (char)odd_byte();
        }
    }
    *ret_length = length;
}

/* ---- The executor ---- */

static bool is_alive(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void request_bytes(struct str *out)
{
    static const char *args[] = {"one", "two"}, *returns[] = {"*.txt"}, *allow[] = {"example.com"};
    static struct execution_pair env[] = {{"A", "b"}};
    static struct execution_file files[] = {{.name = "d/f", .content = {"text", 4}}};
    static struct execution_event events[] = {{"escape_attempt", "reads", SEVERITY_HIGH}};
    struct execution_request request = request_for("bash", "true");
    request.args = args;
    request.arg_count = 2;
    request.returns = returns;
    request.return_count = 1;
    request.allow = allow;
    request.allow_count = any(2);
    request.network = request.allow_count > 0;
    request.env = env;
    request.env_count = 1;
    request.files = files;
    request.file_count = 1;
    request.events = events;
    request.event_count = 1;
    request.timeout_ms = 5000;
    if (execution_request_encode(&request, out, NULL) < 0)
        tap_bail("a request");
}

/* Until the http process was cut off, or all of its runs have their results. */
static void settle(uint64_t first)
{
    static char sink[65536];
    uint64_t deadline = clock_now_ms() + (uint64_t)await_ms();
    for (uint64_t tag = first; tag <= rig.tag && clock_now_ms() < deadline;) {
        struct pollfd ready = {.fd = channel_fd(rig.http), .events = POLLIN};
        (void)pump(&rig);
        if (is_done(&rig, tag))
            tag++;
        else if (poll(&ready, 1, 100) > 0 && recv(ready.fd, sink, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
            break;
    }
    channel_free(rig.http);
    rig.http = connect_peer(&rig, ROLE_HTTP);
}

static void send_mutation(enum message_type type, const struct str *from)
{
    char bytes[BYTES_MAX];
    size_t length = 0;
    uint64_t tag = ++rig.tag;
    struct answer *answer = &rig.answers[tag % DONES_MAX];
    execution_result_done(&answer->result);
    str_done(&answer->out[0]);
    str_done(&answer->out[1]);
    *answer = (struct answer){.done = type != MESSAGE_EXECUTE};
    mutate(from, bytes, &length);
    (void)channel_send(rig.http, type, tag, bytes, length, NULL);
}

static void test_executor(void)
{
    size_t rows = rig.row_count;
    for (int i = 0; i < MUTATIONS; i++) {
        autostr struct str bytes = {0};
        uint64_t first = rig.tag + 1;
        request_bytes(&bytes);
        send_mutation(MESSAGE_EXECUTE, &bytes);
        if (i % 8 == 0) { /* an id and a domain, or what is none */
            autostr struct str id = {0};
            str_append(&id, "f47ac10b-58cc-4372-a567-0e02b2c3d4790123456789abcdef");
            send_mutation(MESSAGE_KILL, &id);
        }
        settle(first);
        if (!is_alive(rig.executor))
            tap_bail("the executor has ended at mutation %d", i);
    }
    tap_ok(is_alive(rig.executor), "%d mutations of a request end no executor", MUTATIONS);
    tap_ok(rig.row_count > rows + MUTATIONS / 10, "%zu rows: some were good enough to be run",
           rig.row_count - rows);
    is_output(run_code(&rig, "bash", "echo fine"), "fine\n", "which serves the next http process");
}

/* Types that there are, and some that there are not. */
static void test_types(void)
{
    for (unsigned type = 1; type < MESSAGE_TYPES_; type++) {
        if (type == MESSAGE_EXECUTE)
            continue;
        (void)channel_send(rig.http, (enum message_type)type, 1, "\xff\xff\xff\xff", 4, NULL);
        settle(rig.tag + 1);
    }
    tap_ok(is_alive(rig.executor), "no type of a message ends it");
    is_output(run_code(&rig, "bash", "echo fine"), "fine\n", "nor keeps it from its work");
}

/* ---- The history process ---- */

static struct {
    pid_t pid;
    struct channel *control, *executor, *http;
} history;

static struct channel *pair_with(int *ret_other)
{
    int ends[2];
    struct channel *channel = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        channel_new(&ends[0], &channel, NULL) < 0)
        tap_bail("no channel");
    *ret_other = ends[1];
    return channel;
}

static void give_history(enum server_role role, struct channel **channel)
{
    int other = -1;
    channel_free(*channel);
    *channel = pair_with(&other);
    (void)channel_send_fd(history.control, MESSAGE_PEER, role, other, NULL);
    (void)close(other);
}

static void start_history(struct server_config *config)
{
    int other = -1;
    automessage struct message ready = {.fd = -1};
    history.control = pair_with(&other);
    (void)fflush(stdout);
    history.pid = fork();
    if (history.pid == 0) {
        struct channel *control = NULL;
        struct brig_error err = {0};
        (void)channel_new(&other, &control, NULL);
        _exit(history_main(config, control, &(struct role_fds){-1, -1}, &err) < 0);
    }
    (void)close(other);
    if (channel_wait(history.control, await_ms(), &ready) <= 0)
        tap_bail("no history");
    give_history(ROLE_EXECUTOR, &history.executor);
    give_history(ROLE_HTTP, &history.http);
}

static void empty(struct channel *channel)
{
    for (int got = 1; got == 1;) {
        automessage struct message message = {.fd = -1};
        got = channel_receive(channel, &message, NULL);
    }
}

static void result_bytes(struct str *out)
{
    static struct execution_event events[] = {{"network_denied", "example.org", SEVERITY_LOW}};
    static struct execution_file files[] = {{.name = "d/f", .content = {"text", 4}}};
    const struct execution_result result = {.id = "f47ac10b-58cc-4372-a567-0e02b2c3d479",
                                            .status = EXECUTION_OK,
                                            .output = {"out", 3},
                                            .error_output = {"err", 3},
                                            .message = "",
                                            .events = events,
                                            .event_count = 1,
                                            .files = files,
                                            .file_count = 1,
                                            .started_ns = 1};
    if (execution_result_encode(&result, out, NULL) < 0)
        tap_bail("a result");
}

/* Whether it still answers a question. */
static bool answers(void)
{
    give_history(ROLE_HTTP, &history.http);
    (void)channel_send(history.http, MESSAGE_LIST, 77, "limit=3", 7, NULL);
    uint64_t deadline = clock_now_ms() + (uint64_t)await_ms();
    while (clock_now_ms() < deadline) {
        automessage struct message message = {.fd = -1};
        if (channel_wait(history.http, await_ms(), &message) < 0)
            return false;
        if (message.type == MESSAGE_ROWS && message.tag == 77)
            return true;
    }
    return false;
}

static void send_to_history(int number)
{
    static const char question[] = "language=python&status=ok&since=1700000000&limit=20&domain=x";
    autostr struct str request = {0}, result = {0}, query = {0}, id = {0};
    char bytes[BYTES_MAX];
    size_t length = 0;
    request_bytes(&request);
    result_bytes(&result);
    str_append(&query, question);
    str_append(&id, "f47ac10b-58cc-4372-a567-0e02b2c3d4790123456789abcdef");
    const struct {
        struct channel *to;
        enum message_type type;
        const struct str *from;
    } rows[] = {
        {history.executor, MESSAGE_BEGIN, &request},
        {history.executor, MESSAGE_END, &result},
        {history.executor, MESSAGE_BLOCKED, &request},
        {history.http, MESSAGE_LIST, &query},
        {history.http, MESSAGE_GET, &id},
        {history.executor, MESSAGE_END, &request},
        {history.executor, MESSAGE_NEW_EXECUTOR, &query},
    };
    size_t which = any(ARRAY_LENGTH(rows));
    mutate(rows[which].from, bytes, &length);
    (void)channel_send(rows[which].to, rows[which].type, (uint64_t)number, bytes, length, NULL);
}

static void test_history(void)
{
    char path[96], spool[96];
    struct server_config *config = &rig.config;
    (void)snprintf(path, sizeof path, "%s/history/history.sqlite", rig.state_dir);
    (void)snprintf(spool, sizeof spool, "%s/history/spool", rig.state_dir);
    config->database.store = STORE_SQLITE;
    config->database.path = path;
    config->database.spool_dir = spool;
    config->database.spool_max_bytes = (uint64_t)16 << 20;
    start_history(config);
    for (int i = 0; i < 10 * MUTATIONS; i++) {
        send_to_history(i);
        empty(history.control);
        if (i % 50 == 0) {
            empty(history.executor);
            empty(history.http);
            give_history(ROLE_EXECUTOR, &history.executor);
            give_history(ROLE_HTTP, &history.http);
        }
    }
    tap_ok(answers(), "%d mutations of rows and questions end no history", 10 * MUTATIONS);
    tap_ok(is_alive(history.pid), "which lives");
    for (unsigned type = 1; type < MESSAGE_TYPES_; type++) {
        (void)channel_send(history.http, (enum message_type)type, 1, "\xff\xff", 2, NULL);
        (void)channel_send(history.executor, (enum message_type)type, 1, "\xff\xff", 2, NULL);
        give_history(ROLE_EXECUTOR, &history.executor);
        give_history(ROLE_HTTP, &history.http);
    }
    tap_ok(answers() && is_alive(history.pid), "nor does any type of a message");
    int status = -1;
    (void)channel_send(history.control, MESSAGE_DRAIN, 0, NULL, 0, NULL);
    tap_ok(waitpid(history.pid, &status, 0) == history.pid && WIFEXITED(status) &&
               WEXITSTATUS(status) == 0,
           "and it ends well");
    channel_free(history.control);
    channel_free(history.executor);
    channel_free(history.http);
}

static void remove_history(void)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/history", rig.state_dir);
    autodir DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    (void)rmdir(path);
}

int main(int argc, char **argv)
{
    static const struct rig_test tests[] = {
        {"executor", test_executor}, {"types", test_types}, {"history", test_history}};
    (void)signal(SIGPIPE, SIG_IGN);
    rig_config(&rig);
    rig_start(&rig);
    run_tests(tests, ARRAY_LENGTH(tests), argc, argv);
    tap_is_int(rig_drain(&rig), 0, "the executor ends well");
    remove_history();
    rig_done(&rig);
    return tap_done();
}
