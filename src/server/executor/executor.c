/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * The executor is the only process of brigd that can start and end jails; it runs as the user that
 * started brigd. It is one thread with one loop over the jobs of libbrig, the pipes with their
 * output, and the channels to the supervisor, the http process and the history process. A request
 * from the http process may come from an attacker: it is decoded with limits, checked against the
 * configuration again, and answered with exactly one result. If the http process dies and is
 * replaced, runs continue, and their rows reach the history process. Rows that the history process
 * has not confirmed are in the journal (journal.h), from which they are sent again to the next
 * history process, also by the next executor. If the executor dies, every jail's
 * init sees its socket close and ends the jail; processes that survive are found by the next
 * executor in the instance file. */
#include "server/executor/executor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "jail/cgroup/cgroup.h"
#include "server/config/config.h"
#include "server/executor/callback.h"
#include "server/executor/capacity.h"
#include "server/executor/images.h"
#include "server/role.h"

#define EVENTS_MAX 64
#define MESSAGES_AT_ONCE 16
#define HEARINGS_MAX 64 /* times so many */
#define SWEEP_MS (UINT64_C(5) * 60 * 1000)
#define GAUGES_MS 100
#define HISTORY_PATIENCE_MS 3000        /* after the last run, for rows and results */
#define HTTP_EASY ((size_t)2 << 20)     /* output that was paused goes on */
#define RESULT_BYTES ((size_t)12 << 20) /* of a run with files and output */
#define RESULTS_BYTES_MAX ((size_t)1 << 30)
/* The http process takes no executions from JOURNAL_BYTES_FULL on. One that does was taken over. */
#define JOURNAL_BYTES_WRONG (2 * JOURNAL_BYTES_FULL)
#define MEMORY_MS 100
#define PERCENT_MS 1000

/* ---- event sources ---- */

int executor_watch(const struct executor *executor, struct executor_source *source, uint32_t events,
                   struct brig_error *err)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(executor->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch a run");
    return 0;
}

void executor_unwatch(const struct executor *executor, const struct executor_source *source)
{
    if (source->fd >= 0)
        (void)epoll_ctl(executor->epoll, EPOLL_CTL_DEL, source->fd, NULL);
}

/* ---- peers ---- */

static struct executor_peer *supervisor_of(struct executor *executor)
{
    return &executor->peers[ROLE_EXECUTOR];
}

static void lose_peer(struct executor_peer *peer)
{
    struct executor *executor = peer->executor;
    if (!peer->channel)
        return;
    executor_unwatch(executor, &peer->source);
    if (peer == supervisor_of(executor))
        executor->supervisor_gone = true; /* the channel belongs to the caller of executor_main() */
    else
        channel_free(peer->channel);
    peer->channel = NULL;
    peer->armed = 0;
    if (peer == &executor->peers[ROLE_HTTP])
        executor_runs_resume(executor);
}

/* Requests of the http process wait while its answers do. */
static bool may_hear(const struct executor_peer *peer)
{
    return peer != &peer->executor->peers[ROLE_HTTP] || !channel_is_busy(peer->channel);
}

static void arm_peer(struct executor_peer *peer)
{
    if (!peer->channel)
        return;
    uint32_t wanted = (may_hear(peer) ? (uint32_t)EPOLLIN : 0) |
                      (channel_wants_write(peer->channel) ? (uint32_t)EPOLLOUT : 0);
    if (wanted == peer->armed)
        return;
    peer->armed = wanted;
    struct epoll_event event = {.events = wanted, .data.ptr = &peer->source};
    (void)epoll_ctl(peer->executor->epoll, EPOLL_CTL_MOD, peer->source.fd, &event);
}

/* A process that is there, but with which this one cannot go on: the supervisor starts it anew. */
static void replace_peer(struct executor_peer *peer, const char *why)
{
    struct executor *executor = peer->executor;
    const struct executor_peer *supervisor = supervisor_of(executor);
    enum server_role role = (enum server_role)(peer - executor->peers);
    char line[BRIG_MESSAGE_MAX];
    (void)snprintf(line, sizeof line, "the %s is started again: %s", server_role_name(role), why);
    if (supervisor->channel && peer != supervisor)
        (void)channel_send(supervisor->channel, MESSAGE_REPLACE, role, line, strlen(line), NULL);
    lose_peer(peer);
}

static void tell(struct executor_peer *peer, enum message_type type, uint64_t tag,
                 const void *bytes, size_t length)
{
    struct brig_error err = {0};
    int result = peer->channel ? channel_send(peer->channel, type, tag, bytes, length, &err) : 0;
    if (result == BRIG_E_SYSTEM)
        lose_peer(peer);
    else if (result < 0)
        replace_peer(peer, err.message);
}

void executor_tell_http(struct executor *executor, uint64_t http, enum message_type type,
                        uint64_t tag, const void *bytes, size_t length)
{
    if (http == executor->http_processes)
        tell(&executor->peers[ROLE_HTTP], type, tag, bytes, length);
}

bool executor_tell_history(struct executor *executor, enum message_type type, uint64_t tag,
                           const void *bytes, size_t length)
{
    struct executor_peer *peer = &executor->peers[ROLE_HISTORY];
    tell(peer, type, tag, bytes, length);
    return peer->channel != NULL;
}

bool executor_http_is_full(const struct executor *executor)
{
    return channel_is_busy(executor->peers[ROLE_HTTP].channel);
}

void executor_warn(struct executor *executor, const char *text)
{
    tell(supervisor_of(executor), MESSAGE_WARNING, 0, text, strlen(text));
}

void executor_send_rows(struct executor *executor)
{
    struct executor_peer *history = &executor->peers[ROLE_HISTORY];
    uint64_t last = journal_last(&executor->journal);
    struct brig_error err = {0};
    int result = history->channel ? journal_send(&executor->journal, history->channel, &err) : 0;
    if (result == BRIG_E_SYSTEM)
        lose_peer(history);
    else if (result < 0)
        replace_peer(history, err.message);
    if (!history->channel || !channel_wants_write(history->channel) ||
        journal_is_empty(&executor->journal) || last == executor->told_row)
        return;
    executor->told_row = last;
    executor_tell_http(executor, executor->http_processes, MESSAGE_ROW, last, NULL, 0);
}

size_t executor_language(const struct executor *executor, const struct runtime *runtime)
{
    return runtime ? (size_t)(runtime - executor->config->runtimes) : RUNTIMES_MAX;
}

/* ---- messages of the http process ---- */

/* The executor chooses the id: a compromised http process could choose the id of a row in the
 * history. */
static int name_run(struct execution_request *request, struct brig_error *err)
{
    char id[EXECUTION_ID_LENGTH + 1];
    execution_id_make(id);
    request->id = arena_strdup(&request->arena, id);
    return request->id ? 0 : brig_fail_nomem(err);
}

static int take_execute(struct executor *executor, const struct message *message,
                        struct brig_error *err)
{
    struct execution_request request;
    if (journal_bytes(&executor->journal) > JOURNAL_BYTES_WRONG)
        return brig_fail(err, BRIG_E_INVALID, 0, "it begins executions while the journal is full");
    int result = execution_request_decode(message->bytes, message->length, &request, err);
    if (result < 0)
        return result;
    if ((result = name_run(&request, err)) < 0) {
        execution_request_done(&request);
        return result;
    }
    request.queued = false; /* only the history process has a queue */
    if (*request.idempotency_key) {
        executor_queue_reserve(executor, &request, message->tag);
        return 0;
    }
    executor_tell_http(executor, executor->http_processes, MESSAGE_BEGUN, message->tag, request.id,
                       EXECUTION_ID_LENGTH);
    executor_run_begin(executor, &request, message->tag, executor->http_processes);
    return 0;
}

/* The http process chose the id, as it has answered with it; the history takes it only if it is
 * new. */
static int take_blocked(struct executor *executor, const struct message *message,
                        struct brig_error *err)
{
    struct execution_request request;
    int result = execution_request_decode(message->bytes, message->length, &request, err);
    if (result < 0)
        return result;
    size_t language =
        executor_language(executor, config_find_runtime(executor->config, request.language));
    if (execution_id_is_valid(request.id))
        executor_note_blocked(executor, &request, language);
    execution_request_done(&request);
    return 0;
}

static int take_cancel(struct executor *executor, const struct message *message,
                       struct brig_error *err)
{
    (void)err;
    for (struct run *run = executor->runs; run; run = run->next)
        if (run->tag == message->tag && run->http == executor->http_processes) {
            executor_run_cancel(run, RUN_CANCELLED);
            break;
        }
    return 0;
}

static int take_stored(struct executor *executor, const struct message *message,
                       struct brig_error *err)
{
    (void)err;
    journal_stored(&executor->journal, message->tag);
    executor_queue_stored(executor, message->tag);
    return 0;
}

/* ---- messages of the supervisor ---- */

static void peer_ready(void *owner, uint32_t events);

static int take_peer(struct executor *executor, const struct message *message,
                     struct brig_error *err)
{
    if (message->fd < 0 || (message->tag != ROLE_HTTP && message->tag != ROLE_HISTORY))
        return brig_fail(err, BRIG_E_INVALID, 0, "the supervisor sent an invalid socket");
    struct executor_peer *peer = &executor->peers[message->tag];
    int fd = message->fd;
    lose_peer(peer);
    int result = channel_new(&fd, &peer->channel, err);
    if (result < 0)
        return result;
    executor->told_row = 0;
    peer->source = (struct executor_source){
        .ready = peer_ready, .owner = peer, .fd = channel_fd(peer->channel)};
    if ((result = executor_watch(executor, &peer->source, EPOLLIN, err)) < 0)
        return result;
    peer->armed = EPOLLIN;
    if (message->tag == ROLE_HISTORY) {
        journal_again(&executor->journal);
        executor_queue_renew(executor);
        executor_callbacks_forget(executor);
        return 0;
    }
    /* Many runs may end at one time. */
    channel_add_room(peer->channel, executor->run_most * RESULT_BYTES < RESULTS_BYTES_MAX
                                        ? executor->run_most * RESULT_BYTES
                                        : RESULTS_BYTES_MAX);
    executor->http_processes++;
    executor->inherited_count = executor->run_count;
    executor->gauges_due_ms = 0; /* a http process starts nothing before it has the gauges */
    executor->gauges_sent = (struct message_gauges){.active = UINT64_MAX};
    executor_tell_runtimes(executor, true);
    return 0;
}

static int take_drain(struct executor *executor, const struct message *message,
                      struct brig_error *err)
{
    (void)message;
    (void)err;
    executor->draining = true;
    executor->drain_ms = clock_now_ms() + executor->config->server.drain_timeout_ms;
    return 0;
}

static int take_config(struct executor *executor, const struct message *message,
                       struct brig_error *err)
{
    int result = config_reload(executor->config, message->bytes, message->length, err);
    executor_pools_renew(executor);
    executor_waiting_renew(executor);
    executor_versions_ask(executor);
    executor_tell_runtimes(executor, false);
    return result;
}

static int take_ping(struct executor *executor, const struct message *message,
                     struct brig_error *err)
{
    return channel_send(supervisor_of(executor)->channel, MESSAGE_PONG, message->tag, NULL, 0, err);
}

/* ---- permitted messages ---- */

/* Which process may send what. Any other message ends the channel. */
static const struct {
    enum server_role from; /* ROLE_EXECUTOR: the supervisor */
    enum message_type type;
    int (*take)(struct executor *executor, const struct message *message, struct brig_error *err);
} permitted[] = {
    {ROLE_EXECUTOR, MESSAGE_PEER, take_peer},
    {ROLE_EXECUTOR, MESSAGE_DRAIN, take_drain},
    {ROLE_EXECUTOR, MESSAGE_PING, take_ping},
    {ROLE_EXECUTOR, MESSAGE_CONFIG, take_config},
    {ROLE_HTTP, MESSAGE_EXECUTE, take_execute},
    {ROLE_HTTP, MESSAGE_CANCEL, take_cancel},
    {ROLE_HTTP, MESSAGE_BLOCKED, take_blocked},
    {ROLE_HTTP, MESSAGE_KILL, executor_queue_take_kill},
    {ROLE_HTTP, MESSAGE_PEEK, executor_queue_take_peek},
    {ROLE_HISTORY, MESSAGE_STORED, take_stored},
    {ROLE_HISTORY, MESSAGE_WAITING, executor_queue_take_waiting},
    {ROLE_HISTORY, MESSAGE_CLAIMED, executor_queue_take_claimed},
    {ROLE_HISTORY, MESSAGE_CALL, executor_callback_take},
    {ROLE_HTTP, MESSAGE_SANDBOX, executor_sandbox_asked},
    {ROLE_HTTP, MESSAGE_SANDBOX_LEAVE, executor_sandbox_left},
    {ROLE_HTTP, MESSAGE_INPUT, executor_run_take_input},
    {ROLE_HTTP, MESSAGE_SIGNAL, executor_run_take_signal},
    {ROLE_HTTP, MESSAGE_TAKEN, executor_run_take_taken},
};

static int take_message(struct executor *executor, enum server_role from, struct message *message,
                        struct brig_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(permitted); i++) {
        if (permitted[i].from != from || permitted[i].type != message->type)
            continue;
        int result = permitted[i].take(executor, message, err);
        if (message->type == MESSAGE_PEER)
            message->fd = -1; /* channel_new() has taken or closed it */
        return result;
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "the %s may not send message %d",
                     from == ROLE_EXECUTOR ? "supervisor" : server_role_name(from),
                     (int)message->type);
}

/* Returns whether there may be more. */
static bool receive(struct executor_peer *peer)
{
    struct executor *executor = peer->executor;
    enum server_role from = (enum server_role)(peer - executor->peers);
    for (int i = 0; i < MESSAGES_AT_ONCE && peer->channel && may_hear(peer); i++) {
        automessage struct message message = {.fd = -1};
        struct brig_error err = {0};
        int result = channel_receive(peer->channel, &message, &err);
        if (result == 0)
            return false;
        bool gone = result == BRIG_E_SYSTEM;
        if (result > 0)
            result = take_message(executor, from, &message, &err);
        if (result >= 0)
            continue;
        if (gone)
            lose_peer(peer);
        else
            replace_peer(peer, err.message);
    }
    return peer->channel != NULL && may_hear(peer);
}

void executor_hear_history(struct executor *executor)
{
    for (int i = 0; i < HEARINGS_MAX && receive(&executor->peers[ROLE_HISTORY]); i++)
        continue;
}

static void peer_ready(void *owner, uint32_t events)
{
    struct executor_peer *peer = owner;
    /* After EPOLLHUP only the failure of the flush ends a channel from which nothing is read now. */
    if (peer->channel && events & ~(uint32_t)EPOLLIN && channel_flush(peer->channel, NULL) < 0)
        lose_peer(peer);
    if (peer->channel && events & ~(uint32_t)EPOLLOUT)
        (void)receive(peer);
}

/* ---- the clock ---- */

/* Looks at the free memory at first, while there are runs, and until there is enough. */
static void count_places(struct executor *executor, uint64_t now)
{
    bool full = executor->gauges.places == executor->run_most;
    if (now < executor->memory_due_ms ||
        (full && executor->run_count == 0 && executor->memory_due_ms > 0))
        return;
    executor->memory_due_ms = now + MEMORY_MS;
    executor->gauges.places =
        capacity_places(executor->run_count, executor->run_most, capacity_free_memory(),
                        executor->config->sandbox.memory_reserve_bytes);
    if (now >= executor->percent_due_ms) {
        executor->gauges.memory_percent = capacity_memory_percent();
        executor->percent_due_ms = now + PERCENT_MS;
    }
}

/* From what the http process has. It gets no others while it does not read. */
static bool gauges_differ(const struct executor *executor)
{
    const struct channel *http = executor->peers[ROLE_HTTP].channel;
    return http && !channel_wants_write(http) &&
           memcmp(&executor->gauges, &executor->gauges_sent, sizeof executor->gauges) != 0;
}

static void tell_gauges(struct executor *executor, uint64_t now)
{
    count_places(executor, now);
    executor->gauges.active = executor->run_count;
    executor->gauges.inherited = executor->inherited_count;
    executor->gauges.waiting = executor->queue.count + executor->queue.claim_count;
    if (now < executor->gauges_due_ms || !gauges_differ(executor))
        return;
    executor_tell_http(executor, executor->http_processes, MESSAGE_GAUGES, 0, &executor->gauges,
                       sizeof executor->gauges);
    executor->gauges_sent = executor->gauges;
    executor->gauges_due_ms = now + GAUGES_MS;
}

static void sweep(struct executor *executor, uint64_t now)
{
    size_t ended = executor_instance_sweep(&executor->instance);
    executor->sweep_due_ms = now + SWEEP_MS;
    if (ended > 0) {
        char text[96];
        (void)snprintf(text, sizeof text, "ended %zu jails of an earlier executor", ended);
        executor_warn(executor, text);
    }
    executor_versions_ask(executor);
    executor_tell_runtimes(executor, false);
}

/* Returns true when nothing is left to do. Runs that do not finish in time are ended; then the
 * executor waits a little for the history process and until the http process has the results. */
static bool is_drained(struct executor *executor, uint64_t now)
{
    if (!executor->draining)
        return false;
    if (executor->run_count > 0) {
        executor->rows_ms = 0;
        for (struct run *run = executor->runs; run && now >= executor->drain_ms; run = run->next)
            executor_run_cancel(run, RUN_CANCELLED);
        return false;
    }
    if (!executor_sandboxes_drain(executor, now < executor->drain_ms))
        return false;
    const struct channel *http = executor->peers[ROLE_HTTP].channel;
    bool idle = journal_is_empty(&executor->journal) && !executor->queue.claims;
    bool told = !http || !channel_wants_write(http);
    if (told && (idle || !executor->peers[ROLE_HISTORY].channel))
        return true;
    if (executor->rows_ms == 0)
        executor->rows_ms = now + HISTORY_PATIENCE_MS;
    return now >= executor->rows_ms;
}

static int timeout_ms(const struct executor *executor, uint64_t now)
{
    uint64_t due = executor->sweep_due_ms;
    if (gauges_differ(executor) && executor->gauges_due_ms < due)
        due = executor->gauges_due_ms;
    if (executor->gauges.places < executor->run_most && executor->memory_due_ms < due)
        due = executor->memory_due_ms;
    if (executor_queue_due_ms(executor) < due)
        due = executor_queue_due_ms(executor);
    if (executor_pools_due_ms(executor, now) < due)
        due = executor_pools_due_ms(executor, now);
    if (executor_sandboxes_due_ms(executor) < due)
        due = executor_sandboxes_due_ms(executor);
    if (executor->draining && now + GAUGES_MS < due)
        due = now + GAUGES_MS;
    return due <= now ? 0 : (int)(due - now);
}

/* After each round: sends rows to the history process, and resumes output that waited for the http
 * process. */
static void settle(struct executor *executor, uint64_t now)
{
    const struct executor_peer *http = &executor->peers[ROLE_HTTP];
    executor_pools_settle(executor, now);
    executor_frames_settle(executor, now);
    executor_runs_clear(executor, false);
    executor_sandboxes_settle(executor, now);
    executor_runs_start_held(executor);
    executor_send_rows(executor);
    executor_queue_settle(executor, now);
    if (executor->paused_count > 0 && http->channel && channel_queued(http->channel) < HTTP_EASY)
        executor_runs_resume(executor);
    tell_gauges(executor, now);
    if (now >= executor->sweep_due_ms)
        sweep(executor, now);
    for (int i = 0; i < ROLES_; i++)
        arm_peer(&executor->peers[i]);
}

static int loop(struct executor *executor, struct brig_error *err)
{
    struct epoll_event events[EVENTS_MAX];
    while (!executor->supervisor_gone) {
        uint64_t now = clock_now_ms();
        settle(executor, now);
        if (is_drained(executor, now))
            return 0;
        int count = epoll_wait(executor->epoll, events, EVENTS_MAX, timeout_ms(executor, now));
        if (count < 0 && errno != EINTR)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for runs");
        for (int i = 0; i < count; i++) {
            const struct executor_source *source = events[i].data.ptr;
            source->ready(source->owner, events[i].events);
        }
    }
    return 0;
}

/* ---- start and end ---- */

static void do_nothing(int signal)
{
    (void)signal;
}

/* Signals that the supervisor handles must not end the executor, and must not be ignored: a jail's
 * command would inherit SIG_IGN. While a process is not dumpable, /proc/self belongs to root; but
 * an unprivileged executor has to write id maps there. */
static void settle_process(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < ARRAY_LENGTH(signals); i++)
        (void)sigaction(signals[i], &action, NULL);
    (void)prctl(PR_SET_DUMPABLE, 1);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* memory holds a credential */
}

/* Searches relative to the directory of this program, for build trees and relocated
 * installations. */
static bool find_beside(const char *const *places, size_t count, int mode, char found[PATH_MAX])
{
    char program[PATH_MAX / 2] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = length > 0 ? strrchr(program, '/') : NULL;
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; slash && i < count; i++) {
        (void)snprintf(found, PATH_MAX, "%s%s", program, places[i]);
        if (access(found, mode) == 0)
            return true;
    }
    found[0] = '\0';
    return false;
}

static void find_broker(struct executor *executor)
{
    static const char *const places[] = {"brig-broker", "../net/brig-broker", "../brig-broker",
                                         "../libexec/brig/brig-broker"};
    (void)find_beside(places, ARRAY_LENGTH(places), X_OK, executor->broker);
}

static void find_callback(struct executor *executor)
{
    static const char *const places[] = {"brig-callback", "../callback/brig-callback",
                                         "../../src/callback/brig-callback",
                                         "../libexec/brig/brig-callback"};
    (void)find_beside(places, ARRAY_LENGTH(places), X_OK, executor->callback_program);
}

/* Zygotes need the library and, as root, a spare uid. */
static void find_zygotes(struct executor *executor)
{
    static const char *const places[] = {"brig-zygote.so", "../zygote/brig-zygote.so",
                                         "../../src/zygote/brig-zygote.so",
                                         "../libexec/brig/brig-zygote.so"};
    const struct server_config *config = executor->config;
    char path[PATH_MAX];
    executor->pools.library = -1;
    if (!config->sandbox.pool.enabled || !config->sandbox.pool.zygotes ||
        (executor->as_root && !executor->has_spare_id))
        return;
    if (find_beside(places, ARRAY_LENGTH(places), R_OK, path))
        executor->pools.library = open(path, O_RDONLY | O_CLOEXEC);
    if (executor->pools.library < 0)
        executor_warn(executor,
                      "brig-zygote.so is not beside brigd: python is not forked but started");
}

/* Runs of an earlier executor are lost. Rows that it could not send are sent first. */
static int open_journal(struct executor *executor, int fd, struct brig_error *err)
{
    int result = journal_open(fd, &executor->journal, err);
    if (result < 0)
        return result;
    struct journal_state *state = journal_begin(&executor->journal);
    counters_lost(&state->counters);
    result = journal_add(&executor->journal, state, MESSAGE_NEW_EXECUTOR, NULL, 0, err);
    if (result == 0)
        journal_commit(&executor->journal);
    return result;
}

static int set_up(struct executor *executor, struct channel *control, int journal,
                  struct brig_error *err)
{
    int result;
    settle_process();
    find_broker(executor);
    find_callback(executor);
    executor_images_open(executor->config);
    for (int i = 0; i < ROLES_; i++)
        executor->peers[i] = (struct executor_peer){.executor = executor, .source = {.fd = -1}};
    executor->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (executor->epoll < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for runs");
    if ((result = executor_slots_make(executor, err)) < 0 ||
        (result = executor_credential_take(&executor->credential, err)) < 0 ||
        (result = executor_instance_open(executor->config->sandbox.state_dir, &executor->instance,
                                         err)) < 0 ||
        (result = open_journal(executor, journal, err)) < 0)
        return result;
    executor->ground =
        (struct jail_ground){.config = executor->config,
                             .credential = &executor->credential,
                             .broker = executor->broker[0] ? executor->broker : NULL};
    struct executor_peer *supervisor = supervisor_of(executor);
    supervisor->channel = control;
    supervisor->source = (struct executor_source){
        .ready = peer_ready, .owner = supervisor, .fd = channel_fd(control)};
    executor_slots_fit(executor);
    executor_ended_open(executor);
    find_zygotes(executor);
    if ((result = executor_watch(executor, &supervisor->source, EPOLLIN, err)) < 0 ||
        (result = executor_sweeper_begin(&executor->sweeper, err)) < 0)
        return result;
    return channel_send(control, MESSAGE_READY, 0, NULL, 0, err);
}

static void clear_up(struct executor *executor)
{
    executor_versions_end(executor);
    executor_pools_end(executor);
    executor_sandboxes_abandon(executor);
    executor_callbacks_end(executor);
    executor_runs_abandon(executor);
    executor_frames_end(executor);
    executor_queue_done(executor);
    executor_sweeper_end(&executor->sweeper);
    for (int i = 0; i < ROLES_; i++)
        lose_peer(&executor->peers[i]);
    executor_images_close(executor->config);
    executor_instance_close(&executor->instance);
    executor_credential_done(&executor->credential);
    journal_close(&executor->journal);
    str_done(&executor->runtimes);
    str_done(&executor->unenforced);
    free(executor->slots);
    if (executor->epoll >= 0)
        (void)close(executor->epoll);
}

int executor_main(struct server_config *config, struct channel *control, const struct role_fds *fds,
                  struct brig_error *err)
{
    struct executor executor = {
        .config = config,
        .epoll = -1,
        .instance = INSTANCE_NONE,
        .journal = JOURNAL_NONE,
        .sandboxes = {.record = -1, .due_ms = UINT64_MAX, .fill_ms = UINT64_MAX},
        .pools = {.enabled = config->sandbox.pool.enabled, .library = -1}};
    int result = set_up(&executor, control, fds->journal, err);
    if (result == 0)
        result = loop(&executor, err);
    clear_up(&executor);
    return result;
}
