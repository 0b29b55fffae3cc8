/* SPDX-License-Identifier: MIT */
/* The history process as a process: what it called stored is in the history, whatever was killed or stopped
 * meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "channel_support.h"
#include "postgres_support.h"
#include "server/config/config.h"
#include "server/execution.h"
#include "server/history/history.h"
#include "server/message.h"
#include "server/role.h"
#include "tap.h"

static struct server_config config;
static char directory[64];

/* The supervisor's, the executor's and the http process's ends. */
static struct {
    pid_t pid;
    struct channel *control, *executor, *http;
} history;

static struct channel *new_channel(int *ret_other)
{
    int ends[2];
    struct channel *channel = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
        channel_new(&ends[0], &channel, NULL) < 0)
        tap_bail("socketpair");
    *ret_other = ends[1];
    return channel;
}

static struct channel *connect_peer(enum server_role role)
{
    int other = -1;
    struct channel *channel = new_channel(&other);
    if (channel_send_fd(history.control, MESSAGE_PEER, role, other, NULL) < 0)
        tap_fail("peer");
    (void)close(other);
    return channel;
}

/* Waits for a message of this type; others are passed over. */
static bool expect_within(struct channel *channel, enum message_type type, struct message *ret,
                          int ms)
{
    uint64_t end = clock_now_ms() + (uint64_t)ms;
    while (clock_now_ms() < end) {
        *ret = (struct message){.fd = -1};
        int got = channel_wait(channel, (int)(end - clock_now_ms()), ret);
        if (got < 0)
            return false;
        if (got > 0 && ret->type == type)
            return true;
        if (got > 0 && ret->type == MESSAGE_WARNING)
            tap_diag("history: %s", ret->bytes);
        message_done(ret);
    }
    return false;
}

static bool expect(struct channel *channel, enum message_type type, struct message *ret)
{
    return expect_within(channel, type, ret, await_ms());
}

/* Whether the history process closes the channel. */
static bool is_cut_off(struct channel *channel)
{
    for (;;) {
        struct message message = {.fd = -1};
        int got = channel_wait(channel, await_ms(), &message);
        message_done(&message);
        if (got <= 0)
            return got < 0;
    }
}

static bool start_history(char *ret_error)
{
    int other = -1;
    struct message message;
    history.control = new_channel(&other);
    history.pid = fork();
    if (history.pid == 0) {
        struct channel *control = NULL;
        struct brig_error err = {0};
        (void)channel_new(&other, &control, NULL);
        (void)signal(SIGXFSZ, SIG_IGN); /* a limit on files stands for a full disk */
        int result = history_main(&config, control, &(struct role_fds){-1, -1}, &err);
        if (result < 0)
            (void)channel_send(control, MESSAGE_WARNING, 0, err.message, strlen(err.message), NULL);
        channel_free(control);
        _exit(result < 0 ? 1 : 0);
    }
    (void)close(other);
    if (ret_error && expect(history.control, MESSAGE_WARNING, &message)) {
        (void)snprintf(ret_error, BRIG_MESSAGE_MAX, "%s", message.bytes);
        message_done(&message);
        return false;
    }
    if (!expect(history.control, MESSAGE_READY, &message))
        return false;
    message_done(&message);
    history.executor = connect_peer(ROLE_EXECUTOR);
    history.http = connect_peer(ROLE_HTTP);
    return true;
}

static void leave_history(void)
{
    channel_free(take_ptr(&history.http));
    channel_free(take_ptr(&history.executor));
    channel_free(take_ptr(&history.control));
}

static void kill_history(void)
{
    (void)kill(history.pid, SIGKILL);
    (void)waitpid(history.pid, NULL, 0);
    leave_history();
}

static bool drain_history(void)
{
    int status = -1;
    (void)channel_send(history.control, MESSAGE_DRAIN, 0, NULL, 0, NULL);
    if (waitpid(history.pid, &status, 0) != history.pid)
        return false;
    leave_history();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- Rows ---- */

static void id_of(unsigned number, char id[EXECUTION_ID_LENGTH + 1])
{
    (void)snprintf(id, EXECUTION_ID_LENGTH + 1, "%08x-0000-4000-8000-000000000000", number);
}

static bool send_begin(unsigned number, uint64_t tag)
{
    char id[EXECUTION_ID_LENGTH + 1];
    autostr struct str bytes = {0};
    id_of(number, id);
    struct execution_request request = {.id = id,
                                        .request_id = "r",
                                        .client = "127.0.0.1",
                                        .domain = "",
                                        .language = "python",
                                        .code = {"print(1)", 8},
                                        .stdin_bytes = {"", 0}};
    return execution_request_encode(&request, &bytes, NULL) == 0 &&
           channel_send(history.executor, MESSAGE_BEGIN, tag, bytes.data, bytes.length, NULL) == 0;
}

static bool send_end(unsigned number, uint64_t tag)
{
    char id[EXECUTION_ID_LENGTH + 1];
    autostr struct str bytes = {0};
    id_of(number, id);
    struct execution_result result = {.id = id,
                                      .status = EXECUTION_OK,
                                      .output = {"secret output\n", 14},
                                      .error_output = {"", 0},
                                      .message = "",
                                      .started_ns = 1};
    return execution_result_encode(&result, &bytes, NULL) == 0 &&
           channel_send(history.executor, MESSAGE_END, tag, bytes.data, bytes.length, NULL) == 0;
}

static bool wait_stored(uint64_t tag)
{
    for (;;) {
        struct message message;
        if (!expect(history.executor, MESSAGE_STORED, &message))
            return false;
        uint64_t stored = message.tag;
        message_done(&message);
        if (stored >= tag)
            return true;
    }
}

/* The answer to a question, as text; "missing" and "failed: …" are such. */
static const char *ask(enum message_type type, const char *text)
{
    static char answer[1 << 20];
    struct message message = {.fd = -1};
    static uint64_t tag;
    (void)channel_send(history.http, type, ++tag, text, strlen(text), NULL);
    for (;;) {
        int got = channel_wait(history.http, await_ms(), &message);
        if (got <= 0)
            return "no answer";
        if (message.tag == tag && message.type != MESSAGE_STORE)
            break;
        message_done(&message);
    }
    (void)snprintf(answer, sizeof answer, "%s%s",
                   message.type == MESSAGE_MISSING  ? "missing"
                   : message.type == MESSAGE_FAILED ? "failed: "
                                                    : "",
                   message.bytes);
    message_done(&message);
    return answer;
}

static const char *get(unsigned number)
{
    char id[EXECUTION_ID_LENGTH + 1];
    id_of(number, id);
    return ask(MESSAGE_GET, id);
}

/* How many rows the history has of this status. */
static unsigned count_rows(const char *status)
{
    char query[256], cursor[128] = "";
    unsigned count = 0;
    for (;;) {
        (void)snprintf(query, sizeof query, "limit=500&status=%s%s%s", status,
                       cursor[0] ? "&cursor=" : "", cursor);
        const char *text = ask(MESSAGE_LIST, query);
        for (const char *at = text; (at = strstr(at, "\"id\":")); at++)
            count++;
        const char *next = strstr(text, "\"next\":\"");
        if (!next)
            return count;
        next += strlen("\"next\":\"");
        (void)snprintf(cursor, sizeof cursor, "%.*s", (int)strcspn(next, "\""), next);
    }
}

/* The database has all of them, soon: rows that were in the spool are on their way. */
static void tap_has_rows(unsigned wanted, const char *name)
{
    unsigned count = 0;
    (void)await((count = count_rows("ok")) >= wanted);
    tap_is_int(count, wanted, "%s", name);
    if (count != wanted)
        tap_diag("a list is answered with %.200s", ask(MESSAGE_LIST, "status=ok"));
}

/* ---- Tests ---- */

static void send_refusal(const char *id, uint64_t tag)
{
    autostr struct str bytes = {0};
    const struct execution_request refused = {.id = id,
                                              .request_id = "r",
                                              .client = "127.0.0.1",
                                              .domain = "",
                                              .language = "bash",
                                              .code = {"x", 1},
                                              .stdin_bytes = {"", 0}};
    (void)execution_request_encode(&refused, &bytes, NULL);
    (void)channel_send(history.executor, MESSAGE_BLOCKED, tag, bytes.data, bytes.length, NULL);
}

static void test_rows(void)
{
    struct message message;
    tap_ok(start_history(NULL), "it starts");
    tap_ok(channel_send(history.executor, MESSAGE_NEW_EXECUTOR, 1, NULL, 0, NULL) == 0,
           "a new executor");
    tap_ok(expect(history.http, MESSAGE_STORE, &message), "the http process is told of the store");
    message_done(&message);
    tap_ok(send_begin(1, 2) && wait_stored(2), "a beginning is stored");
    tap_has_str(get(1), "\"status\":\"running\"", "and can be read at once");
    tap_ok(send_end(1, 3) && wait_stored(3), "an end is stored");
    tap_has_str(get(1), "\"output\":\"secret output\\n\"", "and can be read");
    tap_is_str(get(77), "missing", "what is not there is missing");
    tap_has_str(ask(MESSAGE_LIST, "language=python"), "\"executions\":[{\"id\":\"00000001-",
                "a list is answered");
    tap_has_str(ask(MESSAGE_LIST, "status=what"), "failed: status: 'what' is not one of",
                "a wrong one refused");
    tap_has_str(ask(MESSAGE_GET, "../etc"), "failed: an id is a UUID", "as is a wrong id");
    tap_ok(send_begin(2, 4) && wait_stored(4), "another begins");
    channel_free(take_ptr(&history.executor));
    history.executor = connect_peer(ROLE_EXECUTOR);
    (void)channel_send(history.executor, MESSAGE_NEW_EXECUTOR, 1, NULL, 0, NULL);
    tap_ok(wait_stored(1), "the executor dies, and a new one comes");
    tap_has_str(get(2), "\"status\":\"lost\"", "its run is lost");
    autostr struct str bytes = {0};
    struct execution_event event = {"escape_attempt", "mount", SEVERITY_CRITICAL};
    struct execution_request refused = {.id = "00000003-0000-4000-8000-000000000000",
                                        .request_id = "r",
                                        .client = "c",
                                        .domain = "",
                                        .language = "bash",
                                        .code = {"mount", 5},
                                        .stdin_bytes = {"", 0},
                                        .events = &event,
                                        .event_count = 1};
    (void)execution_request_encode(&refused, &bytes, NULL);
    (void)channel_send(history.executor, MESSAGE_BLOCKED, 2, bytes.data, bytes.length, NULL);
    tap_has_str(get(3), "\"status\":\"blocked\"", "what was refused is a row");
    tap_has_str(get(3), "\"severity\":\"critical\"", "with its event");
    /* A http process in a stranger's hands knows ids. */
    send_refusal("00000001-0000-4000-8000-000000000000", 3);
    tap_has_str(get(1), "\"status\":\"ok\"", "a refusal with the id of a run changes nothing");
    send_refusal("", 4);
    tap_ok(!strstr(ask(MESSAGE_LIST, ""), "\"id\":\"\""), "and one without an id is no row");
    (void)channel_send(history.http, MESSAGE_EXECUTE, 0, NULL, 0, NULL);
    tap_ok(is_cut_off(history.http),
           "a http process that asks for what is not its business is cut off");
    channel_free(history.http);
    history.http = connect_peer(ROLE_HTTP);
    tap_has_str(get(1), "\"status\":\"ok\"", "the next one is served");
    (void)channel_send(history.executor, MESSAGE_END, 5, "nonsense", 8, NULL);
    tap_ok(wait_stored(5), "a row that is none does not come back for ever");
    tap_ok(drain_history(), "it ends when it is told to");
}

/* Killed again and again while rows come: those that were called stored are all there. */
static void test_killed(void)
{
    unsigned next = 1000, tag = 0;
    const int rounds = tap_rounds(3, 8);
    for (int round = 0; round < rounds; round++) {
        if (!start_history(NULL))
            tap_bail("start");
        for (int i = 0; i < 60; i++) {
            (void)send_begin(next, ++tag);
            (void)send_end(next++, ++tag);
        }
        if (!wait_stored(tag))
            tap_fail("stored");
        for (int i = 0; i < 20; i++)
            (void)send_begin(5000000 + next + (unsigned)i, ++tag); /* nobody was told of these */
        kill_history();
    }
    tap_ok(start_history(NULL), "killed %d times, it starts", rounds);
    unsigned missing = 0;
    for (unsigned i = 1000; i < next; i++)
        missing += !strstr(get(i), "\"status\":\"ok\"");
    tap_is_int(missing, 0, "of %u rows that were stored none is missing", next - 1000);
    tap_ok(drain_history(), "it ends");
}

/* Rows are stored in batches. */
static void test_gathered(void)
{
    const unsigned first = 700000, count = 40;
    unsigned missing = 0, tag = 0;
    tap_ok(start_history(NULL), "it starts");
    for (unsigned i = first; i < first + count; i++) {
        (void)send_begin(i, ++tag);
        missing += !strstr(get(i), "\"status\":\"running\"");
        (void)send_end(i, ++tag);
        missing += !strstr(get(i), "\"status\":\"ok\"");
    }
    tap_is_int(missing, 0, "a question is answered with what was said before, stored or not");
    (void)send_begin(first + count, ++tag);
    (void)send_end(first + count, ++tag);
    tap_ok(wait_stored(tag), "rows nobody asks for are stored");
    for (unsigned i = 0; i < 3 * HISTORY_BATCH_MAX; i++) {
        (void)send_begin(first + 1000 + i, ++tag);
        (void)send_end(first + 1000 + i, ++tag);
    }
    while (channel_wants_write(history.executor) && channel_flush(history.executor, NULL) == 0)
        (void)poll(NULL, 0, 1);
    tap_ok(wait_stored(tag), "so are more than fit into one batch");
    for (unsigned i = 0; i < 3 * HISTORY_BATCH_MAX; i++)
        missing += !strstr(get(first + 1000 + i), "\"status\":\"ok\"");
    tap_is_int(missing, 0, "and all are there");
    tap_ok(drain_history(), "it ends");
}

static void test_two(void)
{
    char error[BRIG_MESSAGE_MAX] = "";
    tap_ok(start_history(NULL), "one history process");
    typeof(history) first = history;
    memset(&history, 0, sizeof history);
    tap_ok(!start_history(error), "a second one on the same file is refused");
    tap_has_str(error, "in use by another brigd", "and says why");
    (void)waitpid(history.pid, NULL, 0);
    leave_history();
    history = first;
    tap_ok(drain_history(), "the first goes on and ends");
}

static void test_hashes(void)
{
    config.database.code = KEEP_HASH;
    config.database.output = KEEP_NOTHING;
    tap_ok(start_history(NULL), "with hashes for code and nothing of output");
    tap_ok(send_begin(40, 1) && send_end(40, 2) && wait_stored(2), "a row is stored");
    const char *text = get(40);
    tap_ok(!strstr(text, "print(1)") && !strstr(text, "secret output"), "without either");
    tap_has_str(text,
                "\"code_sha256\":"
                "\"d287bb7f9d15abdc5b6e98536263815744b6ef21c8f3c839fc434ca70d8efe99\"",
                "with the hash");
    tap_has_str(text, "\"output_bytes\":14", "and how much there was");
    tap_ok(drain_history(), "it ends");
    config.database.code = config.database.output = KEEP_FULL;
}

static void test_retention(void)
{
    config.database.retention_ms = 1;
    tap_ok(start_history(NULL), "with a short retention");
    tap_ok(await(strcmp(get(1), "missing") == 0), "old rows are forgotten");
    tap_ok(drain_history(), "it ends");
    config.database.retention_ms = 0;
}

static void test_none(void)
{
    config.database.store = STORE_NONE;
    tap_ok(start_history(NULL), "without a history");
    tap_ok(send_begin(50, 1) && wait_stored(1), "rows are taken and forgotten");
    tap_has_str(get(50), "failed: the server keeps no history", "questions are answered with that");
    tap_ok(drain_history(), "it ends");
    config.database.store = STORE_SQLITE;
}

/* What the confined process can still open, seen through /proc by who may look. */
static void test_confined(void)
{
    char path[64], text[4096];
    tap_ok(start_history(NULL), "it starts");
    (void)snprintf(path, sizeof path, "/proc/%d/status", history.pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[got < 0 ? 0 : got] = '\0';
    tap_has_str(text, "Seccomp:\t2", "its system calls are filtered");
    tap_has_str(text, "NoNewPrivs:\t1", "it gains no privileges");
    tap_has_str(text, "CapEff:\t0000000000000000", "and has no capability");
    tap_ok(drain_history(), "it ends");
}

static char outside[64];

static int attempt(int number)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/probe",
                   config.database.store == STORE_POSTGRES ? config.database.spool_dir : directory);
    switch (number) {
    case 0:
        return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    case 1:
        return (int)memfd_create("x", MFD_CLOEXEC);
    case 2:
        return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    case 3:
        return open(outside, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    case 4:
        return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    case 5:
        return execl("/bin/true", "true", (char *)NULL);
    default:
        return fork();
    }
}

/* Each in a process of its own, confined or not: 0 if it works. */
static int outcome(int number, bool confined)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (confined && confine_history(&config, NULL) < 0)
            _exit(2);
        _exit(attempt(number) < 0);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static void test_confine(void)
{
    static const char *const names[] = {"writing in its directory",
                                        "a memfd",
                                        "reading elsewhere",
                                        "writing elsewhere",
                                        "a socket",
                                        "running a program",
                                        "a new process"};
    (void)snprintf(outside, sizeof outside, "/tmp/test-history-outside-%d", (int)getpid());
    for (int i = 0; i < (int)ARRAY_LENGTH(names); i++) {
        tap_is_int(outcome(i, false), 0, "%s works for others", names[i]);
        (void)unlink(outside);
        tap_is_int(outcome(i, true), i == 0 ? 0 : 1, "%s %s for the history process", names[i],
                   i == 0 ? "works" : "does not work");
    }
    config.database.store = STORE_POSTGRES;
    config.database.dsn = "host=/tmp";
    (void)mkdir(config.database.spool_dir, 0700);
    tap_is_int(outcome(0, true), 0,
               "where the database is PostgreSQL, so does writing in the spool");
    tap_is_int(outcome(4, true), 0, "a socket works where the database is PostgreSQL");
    tap_is_int(outcome(3, true), 1, "writing elsewhere still does not");
    tap_is_int(outcome(5, true), 1, "nor running a program");
    config.database.store = STORE_SQLITE;
}

/* ---- PostgreSQL, stopped and started under load ---- */

static bool load(unsigned *next, unsigned *tag, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!send_begin(*next, ++*tag) || !send_end((*next)++, ++*tag) || !wait_stored(*tag))
            return false;
    return true;
}

/* Other programs of the user may have many descriptors on their way through sockets, of which the
 * kernel allows each user a number. */
static void test_descriptors_in_flight(void)
{
    char control[CMSG_SPACE(100 * sizeof(int))] = "";
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    unsigned next = 300000, tag = 0;
    int pair[2], sent = 0, fds[100];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        tap_bail("socketpair");
    for (size_t i = 0; i < 100; i++)
        fds[i] = STDERR_FILENO;
    *head = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fds)};
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    tap_ok(start_history(NULL) && load(&next, &tag, 160), "there are rows");
    for (int i = 0; i < 4; i++)
        sent += sendmsg(pair[0], &message, 0) == 1;
    tap_is_int(sent, 4, "many descriptors are on their way");
    tap_ok(strlen(ask(MESSAGE_LIST, "limit=500")) > MESSAGE_PIECE_MAX,
           "a long list, which is sent in pieces, is answered");
    (void)close(pair[0]);
    (void)close(pair[1]);
    kill_history();
}

static bool is_alive(void)
{
    struct message message;
    bool heard = channel_send(history.control, MESSAGE_PING, 0, NULL, 0, NULL) == 0 &&
                 expect(history.control, MESSAGE_PONG, &message);
    if (heard)
        message_done(&message);
    return heard;
}

static void tell_row(uint64_t tag)
{
    (void)channel_send(history.http, MESSAGE_ROW, tag, NULL, 0, NULL);
}

static void test_awaited(void)
{
    char id[EXECUTION_ID_LENGTH + 1];
    struct message message = {.fd = -1};
    id_of(950000, id);
    tap_ok(start_history(NULL) && send_begin(950000, 11) && wait_stored(11), "one runs");
    tell_row(11);
    tap_has_str(get(950000), "\"status\":\"running\"", "a row that is there is not waited for");
    tell_row(12);
    (void)channel_send(history.http, MESSAGE_GET, 777, id, strlen(id), NULL);
    for (int i = 0; i < 3; i++) /* it has read the question by then, most likely */
        tap_ok(is_alive(), "a process that waits for a row is alive");
    tap_ok(send_end(950000, 12), "the row of its end comes");
    while (message.tag != 777) {
        message_done(&message);
        if (channel_wait(history.http, await_ms(), &message) <= 0)
            tap_bail("no answer");
    }
    tap_has_str(message.bytes, "\"status\":\"ok\"", "and the question is answered with it");
    message_done(&message);
    tell_row(UINT64_MAX);
    tap_has_str(get(950000), "\"status\":\"ok\"", "a row that never comes is given up");
    kill_history();
}

/* Submits an execution with much input. */
static bool submit(size_t length, char ret_id[EXECUTION_ID_LENGTH + 1])
{
    autofree char *input = calloc(1, length);
    autostr struct str bytes = {0};
    struct message message = {.fd = -1};
    struct execution_request request = {.id = "",
                                        .request_id = "r",
                                        .client = "127.0.0.1",
                                        .domain = "",
                                        .language = "python",
                                        .code = {"print(1)", 8},
                                        .stdin_bytes = {input, length}};
    if (!input || execution_request_encode(&request, &bytes, NULL) < 0 ||
        channel_send(history.http, MESSAGE_SUBMIT, 1, bytes.data, bytes.length, NULL) < 0)
        return false;
    if (!await(channel_flush(history.http, NULL) == 0 && !channel_wants_write(history.http)) ||
        !expect(history.http, MESSAGE_QUEUED, &message))
        return false;
    (void)snprintf(ret_id, EXECUTION_ID_LENGTH + 1, "%s", message.bytes + 1);
    bool good = message.bytes[0] == VERDICT_GO;
    message_done(&message);
    return good;
}

/* More is on its way to the executor than a queue takes. */
static void test_slow_executor(void)
{
    enum { CLAIMS = 40, INPUT = 4000000 };
    char ids[CLAIMS][EXECUTION_ID_LENGTH + 1];
    int submitted = 0, claimed = 0;
    config.queue.max = config.queue.max_per_key = 2 * CLAIMS;
    config.queue.keep_ms = 600000;
    config.queue.keep_per_key_bytes = 1 << 30;
    tap_ok(start_history(NULL), "it starts");
    while (submitted < CLAIMS && submit(INPUT, ids[submitted]))
        submitted++;
    tap_is_int(submitted, CLAIMS, "large requests are queued");
    for (uint64_t i = 0; i < CLAIMS; i++)
        (void)channel_send(history.executor, MESSAGE_CLAIM, i, ids[i], EXECUTION_ID_LENGTH, NULL);
    tap_ok(is_alive() && is_alive(), "it goes on while the executor claims and does not read");
    for (struct message message;
         claimed < CLAIMS && expect(history.executor, MESSAGE_CLAIMED, &message);
         message_done(&message))
        claimed += message.tag == (uint64_t)claimed && message.bytes[0] == VERDICT_GO &&
                   message.length > INPUT;
    tap_is_int(claimed, CLAIMS, "and the executor gets all of them once it reads");
    kill_history();
}

static bool wait_status(const char *status)
{
    for (;;) {
        struct message message;
        if (!expect(history.http, MESSAGE_STORE, &message))
            return false;
        const struct message_store *store = (const void *)message.bytes;
        bool found = message.length == sizeof *store && strcmp(store->status, status) == 0;
        message_done(&message);
        if (found)
            return true;
    }
}

static bool wait_full(void)
{
    for (;;) {
        struct message message;
        if (!expect(history.http, MESSAGE_STORE, &message))
            return false;
        const struct message_store *store = (const void *)message.bytes;
        bool full = store->full, lost = store->dropped > 0;
        message_done(&message);
        if (full)
            return !lost;
    }
}

/* A spool with little room, before a database that is not there. */
static void test_bounds(void)
{
    unsigned next = 900000, tag = 0;
    config.database.store = STORE_POSTGRES;
    config.database.dsn = "host=/nonexistent user=nobody dbname=x";
    config.database.spool_max_bytes = 200000;
    tap_ok(start_history(NULL), "with a small spool and no database");
    tap_ok(load(&next, &tag, 20), "rows are stored");
    tap_ok(wait_status("unavailable"), "whole, while there is room");
    tap_ok(load(&next, &tag, 60), "more are stored");
    struct message message;
    bool thinned = false, full = false;
    for (int i = 0; i < 200 && !(thinned && full); i++) {
        if (!load(&next, &tag, 5))
            tap_fail("load");
        while (expect_within(history.control, MESSAGE_WARNING, &message, 1)) {
            thinned = thinned || strstr(message.bytes, "only hashes of code and output");
            full = full || strstr(message.bytes, "executions are refused");
            message_done(&message);
        }
    }
    tap_ok(thinned, "then without code and output, which is said");
    tap_ok(full, "then no more executions are taken, which is said");
    tap_ok(wait_full(), "the http process is told");
    tap_ok(load(&next, &tag, 5), "those that run are stored still");
    kill_history();
    config.database.spool_max_bytes = 1 << 30;
}

/* Whether the log has a line with these words. */
static bool is_said(const char *words)
{
    struct message message;
    bool said = false;
    while (!said && expect(history.control, MESSAGE_WARNING, &message)) {
        said = strstr(message.bytes, words) != NULL;
        message_done(&message);
    }
    return said;
}

/* start_history(), but returns before it is ready. */
static void start_and_listen(void)
{
    int other = -1;
    history.control = new_channel(&other);
    history.pid = fork();
    if (history.pid == 0) {
        struct channel *control = NULL;
        (void)channel_new(&other, &control, NULL);
        _exit(history_main(&config, control, &(struct role_fds){-1, -1}, NULL) < 0);
    }
    (void)close(other);
    history.executor = connect_peer(ROLE_EXECUTOR);
    history.http = connect_peer(ROLE_HTTP);
}

/* Files in the spool's directory that cannot be used. */
static void test_found(void)
{
    char path[160];
    config.database.store = STORE_POSTGRES;
    config.database.dsn = "host=/nonexistent user=nobody dbname=x";
    (void)snprintf(path, sizeof path, "%s/%020d.spool", config.database.spool_dir, 1);
    FILE *file = fopen(path, "we");
    (void)fputs("a record", file);
    (void)fclose(file);
    start_and_listen();
    tap_ok(is_said("8 bytes of brigd 0.1 in"), "damage in the spool of 0.1 is said");
    kill_history();
    (void)snprintf(path, sizeof path, "%s/%020d.spool.damaged", config.database.spool_dir, 1);
    tap_is_int(unlink(path), 0, "and kept");
    (void)snprintf(path, sizeof path, "%s/spool.sqlite", config.database.spool_dir);
    file = fopen(path, "we");
    (void)fputs("this is no database, and it is long enough to be read as one, surely\n", file);
    (void)fclose(file);
    start_and_listen();
    tap_ok(is_said("the spool was damaged; a new, empty one is used"), "a damaged spool is said");
    tap_ok(send_begin(810000, 1) && wait_stored(1), "and replaced");
    kill_history();
}

/* The file of a spool is overwritten while it is used. */
static void test_damaged(void)
{
    char path[160], noise[4096];
    unsigned next = 820000, tag = 0;
    (void)snprintf(path, sizeof path, "%s/spool.sqlite", config.database.spool_dir);
    tap_ok(start_history(NULL) && load(&next, &tag, 100), "rows are in the spool");
    tap_ok(drain_history(), "it ends");
    tap_ok(start_history(NULL), "it starts again");
    memset(noise, 0xa5, sizeof noise);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    for (int i = 4; i < 60; i++)
        (void)!pwrite(fd, noise, sizeof noise, i * (off_t)sizeof noise);
    (void)close(fd);
    tag = 0;
    tap_ok(load(&next, &tag, 100), "with damage in the middle, rows are stored");
    tap_ok(is_said("the spool was damaged; a new, empty one is used"),
           "in a new one, which is said");
    kill_history();
}

/* A disk that is full for a while: nothing is called stored that is not, and nothing is lost. */
static void test_full_disk(void)
{
    struct message message;
    struct rlimit before, none = {1, 1};
    config.database.store = STORE_POSTGRES;
    config.database.dsn = "host=/nonexistent user=nobody dbname=x";
    tap_ok(start_history(NULL), "before a database that is not there");
    tap_ok(send_begin(800000, 1) && wait_stored(1), "a row is stored");
    (void)prlimit(history.pid, RLIMIT_FSIZE, NULL, &before);
    none.rlim_max = before.rlim_max;
    tap_is_int(prlimit(history.pid, RLIMIT_FSIZE, &none, NULL), 0, "then the disk is full");
    tap_ok(send_begin(800001, 2) && send_begin(800002, 3), "others come");
    tap_ok(is_said("rows wait: SQLite cannot"), "which is said");
    tap_ok(!expect_within(history.executor, MESSAGE_STORED, &message, 1),
           "they are not called stored");
    tap_has_str(get(800000), "\"running\"", "questions are answered meanwhile, from the spool");
    tap_has_str(get(800009), "failed: ", "or fail");
    (void)prlimit(history.pid, RLIMIT_FSIZE, &before, NULL);
    tap_ok(wait_stored(3), "when there is room again they are stored");
    kill_history();
}

static void test_postgres(void)
{
    unsigned next = 1, tag = 0;
    const unsigned many = (unsigned)tap_rounds(40, 200);
    if (!postgres_make())
        return;
    config.database.store = STORE_POSTGRES;
    config.database.dsn = postgres.dsn;
    tap_ok(start_history(NULL), "it starts although PostgreSQL does not run");
    tap_ok(wait_status("unavailable"), "and says so");
    tap_ok(load(&next, &tag, many), "rows are stored all the same");
    tap_has_str(get(1), "\"status\":\"ok\"", "questions about them are answered");
    tap_has_str(get(999999), "failed: PostgreSQL cannot be reached", "others fail");
    tap_ok(postgres_start(), "PostgreSQL starts");
    tap_ok(wait_status("ok"), "the http process is told");
    tap_ok(load(&next, &tag, many), "rows are stored");
    tap_has_str(get(1), "\"status\":\"ok\"", "the first is there");
    tap_ok(postgres_stop("immediate"), "PostgreSQL crashes");
    tap_ok(load(&next, &tag, many), "rows are stored all the same");
    tap_ok(wait_status("unavailable"), "the http process is told");
    kill_history();
    tap_ok(start_history(NULL), "the history process is killed, and starts");
    tap_ok(load(&next, &tag, many), "rows are stored all the same");
    tap_ok(postgres_start(), "PostgreSQL starts again");
    tap_ok(wait_status("ok"), "the http process is told");
    tap_has_rows(next - 1, "no row is lost");

    tap_ok(postgres_stop("fast"), "PostgreSQL stops");
    tap_ok(load(&next, &tag, 50), "rows are stored all the same");
    tap_ok(drain_history(), "told to end, it does, with rows in its spool");
    tap_ok(postgres_start(), "PostgreSQL starts");
    tap_ok(start_history(NULL), "the history process too");
    tap_has_rows(next - 1, "and brings them");
    tap_ok(drain_history(), "it ends");
    tap_ok(postgres_stop("fast"), "PostgreSQL stops");
    postgres_remove();
}

int main(void)
{
    char path[96], spool[96];
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(directory, sizeof directory, "/tmp/test-history-XXXXXX");
    if (!mkdtemp(directory))
        tap_bail("no directory");
    (void)snprintf(path, sizeof path, "%s/history.sqlite", directory);
    (void)snprintf(spool, sizeof spool, "%s/spool", directory);
    config.database.path = path;
    config.database.spool_dir = spool;
    config.database.spool_max_bytes = 1 << 30;
    test_rows();
    test_descriptors_in_flight();
    test_gathered();
    test_killed();
    test_two();
    test_hashes();
    test_confined();
    test_confine();
    test_retention();
    test_none();
    test_awaited();
    test_slow_executor();
    test_postgres();
    test_bounds();
    test_full_disk();
    test_found();
    test_damaged();
    (void)snprintf(postgres.directory, sizeof postgres.directory, "%s", directory);
    postgres_remove();
    return tap_done();
}
