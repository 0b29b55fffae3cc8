/* SPDX-License-Identifier: MIT */
/* The http process with peers that are slow, gone or hostile: a real http process in a process of its own, with
 * this test as its supervisor, its executor and its history, and as its client. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <brig/brig.h>

#include "await.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "channel_support.h"
#include "server/config/config.h"
#include "server/message.h"
#include "server/role.h"
#include "tap.h"

#define PLACES 4
#define ID "f47ac10b-58cc-4372-a567-0e02b2c3d479"
#define CODE "{\"language\":\"python\",\"code\":\"print(1)\"}"

static struct server_config config;
static struct sockaddr_in where = {.sin_family = AF_INET};
static struct channel *control, *peers[ROLES_];
static pid_t http;

/* ---- The http process and its peers ---- */

static void give_peer(enum server_role role)
{
    int ends[2];
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    channel_free(peers[role]);
    (void)channel_new(&ends[0], &peers[role], NULL);
    (void)channel_send_fd(control, MESSAGE_PEER, role, ends[1], NULL);
    (void)close(ends[1]);
}

static void send_gauges(uint64_t inherited)
{
    struct message_gauges gauges = {
        .active = inherited, .inherited = inherited, .places = 2 * PLACES};
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_GAUGES, 0, &gauges, sizeof gauges, NULL);
}

static void give_executor(void)
{
    give_peer(ROLE_EXECUTOR);
    send_gauges(0);
}

static void take_peer_away(enum server_role role)
{
    channel_free(take_ptr(&peers[role]));
}

static void start_http(void)
{
    int ends[2];
    socklen_t length = sizeof where;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)bind(listener, (struct sockaddr *)&where, sizeof where);
    (void)listen(listener, 64);
    (void)getsockname(listener, (struct sockaddr *)&where, &length);
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    http = fork();
    if (http == 0) {
        struct brig_error err = {0};
        struct channel *mine = NULL;
        (void)close(ends[0]);
        (void)channel_new(&ends[1], &mine, &err);
        int result = http_main(&config, mine, &(struct role_fds){listener, -1}, &err);
        if (result < 0 && err.message[0])
            tap_diag("the http process: %s", err.message);
        _exit(result < 0);
    }
    (void)close(ends[1]);
    (void)close(listener);
    (void)channel_new(&ends[0], &control, NULL);
}

static bool hear(struct channel *from, enum message_type type, struct message *ret)
{
    for (;;) {
        int got = channel_wait(from, await_ms(), ret);
        if (got <= 0 || ret->type == type)
            return got > 0;
        message_done(ret);
    }
}

/* ---- A client ---- */

static int ask(const char *method, const char *path, const char *body)
{
    autostr struct str text = {0};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)connect(client, (struct sockaddr *)&where, sizeof where);
    str_appendf(&text,
                "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                method, path, strlen(body), body);
    (void)!write(client, text.data, text.length);
    return client;
}

/* All of the answer, for the caller to free. */
static char *answer(int client)
{
    struct str text = {0};
    char piece[65536];
    ssize_t got;
    while (await_readable(client) && (got = read(client, piece, sizeof piece)) > 0)
        str_append_bytes(&text, piece, (size_t)got);
    (void)close(client);
    str_append_bytes(&text, "", 0);
    return text.data;
}

static void answer_has(int client, const char *wanted, const char *name)
{
    autofree char *text = answer(client);
    if (!tap_ok(strstr(text, wanted), "%s", name))
        tap_diag("%.600s", text);
}

static uint64_t begin(const char *path, int *ret_client)
{
    automessage struct message message = {.fd = -1};
    *ret_client = ask("POST", path, CODE);
    if (!hear(peers[ROLE_EXECUTOR], MESSAGE_EXECUTE, &message))
        return 0;
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_BEGUN, message.tag, ID, strlen(ID), NULL);
    return message.tag;
}

/* What the http process has had no room for yet. */
static void flush_executor(void)
{
    struct pollfd room = {.fd = channel_fd(peers[ROLE_EXECUTOR]), .events = POLLOUT};
    while (channel_wants_write(peers[ROLE_EXECUTOR]) && poll(&room, 1, await_ms()) > 0)
        (void)channel_flush(peers[ROLE_EXECUTOR], NULL);
}

static void send_done(uint64_t tag)
{
    struct execution_result result = {.id = ID,
                                      .status = EXECUTION_OK,
                                      .output = {"fine", 4},
                                      .error_output = {"", 0},
                                      .message = ""};
    autostr struct str packed = {0};
    if (execution_result_encode(&result, &packed, NULL) < 0)
        tap_fail("a result is packed");
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_DONE, tag, packed.data, packed.length, NULL);
    flush_executor();
}

/* ---- Tests ---- */

static void works(const char *name)
{
    int client;
    uint64_t tag = begin("/execute", &client);
    send_done(tag);
    answer_has(client, "\"output\":\"fine\"", name);
}

static void without_peers(void)
{
    answer_has(ask("GET", "/health", ""), "503 ", "without an executor it is not well");
    answer_has(ask("GET", "/executions", ""), "HISTORY_UNAVAILABLE", "nor is there a history");
    answer_has(ask("GET", "/runtimes", ""), "503 ", "nor are there runtimes");
    int waiting = ask("POST", "/execute", CODE);
    automessage struct message message = {.fd = -1};
    give_executor();
    give_peer(ROLE_HISTORY);
    tap_ok(hear(peers[ROLE_EXECUTOR], MESSAGE_EXECUTE, &message),
           "what came before the executor waits for it");
    send_done(message.tag);
    answer_has(waiting, "\"output\":\"fine\"", "and is answered");
    answer_has(ask("GET", "/health", ""), "200 OK", "then all is well");
    automessage struct message ready = {.fd = -1};
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_RUNTIMES, 0, "{}", 2, NULL);
    tap_ok(hear(control, MESSAGE_READY, &ready), "it is ready when it knows what can be run");
    answer_has(ask("GET", "/runtimes", ""), "200 OK", "and says that");
}

static void row_on_its_way(void)
{
    automessage struct message message = {.fd = -1};
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_ROW, 7, NULL, 0, NULL);
    tap_ok(hear(peers[ROLE_HISTORY], MESSAGE_ROW, &message) && message.tag == 7,
           "the history process is told of a row on its way");
}

static void lost_executor(void)
{
    int client, streaming;
    (void)begin("/execute", &client);
    uint64_t tag = begin("/execute/stream", &streaming);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_OUTPUT, tag, "\1some", 5, NULL);
    int kill = ask("DELETE", "/executions/f47ac10b-58cc-4372-a567-0e02b2c3d479", "");
    automessage struct message message = {.fd = -1};
    (void)hear(peers[ROLE_EXECUTOR], MESSAGE_KILL, &message);
    take_peer_away(ROLE_EXECUTOR);
    answer_has(client, "EXECUTION_LOST", "a run is lost with its executor");
    autofree char *text = answer(streaming);
    tap_ok(strstr(text, "data: some\n") && strstr(text, "event: error\ndata: {") &&
               strstr(text, "EXECUTION_LOST"),
           "a stream keeps what came, and ends with an error");
    answer_has(kill, "EXECUTION_LOST", "who wanted to end it is told");
    give_executor();
    works("the next executor is used");
}

static void hostile_executor(void)
{
    int client;
    uint64_t tag = begin("/execute", &client);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_DONE, tag + 1000, "x", 1, NULL);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_OUTPUT, tag + 1000, "\1x", 2, NULL);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_OUTPUT, tag, "", 0, NULL);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_OUTPUT, tag, "\1x", 2, NULL);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_KILLED, tag, "\1", 1, NULL);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_GAUGES, 0, "x", 1, NULL);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_DONE, tag, "nonsense", 8, NULL);
    answer_has(client, "\"INTERNAL\"", "a result that is none is an error of the server");
    works("and nothing else");
    tag = begin("/execute", &client);
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_ROWS, tag, "{}", 2, NULL);
    answer_has(client, "EXECUTION_LOST", "a message that is not its own ends the channel");
    give_executor();
    works("until there is another executor");
    char junk[8] = {0};
    int raw = channel_fd(peers[ROLE_EXECUTOR]);
    (void)!send(raw, junk, sizeof junk, MSG_NOSIGNAL);
    struct pollfd gone = {.fd = raw, .events = POLLIN};
    tap_ok(poll(&gone, 1, await_ms()) == 1 && gone.revents & POLLHUP,
           "as do bytes that are no message");
    give_executor();
    works("and again there is another");
}

/* More than the executor may send: bounded, and said at the end. */
static void flooding_executor(void)
{
    int client;
    static char piece[32768];
    uint64_t tag = begin("/execute/stream", &client);
    memset(piece, 'x', sizeof piece);
    piece[0] = 1;
    for (int i = 0; i < 2000; i++) { /* 64 MB that nobody reads */
        (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_OUTPUT, tag, piece, sizeof piece, NULL);
        flush_executor();
    }
    send_done(tag);
    autofree char *text = answer(client);
    tap_ok(strstr(text, "event: done") && strstr(text, "\"output\":true"),
           "a flood is cut, and said to be");
    tap_ok(strlen(text) < (size_t)16 << 20, "and is not handed on");
    works("others are served");
}

static bool health_has(const char *part)
{
    autofree char *text = answer(ask("GET", "/health", ""));
    return text && strstr(text, part);
}

/* Whether the http process has sent nothing, after it has dealt with all that came before this question. */
static bool is_quiet(struct channel *from)
{
    struct pollfd heard = {.fd = channel_fd(from), .events = POLLIN};
    return health_has("\"status\"") && poll(&heard, 1, 0) == 0;
}

/* One that has said all it has to say. */
static void half_closing_client(void)
{
    static const char old[] = "POST /execute HTTP/1.0\r\nContent-Type: application/json\r\n"
                              "Content-Length: 39\r\n\r\n" CODE;
    automessage struct message message = {.fd = -1};
    int client;
    uint64_t tag = begin("/execute", &client);
    (void)shutdown(client, SHUT_WR);
    tap_ok(is_quiet(peers[ROLE_EXECUTOR]), "a client that closes its side has its run still");
    send_done(tag);
    answer_has(client, "\"output\":\"fine\"", "and is answered");
    tag = begin("/execute/stream", &client);
    (void)shutdown(client, SHUT_WR);
    tap_ok(is_quiet(peers[ROLE_EXECUTOR]), "so has one with a stream");
    (void)channel_send(peers[ROLE_EXECUTOR], MESSAGE_OUTPUT, tag, "\1some", 5, NULL);
    tap_ok(is_quiet(peers[ROLE_EXECUTOR]), "when output comes, too");
    send_done(tag);
    autofree char *text = answer(client);
    tap_ok(strstr(text, "data: some\n") && strstr(text, "event: done"), "and reads it to its end");
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)connect(client, (struct sockaddr *)&where, sizeof where);
    (void)!write(client, old, sizeof old - 1);
    (void)shutdown(client, SHUT_WR);
    tap_ok(hear(peers[ROLE_EXECUTOR], MESSAGE_EXECUTE, &message), "HTTP/1.0");
    tap_ok(is_quiet(peers[ROLE_EXECUTOR]), "has its run as well");
    send_done(message.tag);
    autofree char *plain = answer(client);
    tap_ok(strstr(plain, "\"output\":\"fine\"") && !strstr(plain, "100 Continue"),
           "and hears nothing it would not understand");
    tag = begin("/execute", &client);
    (void)shutdown(client, SHUT_WR);
    (void)close(client);
    message_done(&message);
    tap_ok(hear(peers[ROLE_EXECUTOR], MESSAGE_CANCEL, &message) && message.tag == tag,
           "who then leaves has it ended");
    send_done(tag);
}

static void leaving_client(void)
{
    int client;
    uint64_t tag = begin("/execute", &client);
    automessage struct message message = {.fd = -1};
    (void)close(client);
    tap_ok(hear(peers[ROLE_EXECUTOR], MESSAGE_CANCEL, &message) && message.tag == tag,
           "a client that leaves has its run ended");
    send_done(tag);
    message_done(&message);
    tag = begin("/execute/stream", &client);
    (void)close(client);
    tap_ok(hear(peers[ROLE_EXECUTOR], MESSAGE_CANCEL, &message) && message.tag == tag,
           "that of a stream too");
    send_done(tag);
    works("others are served");
}

/* What an earlier http process has begun takes places still. */
static void inherited_runs(void)
{
    automessage struct message message = {.fd = -1};
    give_peer(ROLE_EXECUTOR);
    int client = ask("POST", "/execute", CODE);
    tap_ok(await(health_has("\"queued\":1")) && is_quiet(peers[ROLE_EXECUTOR]),
           "nothing begins before it is known what runs");
    send_gauges(PLACES);
    tap_ok(await(health_has("\"active\":4,\"queued\":1")), "all places are taken");
    tap_ok(is_quiet(peers[ROLE_EXECUTOR]), "and nothing begins then either");
    send_gauges(PLACES - 1);
    tap_ok(hear(peers[ROLE_EXECUTOR], MESSAGE_EXECUTE, &message), "a place becomes free");
    send_done(message.tag);
    answer_has(client, "\"output\":\"fine\"", "and is taken");
    send_gauges(0);
}

static void history(void)
{
    automessage struct message message = {.fd = -1};
    int client = ask("GET", "/executions?status=ok&limit=3", "");
    tap_ok(hear(peers[ROLE_HISTORY], MESSAGE_LIST, &message) &&
               strcmp(message.bytes, "status=ok&limit=3") == 0,
           "the history process is asked for rows");
    (void)channel_send(peers[ROLE_HISTORY], MESSAGE_ROWS, message.tag, "{\"rows\":7}", 10, NULL);
    answer_has(client, "{\"rows\":7}", "which are the answer");
    message_done(&message);
    client = ask("GET", "/executions/f47ac10b-58cc-4372-a567-0e02b2c3d479", "");
    (void)hear(peers[ROLE_HISTORY], MESSAGE_GET, &message);
    (void)channel_send(peers[ROLE_HISTORY], MESSAGE_MISSING, message.tag, "", 0, NULL);
    answer_has(client, "NOT_FOUND", "what is missing is not found");
    message_done(&message);
    client = ask("GET", "/executions", "");
    (void)hear(peers[ROLE_HISTORY], MESSAGE_LIST, &message);
    (void)channel_send(peers[ROLE_HISTORY], MESSAGE_FAILED, message.tag, "it \"sleeps\"", 11, NULL);
    answer_has(client, "it \\\"sleeps\\\"", "a failure is told");
    message_done(&message);
    client = ask("GET", "/executions", "");
    (void)hear(peers[ROLE_HISTORY], MESSAGE_LIST, &message);
    take_peer_away(ROLE_HISTORY);
    answer_has(client, "HISTORY_UNAVAILABLE", "so is the history process's death");
    give_peer(ROLE_HISTORY);
    message_done(&message);
    answer_has(ask("POST", "/execute", "{\"language\":\"python\",\"code\":\"/etc/shadow\"}"),
               "ESCAPE_ATTEMPT", "an attempt to escape is refused");
    tap_ok(hear(peers[ROLE_EXECUTOR], MESSAGE_BLOCKED, &message), "and recorded");
}

static void drains(void)
{
    int clients[PLACES], status = -1;
    uint64_t tags[PLACES];
    for (int i = 0; i < PLACES; i++)
        tags[i] = begin("/execute", &clients[i]);
    int queued = ask("POST", "/execute", CODE);
    tap_ok(await(health_has("\"queued\":1")), "all places are taken, and one waits");
    (void)channel_send(control, MESSAGE_DRAIN, 0, NULL, 0, NULL);
    answer_has(queued, "503 ", "a request that waits is refused when the http process drains");
    tap_is_int(waitpid(http, &status, WNOHANG), 0, "while something runs it does not end");
    for (int i = 0; i < PLACES; i++) {
        send_done(tags[i]);
        answer_has(clients[i], "\"output\":\"fine\"", "what ran is answered");
    }
    tap_ok(waitpid(http, &status, 0) == http && WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "then it ends");
}

int main(void)
{
    extern char **environ;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setenv("HOME", "/nonexistent", 1);
    if (config_defaults((const char *const *)environ, &config, NULL) < 0 ||
        config_parse("test", "", 0, &config, NULL) < 0)
        tap_fail("there are defaults");
    config.server.access_log = "off";
    config.sandbox.max_concurrent = PLACES;
    config.security.rate_limit_rps = 0;
    start_http();
    without_peers();
    works("a run");
    row_on_its_way();
    lost_executor();
    hostile_executor();
    flooding_executor();
    half_closing_client();
    leaving_client();
    inherited_runs();
    history();
    drains();
    channel_free(control);
    return tap_done();
}
