/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * The http process is the only process of brigd that reads data from clients. It is one thread with
 * one loop, in which libmicrohttpd handles HTTP and calls back when a request is complete. A
 * request that waits for another process is suspended. The process runs as nobody if root started
 * brigd. Before it accepts the first client it confines itself (confine.c): it cannot open files,
 * start programs or make sockets. It holds API keys as hashes, the private key of the certificate,
 * and the current requests.
 *
 * It trusts the supervisor. The executor checks again everything it is sent, so a compromised http
 * process can do no more than the attacker's requests could. Messages of the executor and the
 * history process are checked here, because they contain data written by untrusted code. If one of
 * them ends, waiting clients get an error; if the http process ends, runs continue and their rows
 * are stored. */
#include "server/http/http.h"
#include "server/http/sandbox.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "server/config/config.h"
#include "server/http/async.h"
#include "server/http/tls.h"
#include "server/http/upgrade.h"
#include "server/listen.h"
#include "server/role.h"

#define OTHER_FILES 256 /* fds besides connections: channels, messages */
#define TLS_PATIENCE_MS 10000
#define EVENTS_AT_ONCE 64
/* Messages of one process per turn, so that it does not delay the others. */
#define MESSAGES_AT_ONCE 256
#define DRAIN_MARGIN_MS 2000

/* ---- Messages of the executor and the history process ---- */

bool http_send(struct http *http, enum server_role to, enum message_type type, uint64_t tag,
               const void *bytes, size_t length)
{
    struct channel *peer = http->peers[to]; /* which may be waiting for us, so do not wait for it */
    return peer && channel_has_room(peer, length) &&
           channel_send(peer, type, tag, bytes, length, NULL) == 0;
}

static void take_runtimes(struct http *http, const struct message *message)
{
    bool first = http->runtimes.length == 0;
    str_done(&http->runtimes);
    str_append_bytes(&http->runtimes, message->bytes, message->length);
    /* Now all routes can be answered, including GET /runtimes. */
    if (first)
        (void)channel_send(http->control, MESSAGE_READY, 0, NULL, 0, NULL);
}

static void take_store(struct http *http, const struct message *message)
{
    struct message_store *store = &http->store;
    if (message->length != sizeof *store)
        return;
    memcpy(store, message->bytes, sizeof *store);
    store->type[MESSAGE_WORD_MAX - 1] = store->status[MESSAGE_WORD_MAX - 1] = '\0';
    store->problem[MESSAGE_TEXT_MAX - 1] = '\0';
}

bool http_history_is_full(const struct http *http)
{
    return http->store.full || (http->journal && journal_is_full(http->journal));
}

static void take_gauges(struct http *http, const struct message *message)
{
    if (message->length != sizeof http->gauges)
        return;
    memcpy(&http->gauges, message->bytes, sizeof http->gauges);
    http->knows_executor = true;
}

static void pass_row(struct http *http, const struct message *message)
{
    (void)http_send(http, ROLE_HISTORY, MESSAGE_ROW, message->tag, NULL, 0);
}

static const struct permitted {
    enum server_role from;
    enum message_type type;
    void (*take)(struct http *http, const struct message *message);
} permitted[] = {
    {ROLE_EXECUTOR, MESSAGE_BEGUN, execute_begun},
    {ROLE_EXECUTOR, MESSAGE_OUTPUT, execute_output},
    {ROLE_EXECUTOR, MESSAGE_DONE, execute_done},
    {ROLE_EXECUTOR, MESSAGE_STAGE, execute_stage},
    {ROLE_EXECUTOR, MESSAGE_KILLED, pages_answer},
    {ROLE_EXECUTOR, MESSAGE_RUNTIMES, take_runtimes},
    {ROLE_EXECUTOR, MESSAGE_GAUGES, take_gauges},
    {ROLE_EXECUTOR, MESSAGE_ROW, pass_row},
    {ROLE_EXECUTOR, MESSAGE_PEEKED, async_peeked},
    {ROLE_EXECUTOR, MESSAGE_REPEATED, async_repeated},
    {ROLE_EXECUTOR, MESSAGE_SANDBOX_PIECE, sandbox_piece},
    {ROLE_EXECUTOR, MESSAGE_SANDBOX_ANSWER, sandbox_answered},
    {ROLE_HISTORY, MESSAGE_ROWS, pages_answer},
    {ROLE_HISTORY, MESSAGE_MISSING, pages_answer},
    {ROLE_HISTORY, MESSAGE_FAILED, pages_answer},
    {ROLE_HISTORY, MESSAGE_STORE, take_store},
    {ROLE_HISTORY, MESSAGE_QUEUED, async_queued},
    {ROLE_HISTORY, MESSAGE_NOTED, async_noted},
    {ROLE_HISTORY, MESSAGE_PENDING, async_pending},
    {ROLE_HISTORY, MESSAGE_OUTCOME, async_outcome},
    {ROLE_HISTORY, MESSAGE_ENDED, async_ended},
};

/* Returns false if this process may not send the message. */
static bool take(struct http *http, enum server_role role, const struct message *message)
{
    for (size_t i = 0; i < ARRAY_LENGTH(permitted); i++) {
        if (permitted[i].from == role && permitted[i].type == message->type) {
            permitted[i].take(http, message);
            return true;
        }
    }
    return false;
}

static void lose_peer(struct http *http, enum server_role role)
{
    if (!http->peers[role])
        return;
    (void)epoll_ctl(http->epoll, EPOLL_CTL_DEL, channel_fd(http->peers[role]), NULL);
    channel_free(take_ptr(&http->peers[role]));
    http->writing[role] = false;
    if (role == ROLE_EXECUTOR) {
        http->gauges = (struct message_gauges){0};
        http->knows_executor = false;
    }
    tickets_lost(http, role);
}

static void hear_peer(struct http *http, enum server_role role)
{
    for (int i = 0; i < MESSAGES_AT_ONCE && http->peers[role]; i++) {
        automessage struct message message = {.fd = -1};
        int got = channel_receive(http->peers[role], &message, NULL);
        if (got == 0)
            break;
        if (got < 0 || !take(http, role, &message))
            lose_peer(http, role);
    }
    if (role == ROLE_EXECUTOR)
        execute_start_waiting(http);
}

/* ---- Messages of the supervisor ---- */

static int take_peer(struct http *http, struct message *message, struct brig_error *err)
{
    enum server_role role = (enum server_role)message->tag;
    if (message->fd < 0 || (role != ROLE_EXECUTOR && role != ROLE_HISTORY))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the supervisor sent a socket for an unknown process");
    lose_peer(http, role);
    int result = channel_new(&message->fd, &http->peers[role], err);
    if (result == 0)
        result = loop_add(http, channel_fd(http->peers[role]),
                          role == ROLE_EXECUTOR ? LOOP_EXECUTOR : LOOP_HISTORY, err);
    if (result == 0 && role == ROLE_HISTORY)
        async_history_new(http);
    if (result == 0)
        execute_start_waiting(http);
    return result;
}

static int take_tls(struct http *http, struct message *message, struct brig_error *err)
{
    struct brig_error local = {0};
    int result = tls_replace(message->bytes, message->length, &local);
    explicit_bzero(message->bytes, message->length);
    http->tls = http->tls || result == 0;
    if (result == 0)
        return 0;
    if (!http->tls) /* at the start there is no earlier certificate */
        return brig_fail(err, result, 0, "%s", local.message);
    (void)brig_wrap(&local, result, "the certificate stays as it was");
    return channel_send(http->control, MESSAGE_WARNING, 0, local.message, strlen(local.message),
                        err);
}

bool http_refuses(const struct http *http)
{
    return http->draining && clock_now_us() >= http->refuse_from_us;
}

/* Connections are accepted until the end, so that clients and probes get 503 at once. */
static void drain(struct http *http)
{
    const struct server_config *config = http->config;
    if (http->draining)
        return;
    http->draining = true;
    http->refuse_from_us = clock_now_us() + config->server.drain_delay_ms * 1000;
    /* The executor ends runs that take longer, and reports them. */
    http->drain_until_ms = http->now_ms + config->server.drain_delay_ms +
                           config->server.drain_timeout_ms + DRAIN_MARGIN_MS;
    execute_tick(http);
}

/* Returns whether all requests have their answers that came before requests were refused. */
static bool is_drained(const struct http *http)
{
    const struct exchange *exchange;
    if (!http_refuses(http))
        return false;
    LIST_FOREACH(exchange, &http->exchanges, link)
    if (exchange->began_us < http->refuse_from_us)
        return false;
    return true;
}

/* What the http process derives from the parts of the configuration that SIGHUP changes. */
static int derive(struct http *http, struct brig_error *err)
{
    const typeof(http->config->security) *security = &http->config->security;
    struct rate *rate = NULL;
    int result = clients_init(&http->clients, &security->trusted_proxies, err);
    if (result == 0)
        result = rate_new(security->rate_limit_rps, security->rate_limit_burst, &rate, err);
    if (result < 0)
        return result;
    rate_free(http->rate);
    http->rate = rate;
    http->checks_host = security->allowed_keys.count == 0 && security->trusted_proxies.count == 0 &&
                        listen_is_tcp(http->listener);
    return 0;
}

static int take_config(struct http *http, const struct message *message, struct brig_error *err)
{
    int result = config_reload(http->config, message->bytes, message->length, err);
    if (result == 0)
        result = derive(http, err);
    execute_keys_changed(http);
    return result;
}

/* Negative if the supervisor is gone. */
static int hear_control(struct http *http, struct brig_error *err)
{
    for (;;) {
        automessage struct message message = {.fd = -1};
        int got = channel_receive(http->control, &message, err);
        if (got <= 0)
            return got;
        int result = 0;
        if (message.type == MESSAGE_PEER)
            result = take_peer(http, &message, err);
        else if (message.type == MESSAGE_TLS)
            result = take_tls(http, &message, err);
        else if (message.type == MESSAGE_CONFIG)
            result = take_config(http, &message, err);
        else if (message.type == MESSAGE_LOG && message.fd >= 0)
            access_log_replace(&http->log, &message.fd);
        else if (message.type == MESSAGE_DRAIN)
            drain(http);
        else if (message.type == MESSAGE_PING)
            result = channel_send(http->control, MESSAGE_PONG, message.tag, NULL, 0, err);
        if (result < 0)
            return result;
    }
}

/* ---- The loop ---- */

int loop_add(struct http *http, int fd, enum loop_source source, struct brig_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = source};
    if (epoll_ctl(http->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for a socket");
    return 0;
}

static void take_end(struct http *http, uint64_t tag, uint32_t events)
{
    const struct ticket *ticket = ticket_find(http, tag);
    if (!ticket || !ticket->exchange || !ticket->exchange->suspended)
        return;
    if (events & (EPOLLHUP | EPOLLERR))
        exchange_gone(ticket->exchange);
    else
        exchange_half_closed(ticket->exchange);
}

static int take_event(struct http *http, const struct epoll_event *event, struct brig_error *err)
{
    switch (event->data.u64) {
    case LOOP_HTTP:
        return 0; /* MHD_run() is called in each turn */
    case LOOP_CONTROL:
        return hear_control(http, err);
    case LOOP_EXECUTOR:
        hear_peer(http, ROLE_EXECUTOR);
        return 0;
    case LOOP_HISTORY:
        hear_peer(http, ROLE_HISTORY);
        return 0;
    default:
        if (event->data.u64 & LOOP_UPGRADE) {
            upgrade_ready(http, event->data.u64 & ~LOOP_UPGRADE, event->events);
            return 0;
        }
        take_end(http, event->data.u64 - LOOP_END, event->events);
        return 0;
    }
}

static void flush_channel(struct http *http, struct channel *channel, enum loop_source source,
                          bool *writing)
{
    if (!channel)
        return;
    if (*writing)
        (void)channel_flush(channel, NULL); /* reading will notice that the peer is gone */
    if (channel_wants_write(channel) == *writing)
        return;
    *writing = !*writing;
    struct epoll_event event = {.events = EPOLLIN | (*writing ? EPOLLOUT : 0), .data.u64 = source};
    (void)epoll_ctl(http->epoll, EPOLL_CTL_MOD, channel_fd(channel), &event);
}

static void flush(struct http *http)
{
    flush_channel(http, http->control, LOOP_CONTROL, &http->writing[ROLES_]);
    flush_channel(http, http->peers[ROLE_EXECUTOR], LOOP_EXECUTOR, &http->writing[ROLE_EXECUTOR]);
    flush_channel(http, http->peers[ROLE_HISTORY], LOOP_HISTORY, &http->writing[ROLE_HISTORY]);
    access_log_flush(&http->log);
}

static void tick(struct http *http)
{
    if (http->now_ms < http->next_tick_ms)
        return;
    http->next_tick_ms = http->now_ms + HTTP_TICK_MS;
    execute_tick(http);
    execute_start_waiting(http);
    async_tick(http);
    daemon_tick(http);
    access_log_tick(&http->log, http->now_ms);
}

/* Without connections no tick is needed. */
static int patience(const struct http *http)
{
    MHD_UNSIGNED_LONG_LONG library_ms = 0;
    bool limited = MHD_get_timeout(http->daemon, &library_ms) == MHD_YES;
    bool ticking = !LIST_EMPTY(&http->connections) || http->draining || http->log.skipped > 0;
    uint64_t tick_ms = http->next_tick_ms > http->now_ms ? http->next_tick_ms - http->now_ms : 0;
    if (!limited && !ticking)
        return -1;
    if (!ticking)
        return library_ms < 60000 ? (int)library_ms : 60000;
    return (int)(limited && library_ms < tick_ms ? library_ms : tick_ms);
}

static int turn(struct http *http, struct brig_error *err)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(http->epoll, events, EVENTS_AT_ONCE, patience(http));
    if (count < 0 && errno != EINTR)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait");
    http->now_ms = clock_now_ms();
    for (int i = 0; i < count; i++) {
        int result = take_event(http, &events[i], err);
        if (result < 0)
            return result;
    }
    (void)MHD_run(http->daemon);
    tick(http);
    flush(http);
    return 0;
}

/* Runs until it has drained, or the supervisor is gone. */
static int loop_run(struct http *http, struct brig_error *err)
{
    for (;;) {
        int result = turn(http, err);
        if (result < 0)
            return result;
        if (is_drained(http) || (http->draining && http->now_ms >= http->drain_until_ms))
            return 0;
    }
}

/* ---- Start and end ---- */

/* Raises the limit on fds for the connections, up to the hard limit. If that is too low, there are
 * fewer connections. Returns the limit. */
static uint64_t raise_files(struct http *http)
{
    rlim_t wanted = (rlim_t)http->config->server.max_connections + OTHER_FILES;
    rlim_t now = fds_raise_limit(wanted, NULL);
    uint64_t files = now < wanted ? now : wanted;
    http->connection_most = files - (files / 2 < OTHER_FILES ? files / 2 : OTHER_FILES);
    return files;
}

/* Jansson reads its hash seed from a file, which cannot be opened after confinement. */
static int seed_hashes(struct brig_error *err)
{
    size_t seed = 0;
    while (seed == 0)
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "no random bytes");
    json_object_seed(seed);
    return 0;
}

static int set_up_parts(struct http *http, struct brig_error *err)
{
    int result = derive(http, err);
    if (result == 0)
        result = access_log_init(&http->log, http->config->server.access_log, err);
    if (result == 0)
        result = seed_hashes(err);
    return result;
}

/* The certificate is the supervisor's first message. */
static int wait_for_tls(struct http *http, struct brig_error *err)
{
    uint64_t until_ms = clock_now_ms() + TLS_PATIENCE_MS;
    while (http->config->tls.enabled && !http->tls) {
        struct epoll_event event;
        if (clock_now_ms() >= until_ms)
            return brig_fail(err, BRIG_E_SETUP, 0, "no certificate came from the supervisor");
        (void)epoll_wait(http->epoll, &event, 1, HTTP_TICK_MS);
        int result = hear_control(http, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int set_up(struct http *http, struct brig_error *err)
{
    uint64_t open_files = raise_files(http);
    http->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (http->epoll < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make an epoll");
    int result = set_up_parts(http, err);
    if (result == 0)
        result = loop_add(http, channel_fd(http->control), LOOP_CONTROL, err);
    if (result == 0)
        result = wait_for_tls(http, err);
    if (result == 0)
        result = daemon_start(http, err);
    if (result < 0)
        return result;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "libmicrohttpd has no epoll");
    result = loop_add(http, info->epoll_fd, LOOP_HTTP, err);
    return result < 0 ? result : confine_http(open_files, err);
}

static void tear_down(struct http *http)
{
    daemon_stop(http);
    access_log_flush(&http->log);
    if (http->daemon)
        return; /* suspended connections still use these */
    for (int i = 0; i < ROLES_; i++)
        channel_free(take_ptr(&http->peers[i]));
    while (!TAILQ_EMPTY(&http->tickets))
        ticket_free(http, TAILQ_FIRST(&http->tickets));
    access_log_close(&http->log);
    rate_free(http->rate);
    tls_done();
    str_done(&http->runtimes);
    journal_unmap((struct journal_page *)(uintptr_t)http->journal);
    own_close(&http->epoll);
    free(http);
}

#define LARGE_BYTES (128 << 10)

int http_main(struct server_config *config, struct channel *control, const struct role_fds *fds,
              struct brig_error *err)
{
    /* Large buffers are given back when they are freed: libc would keep them once it has seen one. */
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return brig_fail_nomem(err);
    http->config = config;
    http->control = control;
    http->listener = fds->listener;
    http->journal = fds->journal >= 0 ? journal_map(fds->journal, false) : NULL;
    http->epoll = -1;
    http->log.fd = -1;
    http->now_ms = clock_now_ms();
    TAILQ_INIT(&http->tickets);
    int result = set_up(http, err);
    if (result == 0)
        result = loop_run(http, err);
    tear_down(http);
    return result;
}
