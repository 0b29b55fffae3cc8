/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * The warden is the one process of brigd with the power to start and end jails, as the user brigd runs
 * as. It is one thread with one loop over the jobs of libbrig, the pipes of what they write, and the
 * channels to the keeper, the front and the recorder. What the front sends is a request that may come
 * from anybody: it is decoded with limits, checked against the configuration again, and answered with
 * exactly one result. The front may die and be replaced: runs go on, and their rows reach the recorder,
 * which has all of them twice in turn: what it has not called safe is sent again to the next one. If the
 * warden dies, every jail's init sees the end of its socket and ends the jail; what the kernel kept is
 * found by the next warden in the file of this one. */
#include "server/warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/json.h"
#include "base/own.h"
#include "jail/limits/cgroup.h"
#include "jail/walls/identity.h"
#include "server/config.h"
#include "server/role.h"

#define EVENTS_MAX 64
#define MESSAGES_AT_ONCE 16
#define SWEEP_MS (UINT64_C(5) * 60 * 1000)
#define GAUGES_MS 100
#define RECORDER_PATIENCE_MS 3000 /* after the last run, for rows to be called safe */
/* The front has enough to read, and may have more again. */
#define FRONT_FULL ((size_t)8 << 20)
#define FRONT_EASY ((size_t)2 << 20)
#define SLOTS_MORE 64    /* than may run at a time: those that are ending */
#define POOL_SLOTS 16384 /* for those that wait; beyond it none are made */

/* ---- what the loop waits for ---- */

int warden_watch(const struct warden *warden, struct warden_source *source, uint32_t events,
                 struct brig_error *err)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(warden->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch a run");
    return 0;
}

void warden_unwatch(const struct warden *warden, const struct warden_source *source)
{
    if (source->fd >= 0)
        (void)epoll_ctl(warden->epoll, EPOLL_CTL_DEL, source->fd, NULL);
}

/* ---- peers ---- */

static struct warden_peer *keeper_of(struct warden *warden)
{
    return &warden->peers[ROLE_WARDEN];
}

static void lose_peer(struct warden_peer *peer)
{
    struct warden *warden = peer->warden;
    if (!peer->channel)
        return;
    warden_unwatch(warden, &peer->source);
    if (peer == keeper_of(warden))
        warden->keeper_gone = true; /* its channel is our caller's */
    else
        channel_free(peer->channel);
    peer->channel = NULL;
    peer->writing = false;
    if (peer == &warden->peers[ROLE_FRONT])
        warden_runs_resume(warden);
}

static void arm_peer(struct warden_peer *peer)
{
    if (!peer->channel || channel_wants_write(peer->channel) == peer->writing)
        return;
    peer->writing = !peer->writing;
    struct epoll_event event = {.events = EPOLLIN | (peer->writing ? (uint32_t)EPOLLOUT : 0),
                                .data.ptr = &peer->source};
    (void)epoll_ctl(peer->warden->epoll, EPOLL_CTL_MOD, peer->source.fd, &event);
}

void warden_tell_front(struct warden *warden, uint64_t front, enum message_type type, uint64_t tag,
                       const void *bytes, size_t length)
{
    struct warden_peer *peer = &warden->peers[ROLE_FRONT];
    if (!peer->channel || front != warden->fronts)
        return;
    if (channel_send(peer->channel, type, tag, bytes, length, NULL) < 0)
        lose_peer(peer);
}

bool warden_front_is_full(const struct warden *warden)
{
    const struct channel *channel = warden->peers[ROLE_FRONT].channel;
    return channel && channel_queued(channel) > FRONT_FULL;
}

void warden_warn(struct warden *warden, const char *text)
{
    struct warden_peer *keeper = keeper_of(warden);
    if (keeper->channel &&
        channel_send(keeper->channel, MESSAGE_WARNING, 0, text, strlen(text), NULL) < 0)
        lose_peer(keeper);
}

/* ---- what the front wants ---- */

/* By an id that nobody else has chosen: a front in a stranger's hands would choose one that a row of the
 * history has. */
static int name_run(struct execution_request *request, struct brig_error *err)
{
    char id[EXECUTION_ID_LENGTH + 1];
    execution_id_make(id);
    request->id = arena_strdup(&request->arena, id);
    return request->id ? 0 : brig_fail_nomem(err);
}

static int take_execute(struct warden *warden, const struct message *message,
                        struct brig_error *err)
{
    struct execution_request request;
    int result = execution_request_decode(message->bytes, message->length, &request, err);
    if (result < 0)
        return result;
    if ((result = name_run(&request, err)) < 0) {
        execution_request_done(&request);
        return result;
    }
    warden_tell_front(warden, warden->fronts, MESSAGE_BEGUN, message->tag, request.id,
                      EXECUTION_ID_LENGTH);
    warden_run_begin(warden, &request, message->tag);
    return 0;
}

static int take_cancel(struct warden *warden, const struct message *message, struct brig_error *err)
{
    (void)err;
    for (struct run *run = warden->runs; run; run = run->next)
        if (run->tag == message->tag && run->front == warden->fronts) {
            warden_run_cancel(run, RUN_CANCELLED);
            break;
        }
    return 0;
}

static int take_kill(struct warden *warden, const struct message *message, struct brig_error *err)
{
    char id[EXECUTION_ID_LENGTH + 1];
    (void)snprintf(id, sizeof id, "%s", message->bytes);
    if (!execution_id_is_valid(id))
        return brig_fail(err, BRIG_E_INVALID, 0, "a request to end an execution has no valid id");
    const char *domain = message->bytes + EXECUTION_ID_LENGTH;
    struct run *run = warden_run_find(warden, id);
    if (run && *domain && strcmp(run->request.domain, domain) != 0)
        run = NULL; /* somebody else's */
    char answer = run != NULL;
    if (run)
        warden_run_cancel(run, RUN_CANCELLED);
    warden_tell_front(warden, warden->fronts, MESSAGE_KILLED, message->tag, &answer, 1);
    return 0;
}

static int take_stored(struct warden *warden, const struct message *message, struct brig_error *err)
{
    (void)err;
    warden_ledger_stored(&warden->ledger, message->tag);
    return 0;
}

/* ---- what the keeper says ---- */

static int make_runtimes(struct warden *warden, struct str *out)
{
    struct json json;
    json_init(&json, out);
    json_open_object(&json, NULL);
    json_open_array(&json, "runtimes");
    for (size_t i = 0; i < warden->config->runtime_count; i++)
        runtime_json(&warden->config->runtimes[i], warden->config, &json);
    json_close_array(&json);
    json_close_object(&json);
    return out->failed ? BRIG_E_NOMEM : 0;
}

/* To a new front always, to an old one if something was installed or removed. */
static void tell_runtimes(struct warden *warden, bool always)
{
    struct str text = {0};
    if (make_runtimes(warden, &text) < 0 ||
        (!always && str_equal(text.data, warden->runtimes.data))) {
        str_done(&text);
        return;
    }
    str_done(&warden->runtimes);
    warden->runtimes = text;
    warden_tell_front(warden, warden->fronts, MESSAGE_RUNTIMES, 0, text.data, text.length);
}

static void peer_ready(void *owner, uint32_t events);

static int take_peer(struct warden *warden, const struct message *message, struct brig_error *err)
{
    if (message->fd < 0 || (message->tag != ROLE_FRONT && message->tag != ROLE_RECORDER))
        return brig_fail(err, BRIG_E_INVALID, 0, "the keeper sent an invalid socket");
    struct warden_peer *peer = &warden->peers[message->tag];
    int fd = message->fd;
    lose_peer(peer);
    int result = channel_new(&fd, &peer->channel, err);
    if (result < 0)
        return result;
    peer->source =
        (struct warden_source){.ready = peer_ready, .owner = peer, .fd = channel_fd(peer->channel)};
    if ((result = warden_watch(warden, &peer->source, EPOLLIN, err)) < 0)
        return result;
    if (message->tag == ROLE_RECORDER) {
        warden_ledger_again(&warden->ledger);
        return 0;
    }
    warden->fronts++;
    warden->inherited_count = warden->run_count;
    warden->gauges_due_ms = 0; /* it begins nothing before it has them */
    warden->gauges_sent = (struct message_gauges){.active = UINT64_MAX};
    tell_runtimes(warden, true);
    return 0;
}

static int take_drain(struct warden *warden, const struct message *message, struct brig_error *err)
{
    (void)message;
    (void)err;
    warden->draining = true;
    warden->drain_ms = clock_now_ms() + warden->config->server.drain_timeout_ms;
    return 0;
}

/* ---- messages ---- */

/* Who may say what. Anything else ends the channel. */
static const struct {
    enum server_role from; /* ROLE_WARDEN: the keeper */
    enum message_type type;
    int (*take)(struct warden *warden, const struct message *message, struct brig_error *err);
} permitted[] = {
    {ROLE_WARDEN, MESSAGE_PEER, take_peer},      {ROLE_WARDEN, MESSAGE_DRAIN, take_drain},
    {ROLE_FRONT, MESSAGE_EXECUTE, take_execute}, {ROLE_FRONT, MESSAGE_CANCEL, take_cancel},
    {ROLE_FRONT, MESSAGE_KILL, take_kill},       {ROLE_RECORDER, MESSAGE_STORED, take_stored},
};

static int take_message(struct warden *warden, enum server_role from, struct message *message,
                        struct brig_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(permitted); i++) {
        if (permitted[i].from != from || permitted[i].type != message->type)
            continue;
        int result = permitted[i].take(warden, message, err);
        if (message->type == MESSAGE_PEER)
            message->fd = -1; /* the channel has it, or has closed it */
        return result;
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "the %s may not send message %d",
                     from == ROLE_WARDEN ? "keeper" : server_role_name(from), (int)message->type);
}

static void receive(struct warden_peer *peer)
{
    struct warden *warden = peer->warden;
    enum server_role from = (enum server_role)(peer - warden->peers);
    for (int i = 0; i < MESSAGES_AT_ONCE && peer->channel; i++) {
        automessage struct message message = {.fd = -1};
        struct brig_error err = {0};
        int result = channel_receive(peer->channel, &message, &err);
        if (result == 0)
            return;
        if (result < 0) {
            lose_peer(peer);
        } else if (take_message(warden, from, &message, &err) < 0) {
            warden_warn(warden, err.message);
            lose_peer(peer);
        }
    }
}

static void peer_ready(void *owner, uint32_t events)
{
    struct warden_peer *peer = owner;
    if (peer->channel && events & EPOLLOUT && channel_flush(peer->channel, NULL) < 0)
        lose_peer(peer);
    if (peer->channel && events & ~(uint32_t)EPOLLOUT)
        receive(peer);
}

/* ---- the clock ---- */

static void tell_gauges(struct warden *warden, uint64_t now)
{
    warden->gauges.active = warden->run_count;
    warden->gauges.inherited = warden->inherited_count;
    if (now < warden->gauges_due_ms || !warden->peers[ROLE_FRONT].channel ||
        memcmp(&warden->gauges, &warden->gauges_sent, sizeof warden->gauges) == 0)
        return;
    warden_tell_front(warden, warden->fronts, MESSAGE_GAUGES, 0, &warden->gauges,
                      sizeof warden->gauges);
    warden->gauges_sent = warden->gauges;
    warden->gauges_due_ms = now + GAUGES_MS;
}

static void sweep(struct warden *warden, uint64_t now)
{
    size_t ended = warden_instance_sweep(&warden->instance);
    warden->sweep_due_ms = now + SWEEP_MS;
    if (ended > 0) {
        char text[96];
        (void)snprintf(text, sizeof text, "ended %zu jails of an earlier warden", ended);
        warden_warn(warden, text);
    }
    tell_runtimes(warden, false);
}

/* True once there is nothing left to do. What is not finished in time is ended, and then the recorder is
 * waited for a little. */
static bool is_drained(struct warden *warden, uint64_t now)
{
    if (!warden->draining)
        return false;
    if (warden->run_count > 0) {
        for (struct run *run = warden->runs; run && now >= warden->drain_ms; run = run->next)
            warden_run_cancel(run, RUN_CANCELLED);
        return false;
    }
    if (warden_ledger_is_empty(&warden->ledger) || !warden->peers[ROLE_RECORDER].channel)
        return true;
    if (warden->rows_ms == 0)
        warden->rows_ms = now + RECORDER_PATIENCE_MS;
    return now >= warden->rows_ms;
}

static int timeout_ms(const struct warden *warden, uint64_t now)
{
    uint64_t due = warden->sweep_due_ms;
    bool changed = memcmp(&warden->gauges, &warden->gauges_sent, sizeof warden->gauges) != 0 &&
                   warden->peers[ROLE_FRONT].channel;
    if (changed && warden->gauges_due_ms < due)
        due = warden->gauges_due_ms;
    if (warden_pools_due_ms(warden, now) < due)
        due = warden_pools_due_ms(warden, now);
    if (warden->draining && now + GAUGES_MS < due)
        due = now + GAUGES_MS;
    return due <= now ? 0 : (int)(due - now);
}

/* After each round: what waits for the recorder, and what was left unread for the front's sake. */
static void settle(struct warden *warden, uint64_t now)
{
    struct warden_peer *recorder = &warden->peers[ROLE_RECORDER];
    const struct warden_peer *front = &warden->peers[ROLE_FRONT];
    warden_pools_settle(warden, now);
    warden_frames_settle(warden, now);
    warden_runs_clear(warden, false);
    if (recorder->channel && warden_ledger_send(&warden->ledger, recorder->channel, NULL) < 0)
        lose_peer(recorder);
    if (warden->paused_count > 0 && front->channel && channel_queued(front->channel) < FRONT_EASY)
        warden_runs_resume(warden);
    tell_gauges(warden, now);
    if (now >= warden->sweep_due_ms)
        sweep(warden, now);
    for (int i = 0; i < ROLES_; i++)
        arm_peer(&warden->peers[i]);
}

/* As epoll_wait(), but an answer's pause is shorter than a millisecond. */
static int wait_for_events(const struct warden *warden, struct epoll_event events[EVENTS_MAX],
                           int most_ms)
{
    uint64_t pause_us = warden_pools_pause_us(warden);
    if (pause_us == 0 || most_ms == 0)
        return epoll_wait(warden->epoll, events, EVENTS_MAX, most_ms);
    const struct timespec pause = {.tv_nsec = (long)pause_us * 1000};
    int count = epoll_pwait2(warden->epoll, events, EVENTS_MAX, &pause, NULL);
    bool missing = count < 0 && (errno == ENOSYS || errno == EPERM);
    return missing ? epoll_wait(warden->epoll, events, EVENTS_MAX, 1) : count;
}

static int loop(struct warden *warden, struct brig_error *err)
{
    struct epoll_event events[EVENTS_MAX];
    while (!warden->keeper_gone) {
        uint64_t now = clock_now_ms();
        settle(warden, now);
        if (is_drained(warden, now))
            return 0;
        int count = wait_for_events(warden, events, timeout_ms(warden, now));
        if (count < 0 && errno != EINTR)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for runs");
        for (int i = 0; i < count; i++) {
            const struct warden_source *source = events[i].data.ptr;
            source->ready(source->owner, events[i].events);
        }
    }
    return 0;
}

/* ---- begin and end ---- */

static void do_nothing(int signal)
{
    (void)signal;
}

/* Signals that the keeper answers must not end us, and must not be ignored either: a jail's command
 * would inherit that. And as long as a process cannot be dumped, /proc/self is root's, where a user's
 * jail has to write its id maps. */
static void settle_process(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < ARRAY_LENGTH(signals); i++)
        (void)sigaction(signals[i], &action, NULL);
    (void)prctl(PR_SET_DUMPABLE, 1);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* there is a credential in here */
    (void)fds_raise_limit(RLIM_INFINITY, NULL);        /* a run takes about ten */
}

/* From the directory of this program, in a build tree or under another prefix than was planned. */
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

static void find_broker(struct warden *warden)
{
    static const char *const places[] = {"brig-broker", "../egress/brig-broker", "../brig-broker",
                                         "../libexec/brig/brig-broker"};
    (void)find_beside(places, ARRAY_LENGTH(places), X_OK, warden->broker);
}

/* Without it, or without an id for it, nothing is forked. */
static void find_zygotes(struct warden *warden)
{
    static const char *const places[] = {"brig-zygote.so", "../zygote/brig-zygote.so",
                                         "../../src/zygote/brig-zygote.so",
                                         "../libexec/brig/brig-zygote.so"};
    const struct server_config *config = warden->config;
    char path[PATH_MAX];
    warden->pools.library = -1;
    if (!config->sandbox.pool.enabled || !config->sandbox.pool.zygotes ||
        (warden->as_root && !warden->has_spare_id))
        return;
    if (find_beside(places, ARRAY_LENGTH(places), R_OK, path))
        warden->pools.library = open(path, O_RDONLY | O_CLOEXEC);
    if (warden->pools.library < 0)
        warden_warn(warden, "brig-zygote.so is not beside brigd: python is not forked but started");
}

static int make_slots(struct warden *warden, struct brig_error *err)
{
    const struct server_config *config = warden->config;
    warden->as_root = identity_is_root();
    warden->run_most = config->sandbox.max_concurrent + SLOTS_MORE;
    warden->slot_count = warden->run_most + POOL_SLOTS;
    if (warden->as_root && config->sandbox.uid_count < config->sandbox.max_concurrent)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "sandbox.uid_count is %llu: as root each of max_concurrent (%llu) jails "
                         "needs a uid of its own",
                         (unsigned long long)config->sandbox.uid_count,
                         (unsigned long long)config->sandbox.max_concurrent);
    warden->has_spare_id =
        warden->as_root && config->sandbox.uid_count > config->sandbox.max_concurrent;
    if (warden->as_root)
        warden->slot_count = config->sandbox.uid_count - warden->has_spare_id;
    warden->slots = calloc(warden->slot_count, sizeof *warden->slots);
    return warden->slots ? 0 : brig_fail_nomem(err);
}

static int set_up(struct warden *warden, struct channel *control, struct brig_error *err)
{
    int result;
    settle_process();
    find_broker(warden);
    for (int i = 0; i < ROLES_; i++)
        warden->peers[i] = (struct warden_peer){.warden = warden, .source = {.fd = -1}};
    warden->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (warden->epoll < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for runs");
    if ((result = make_slots(warden, err)) < 0 ||
        (result = warden_credential_take(&warden->credential, err)) < 0 ||
        (result = warden_instance_open(warden->config->sandbox.state_dir, &warden->instance, err)) <
            0 ||
        (result = warden_ledger_add(&warden->ledger, MESSAGE_NEW_WARDEN, NULL, 0, err)) < 0)
        return result;
    warden->ground = (struct jail_ground){.config = warden->config,
                                          .credential = &warden->credential,
                                          .broker = warden->broker[0] ? warden->broker : NULL};
    struct warden_peer *keeper = keeper_of(warden);
    keeper->channel = control;
    keeper->source =
        (struct warden_source){.ready = peer_ready, .owner = keeper, .fd = channel_fd(control)};
    find_zygotes(warden);
    if ((result = warden_watch(warden, &keeper->source, EPOLLIN, err)) < 0 ||
        (result = warden_pools_begin(warden, err)) < 0 ||
        (result = warden_sweeper_begin(&warden->sweeper, err)) < 0)
        return result;
    return channel_send(control, MESSAGE_READY, 0, NULL, 0, err);
}

static void clear_up(struct warden *warden)
{
    warden_pools_end(warden);
    warden_runs_abandon(warden);
    cgroup_rest_free(warden->pools.groups); /* which all of these have used */
    warden_frames_end(warden);
    warden_sweeper_end(&warden->sweeper);
    for (int i = 0; i < ROLES_; i++)
        lose_peer(&warden->peers[i]);
    warden_instance_close(&warden->instance);
    warden_credential_done(&warden->credential);
    warden_ledger_done(&warden->ledger);
    str_done(&warden->runtimes);
    free(warden->slots);
    if (warden->epoll >= 0)
        (void)close(warden->epoll);
}

int warden_main(const struct server_config *config, struct channel *control, int listener,
                struct brig_error *err)
{
    struct warden warden = {
        .config = config, .epoll = -1, .instance = INSTANCE_NONE, .pools.library = -1};
    (void)listener;
    warden_ledger_init(&warden.ledger);
    int result = set_up(&warden, control, err);
    if (result == 0)
        result = loop(&warden, err);
    clear_up(&warden);
    return result;
}
