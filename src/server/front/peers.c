/* SPDX-License-Identifier: MIT */
/* Messages of the other processes. */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "server/config.h"
#include "server/front/execute.h"
#include "server/front/front.h"
#include "server/front/history.h"
#include "server/front/loop.h"
#include "server/front/tls.h"

/* As many at a time, so that one process does not keep the others waiting. */
#define MESSAGES_AT_ONCE 256
#define DRAIN_MARGIN_MS 2000

bool front_send(struct front *front, enum server_role to, enum message_type type, uint64_t tag,
                const void *bytes, size_t length)
{
    return front->peers[to] && channel_send(front->peers[to], type, tag, bytes, length, NULL) == 0;
}

/* ---- What each may say ---- */

static void take_json(struct str *kept, const struct message *message)
{
    str_done(kept);
    str_append_bytes(kept, message->bytes, message->length);
}

static void take_runtimes(struct front *front, const struct message *message)
{
    bool first = front->runtimes.length == 0;
    take_json(&front->runtimes, message);
    /* Now every page can be answered, GET /runtimes too. */
    if (first)
        (void)channel_send(front->control, MESSAGE_READY, 0, NULL, 0, NULL);
}

static void take_store(struct front *front, const struct message *message)
{
    take_json(&front->store, message);
}

static void take_gauges(struct front *front, const struct message *message)
{
    if (message->length != sizeof front->gauges)
        return;
    memcpy(&front->gauges, message->bytes, sizeof front->gauges);
    front->knows_warden = true;
}

static const struct permitted {
    enum server_role from;
    enum message_type type;
    void (*take)(struct front *front, const struct message *message);
} permitted[] = {
    {ROLE_WARDEN, MESSAGE_BEGUN, execute_begun},
    {ROLE_WARDEN, MESSAGE_OUTPUT, execute_output},
    {ROLE_WARDEN, MESSAGE_DONE, execute_done},
    {ROLE_WARDEN, MESSAGE_KILLED, history_answer},
    {ROLE_WARDEN, MESSAGE_RUNTIMES, take_runtimes},
    {ROLE_WARDEN, MESSAGE_GAUGES, take_gauges},
    {ROLE_RECORDER, MESSAGE_ROWS, history_answer},
    {ROLE_RECORDER, MESSAGE_MISSING, history_answer},
    {ROLE_RECORDER, MESSAGE_FAILED, history_answer},
    {ROLE_RECORDER, MESSAGE_STORE, take_store},
};

/* False if this one may not say it. */
static bool take(struct front *front, enum server_role role, const struct message *message)
{
    for (size_t i = 0; i < ARRAY_LENGTH(permitted); i++) {
        if (permitted[i].from == role && permitted[i].type == message->type) {
            permitted[i].take(front, message);
            return true;
        }
    }
    return false;
}

void front_peer_gone(struct front *front, enum server_role role)
{
    if (!front->peers[role])
        return;
    loop_forget(front, channel_fd(front->peers[role]));
    channel_free(take_ptr(&front->peers[role]));
    front->writing[role] = false;
    if (role == ROLE_WARDEN) {
        front->gauges = (struct message_gauges){.oom_kills = front->gauges.oom_kills};
        front->knows_warden = false;
    }
    tickets_lost(front, role);
}

void front_hear_peer(struct front *front, enum server_role role)
{
    for (int i = 0; i < MESSAGES_AT_ONCE && front->peers[role]; i++) {
        automessage struct message message = {.fd = -1};
        int got = channel_receive(front->peers[role], &message, NULL);
        if (got == 0)
            break;
        if (got < 0 || !take(front, role, &message))
            front_peer_gone(front, role);
    }
    if (role == ROLE_WARDEN)
        execute_start_waiting(front);
}

/* ---- The keeper ---- */

static int take_peer(struct front *front, struct message *message, struct brig_error *err)
{
    enum server_role role = (enum server_role)message->tag;
    if (message->fd < 0 || (role != ROLE_WARDEN && role != ROLE_RECORDER))
        return brig_fail(err, BRIG_E_INVALID, 0, "the keeper sent a socket for an unknown process");
    front_peer_gone(front, role);
    int result = channel_new(&message->fd, &front->peers[role], err);
    if (result == 0)
        result = loop_add(front, channel_fd(front->peers[role]),
                          role == ROLE_WARDEN ? LOOP_WARDEN : LOOP_RECORDER, err);
    if (result == 0)
        execute_start_waiting(front);
    return result;
}

static int take_tls(struct front *front, struct message *message, struct brig_error *err)
{
    struct brig_error local = {0};
    int result = front->tls ? tls_replace(front->tls, message->bytes, message->length, &local)
                            : tls_new(message->bytes, message->length, &front->tls, &local);
    explicit_bzero(message->bytes, message->length);
    if (result == 0)
        return 0;
    /* At the start there is none to stay with. */
    if (!front->tls)
        return brig_fail(err, result, 0, "%s", local.message);
    (void)brig_wrap(&local, result, "the certificate stays as it was");
    return channel_send(front->control, MESSAGE_WARNING, 0, local.message, strlen(local.message),
                        err);
}

static void take_log(struct front *front, struct message *message)
{
    if (message->fd >= 0)
        access_log_replace(&front->log, &message->fd);
}

static void drain(struct front *front)
{
    if (front->draining)
        return;
    front->draining = true;
    /* The warden ends what takes longer, and says so. */
    front->drain_until_ms =
        front->now_ms + front->config->server.drain_timeout_ms + DRAIN_MARGIN_MS;
    (void)MHD_quiesce_daemon(front->daemon); /* it stays the keeper's */
    execute_tick(front);
}

int front_hear_control(struct front *front, struct brig_error *err)
{
    for (;;) {
        automessage struct message message = {.fd = -1};
        int got = channel_receive(front->control, &message, err);
        if (got <= 0)
            return got;
        int result = 0;
        if (message.type == MESSAGE_PEER)
            result = take_peer(front, &message, err);
        else if (message.type == MESSAGE_TLS)
            result = take_tls(front, &message, err);
        else if (message.type == MESSAGE_LOG)
            take_log(front, &message);
        else if (message.type == MESSAGE_DRAIN)
            drain(front);
        if (result < 0)
            return result;
    }
}
