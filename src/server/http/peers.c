/* SPDX-License-Identifier: MIT */
/* Messages of the other processes. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "server/config.h"
#include "server/http/execute.h"
#include "server/http/history.h"
#include "server/http/http.h"
#include "server/http/loop.h"
#include "server/http/tls.h"

/* As many at a time, so that one process does not keep the others waiting. */
#define MESSAGES_AT_ONCE 256
#define DRAIN_MARGIN_MS 2000

bool http_send(struct http *http, enum server_role to, enum message_type type, uint64_t tag,
               const void *bytes, size_t length)
{
    return http->peers[to] && channel_send(http->peers[to], type, tag, bytes, length, NULL) == 0;
}

/* ---- What each may say ---- */

static void take_json(struct str *kept, const struct message *message)
{
    str_done(kept);
    str_append_bytes(kept, message->bytes, message->length);
}

static void take_runtimes(struct http *http, const struct message *message)
{
    bool first = http->runtimes.length == 0;
    take_json(&http->runtimes, message);
    /* Now every page can be answered, GET /runtimes too. */
    if (first)
        (void)channel_send(http->control, MESSAGE_READY, 0, NULL, 0, NULL);
}

static void take_store(struct http *http, const struct message *message)
{
    take_json(&http->store, message);
}

static void take_gauges(struct http *http, const struct message *message)
{
    if (message->length != sizeof http->gauges)
        return;
    memcpy(&http->gauges, message->bytes, sizeof http->gauges);
    http->knows_executor = true;
}

static const struct permitted {
    enum server_role from;
    enum message_type type;
    void (*take)(struct http *http, const struct message *message);
} permitted[] = {
    {ROLE_EXECUTOR, MESSAGE_BEGUN, execute_begun},
    {ROLE_EXECUTOR, MESSAGE_OUTPUT, execute_output},
    {ROLE_EXECUTOR, MESSAGE_DONE, execute_done},
    {ROLE_EXECUTOR, MESSAGE_KILLED, history_answer},
    {ROLE_EXECUTOR, MESSAGE_RUNTIMES, take_runtimes},
    {ROLE_EXECUTOR, MESSAGE_GAUGES, take_gauges},
    {ROLE_HISTORY, MESSAGE_ROWS, history_answer},
    {ROLE_HISTORY, MESSAGE_MISSING, history_answer},
    {ROLE_HISTORY, MESSAGE_FAILED, history_answer},
    {ROLE_HISTORY, MESSAGE_STORE, take_store},
};

/* False if this one may not say it. */
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

void http_peer_gone(struct http *http, enum server_role role)
{
    if (!http->peers[role])
        return;
    loop_forget(http, channel_fd(http->peers[role]));
    channel_free(take_ptr(&http->peers[role]));
    http->writing[role] = false;
    if (role == ROLE_EXECUTOR) {
        http->gauges = (struct message_gauges){.oom_kills = http->gauges.oom_kills};
        http->knows_executor = false;
    }
    tickets_lost(http, role);
}

void http_hear_peer(struct http *http, enum server_role role)
{
    for (int i = 0; i < MESSAGES_AT_ONCE && http->peers[role]; i++) {
        automessage struct message message = {.fd = -1};
        int got = channel_receive(http->peers[role], &message, NULL);
        if (got == 0)
            break;
        if (got < 0 || !take(http, role, &message))
            http_peer_gone(http, role);
    }
    if (role == ROLE_EXECUTOR)
        execute_start_waiting(http);
}

/* ---- The supervisor ---- */

static int take_peer(struct http *http, struct message *message, struct brig_error *err)
{
    enum server_role role = (enum server_role)message->tag;
    if (message->fd < 0 || (role != ROLE_EXECUTOR && role != ROLE_HISTORY))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the supervisor sent a socket for an unknown process");
    http_peer_gone(http, role);
    int result = channel_new(&message->fd, &http->peers[role], err);
    if (result == 0)
        result = loop_add(http, channel_fd(http->peers[role]),
                          role == ROLE_EXECUTOR ? LOOP_EXECUTOR : LOOP_HISTORY, err);
    if (result == 0)
        execute_start_waiting(http);
    return result;
}

static int take_tls(struct http *http, struct message *message, struct brig_error *err)
{
    struct brig_error local = {0};
    int result = http->tls ? tls_replace(http->tls, message->bytes, message->length, &local)
                           : tls_new(message->bytes, message->length, &http->tls, &local);
    explicit_bzero(message->bytes, message->length);
    if (result == 0)
        return 0;
    /* At the start there is none to stay with. */
    if (!http->tls)
        return brig_fail(err, result, 0, "%s", local.message);
    (void)brig_wrap(&local, result, "the certificate stays as it was");
    return channel_send(http->control, MESSAGE_WARNING, 0, local.message, strlen(local.message),
                        err);
}

static void take_log(struct http *http, struct message *message)
{
    if (message->fd >= 0)
        access_log_replace(&http->log, &message->fd);
}

static void drain(struct http *http)
{
    if (http->draining)
        return;
    http->draining = true;
    /* The executor ends what takes longer, and says so. */
    http->drain_until_ms = http->now_ms + http->config->server.drain_timeout_ms + DRAIN_MARGIN_MS;
    (void)MHD_quiesce_daemon(http->daemon); /* it stays the supervisor's */
    execute_tick(http);
}

int http_hear_control(struct http *http, struct brig_error *err)
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
        else if (message.type == MESSAGE_LOG)
            take_log(http, &message);
        else if (message.type == MESSAGE_DRAIN)
            drain(http);
        if (result < 0)
            return result;
    }
}
