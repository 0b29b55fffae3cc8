/* SPDX-License-Identifier: MIT */
/* Endpoints inside the jail that speak plain HTTP. What may be asked is decided here; upstream the
 * credential is added. Anyone in the jail may use them: what is protected is the secret. */
#include "net/broker_inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/broker_files.h"
#include "net/broker_inject_parts.h"
#include "net/broker_refusal.h"
#include "net/broker_sockets.h"

#define KEEP_ALIVE_MS 120000
#define LEAVE_MS 2000

static void client_ready(struct watch *watch, uint32_t events);
static void timer_fires(struct timer *timer);

/* ---- All of it ---- */

static int make_lines(struct broker *broker, struct brig_error *err)
{
    struct secrets_line rows[DOOR_INJECT_MAX * CONFIG_INJECT_HEADERS_MAX + 1];
    const struct broker_config *config = &broker->config;
    size_t count = 0;
    for (size_t i = 0; i < config->inject_count; i++)
        for (size_t k = 0; k < config->injects[i].header_count; k++)
            rows[count++] = (struct secrets_line){config->injects[i].headers[k].name,
                                                  config->injects[i].headers[k].secret};
    if (config->proxy_secret >= 0) /* the last */
        rows[count++] =
            (struct secrets_line){"Proxy-Authorization", (unsigned)config->proxy_secret};
    int status = secrets_make_lines(&broker->curl->lines, &broker->secrets, rows, count, err);
    if (status < 0)
        return status;
    count = 0;
    for (size_t i = 0; i < config->inject_count; i++)
        for (size_t k = 0; k < config->injects[i].header_count; k++)
            broker->curl->header_lines[i][k] = broker->curl->lines.texts[count++];
    return 0;
}

static bool speaks_tls(const struct broker_config *config)
{
    for (size_t i = 0; i < config->inject_count; i++)
        if (config->injects[i].tls)
            return true;
    return false;
}

int inject_init(struct broker *broker, struct brig_error *err)
{
    if (broker->config.inject_count == 0)
        return 0;
    broker->curl = calloc(1, sizeof *broker->curl);
    if (!broker->curl)
        return brig_fail_nomem(err);
    broker->curl->certificates = files_certificates(&broker->config);
    if (!broker->curl->certificates && speaks_tls(&broker->config))
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                         "no CA certificates were found to check upstreams with; install "
                         "ca-certificates");
    int status = make_lines(broker, err);
    if (status == 0)
        status = broker_curl_init(&broker->curl->curl, &broker->loop, err);
    broker->curl->curl.ended = inject_request_ended;
    return status;
}

void inject_done(struct broker *broker)
{
    if (!broker->curl)
        return;
    broker_curl_done(&broker->curl->curl);
    secrets_done(&broker->curl->lines);
    free(broker->curl);
    broker->curl = NULL;
}

/* ---- One client ---- */

void inject_watch(struct inject_client *client)
{
    uint32_t events = EPOLLRDHUP;
    bool reads = client->stage == INJECT_LEAVE ||
                 (client->stage == INJECT_HEAD && !client->broker->paused) ||
                 (client->stage == INJECT_TRANSFER && !client->body_ended &&
                  client->input_size < INJECT_INPUT_MAX);
    if (reads)
        events |= EPOLLIN;
    if (inject_has_output(client))
        events |= EPOLLOUT;
    if (events != client->watched)
        loop_rewatch(&client->broker->loop, &client->watch, events);
    client->watched = events;
}

void inject_client_end(struct inject_client *client, bool reset)
{
    struct broker *broker = client->broker;
    if (!client->self)
        return;
    *client->self = client->next;
    if (client->next)
        client->next->self = client->self;
    client->self = NULL;
    broker_count_off(broker);
    resolver_cancel(&client->resolve);
    inject_request_drop(client);
    loop_disarm(&broker->loop, &client->timer);
    loop_unqueue(&broker->loop, &client->go_on);
    if (reset)
        socket_reset(client->watch.fd);
    loop_close(&broker->loop, &client->watch);
    str_done(&client->reply_head);
    free(client->input);
    free(client->output);
    loop_free_later(&broker->loop, &client->garbage);
}

void inject_clients_end(struct broker *broker, enum door_because because)
{
    while (broker->inject_clients) {
        if (broker->inject_clients->allowed)
            inject_tell(broker->inject_clients, DOOR_ENDED, because, NULL);
        inject_client_end(broker->inject_clients, true);
    }
}

static void abort_client(struct inject_client *client)
{
    if (client->allowed)
        inject_tell(client, DOOR_ENDED, DOOR_BECAUSE_RESET, NULL);
    inject_client_end(client, true);
}

void inject_tell(struct inject_client *client, enum door_verdict verdict, enum door_because because,
                 const char *detail)
{
    struct broker *broker = client->broker;
    struct door_event event = {
        .verdict = verdict,
        .because = because,
        .via = DOOR_SOCKET_INJECT,
        .port = client->inject->upstream.port,
        .connection = client->id,
        .bytes_in = client->bytes_in,
        .bytes_out = client->bytes_out,
        .duration_ms = (uint64_t)(broker->loop.now_ms - client->started_ms),
    };
    (void)snprintf(event.name, sizeof event.name, "%s", client->inject->name);
    (void)snprintf(event.address, sizeof event.address, "%s", client->address);
    if (detail)
        (void)snprintf(event.detail, sizeof event.detail, "%s%s%s", client->what,
                       client->what[0] ? ": " : "", detail);
    else if (client->status > 0)
        (void)snprintf(event.detail, sizeof event.detail, "%s -> %u", client->what, client->status);
    else
        (void)snprintf(event.detail, sizeof event.detail, "%s", client->what);
    broker_tell(broker, &event);
}

/* ---- Sending ---- */

bool inject_has_output(const struct inject_client *client)
{
    return client->output_start < client->output_end;
}

static bool keep_output(struct inject_client *client, const char *bytes, size_t size)
{
    if (client->output_end + size > client->output_capacity) {
        size_t capacity = client->output_end + size;
        char *output = realloc(client->output, capacity);
        if (!output)
            return false;
        client->output = output;
        client->output_capacity = capacity;
    }
    memcpy(client->output + client->output_end, bytes, size);
    client->output_end += size;
    return true;
}

/* How much was taken, or -1 if the client is gone. */
static ssize_t send_some(const struct inject_client *client, const char *bytes, size_t size)
{
    ssize_t sent = send(client->watch.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent;
}

bool inject_send(struct inject_client *client, const void *bytes, size_t size)
{
    ssize_t sent = inject_has_output(client) ? 0 : send_some(client, bytes, size);
    if (sent < 0)
        return false;
    client->active_ms = client->broker->loop.now_ms;
    if ((size_t)sent == size)
        return true;
    if (!keep_output(client, (const char *)bytes + sent, size - (size_t)sent))
        return false;
    inject_watch(client);
    return true;
}

static bool flush(struct inject_client *client)
{
    ssize_t sent = send_some(client, client->output + client->output_start,
                             client->output_end - client->output_start);
    if (sent < 0)
        return false;
    client->output_start += (size_t)sent;
    if (!inject_has_output(client)) {
        free(client->output);
        client->output = NULL;
        client->output_start = client->output_end = client->output_capacity = 0;
    }
    return true;
}

/* ---- The end of a request ---- */

static void leave(struct inject_client *client)
{
    (void)shutdown(client->watch.fd, SHUT_WR);
    client->stage = INJECT_LEAVE;
    loop_arm(&client->broker->loop, &client->timer, LEAVE_MS);
    inject_watch(client);
}

static void next_request(struct inject_client *client)
{
    inject_request_drop(client);
    if (!client->keep_alive || !client->body_ended) {
        leave(client);
        return;
    }
    client->stage = INJECT_HEAD;
    client->input_seen = 0;
    client->allowed = client->reply_begun = client->reply_ended = false;
    client->what[0] = client->address[0] = 0;
    client->status = 0;
    client->bytes_in = client->bytes_out = 0;
    loop_arm(&client->broker->loop, &client->timer, KEEP_ALIVE_MS);
    inject_watch(client);
    if (client->input_size > 0)
        inject_read_request(client);
}

void inject_refuse(struct inject_client *client, enum door_verdict verdict,
                   enum door_because because, unsigned status, const char *phrase,
                   const char *detail)
{
    char text[REFUSAL_TEXT_MAX];
    inject_tell(client, verdict, because, detail);
    client->allowed = false;
    inject_request_drop(client);
    size_t length = refusal_http(text, status, phrase, client->inject->name, detail);
    if (inject_send(client, text, length))
        leave(client);
    else
        inject_client_end(client, true);
}

void inject_transferred(struct inject_client *client, enum door_because because,
                        const char *failure)
{
    if (!failure) {
        inject_tell(client, DOOR_ENDED, DOOR_BECAUSE_CLOSED, NULL);
        client->allowed = false;
        client->reply_ended = true;
        if (client->chunked && !inject_send(client, "0\r\n\r\n", 5))
            inject_client_end(client, true);
        else if (!inject_has_output(client))
            next_request(client);
        return;
    }
    if (client->reply_begun) {
        inject_tell(client, DOOR_ENDED, DOOR_BECAUSE_RESET, failure);
        inject_client_end(client, true);
    } else if (client->body_bad) {
        inject_refuse(client, DOOR_ENDED, DOOR_BECAUSE_BAD_REQUEST, 400, "Bad Request",
                      client->body.reason);
    } else {
        inject_refuse(client, DOOR_ENDED, because, 502, "Bad Gateway", failure);
    }
}

void inject_resume(struct broker *broker)
{
    struct inject_client *next;
    for (struct inject_client *client = broker->inject_clients; client; client = next) {
        next = client->next;
        inject_watch(client);
        if (client->stage == INJECT_HEAD && client->input_size > 0)
            inject_read_request(client);
    }
}

/* ---- Events of the client ---- */

static void read_more(struct inject_client *client)
{
    ssize_t got = recv(client->watch.fd, client->input + client->input_size,
                       INJECT_INPUT_MAX - client->input_size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        abort_client(client);
        return;
    }
    client->input_size += (size_t)got;
    client->active_ms = client->broker->loop.now_ms;
    if (client->stage == INJECT_HEAD) {
        inject_read_request(client);
        return;
    }
    inject_request_go_on(client);
    if (client->self)
        inject_watch(client);
}

static void discard(struct inject_client *client)
{
    ssize_t got = recv(client->watch.fd, client->broker->relays.scratch, RELAY_CHUNK, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        inject_client_end(client, false);
}

static void go_on(struct task *task)
{
    inject_request_go_on(
        (struct inject_client *)((char *)task - offsetof(struct inject_client, go_on)));
}

static bool write_more(struct inject_client *client)
{
    if (!flush(client)) {
        abort_client(client);
        return false;
    }
    if (inject_has_output(client))
        return true;
    if (client->reply_ended)
        next_request(client);
    else if (client->stage == INJECT_TRANSFER)
        inject_request_go_on(client);
    if (client->self)
        inject_watch(client);
    return client->self;
}

static void client_ready(struct watch *watch, uint32_t events)
{
    struct inject_client *client =
        (struct inject_client *)((char *)watch - offsetof(struct inject_client, watch));
    if ((events & EPOLLOUT) && inject_has_output(client) && !write_more(client))
        return;
    if (client->stage == INJECT_LEAVE)
        discard(client);
    else if ((events & EPOLLIN) && client->input_size < INJECT_INPUT_MAX)
        read_more(client);
    else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        abort_client(client); /* nobody waits for the answer any more */
}

static void timer_fires(struct timer *timer)
{
    struct inject_client *client =
        (struct inject_client *)((char *)timer - offsetof(struct inject_client, timer));
    struct loop *loop = &client->broker->loop;
    int64_t idle = loop->now_ms - client->active_ms;
    int64_t limit = (int64_t)client->broker->config.limits[CONFIG_LIMIT_IDLE_MS];
    if (client->stage == INJECT_RESOLVE) {
        inject_refuse(client, DOOR_ERROR, DOOR_BECAUSE_TIMEOUT, 504, "Gateway Timeout",
                      "no answer in time");
        return;
    }
    if (client->stage == INJECT_TRANSFER && limit > 0 && idle < limit) {
        loop_arm(loop, &client->timer, limit - idle);
        return;
    }
    if (client->allowed)
        inject_tell(client, DOOR_ENDED, DOOR_BECAUSE_TIMEOUT, "idle for too long");
    inject_client_end(client, client->stage == INJECT_TRANSFER);
}

void inject_accepted(struct listener *listener, int fd)
{
    struct broker *broker = listener->broker;
    struct inject_client *client = broker_has_room(broker) ? calloc(1, sizeof *client) : NULL;
    if (client)
        client->input = malloc(INJECT_INPUT_MAX);
    if (!client || !client->input) {
        free(client);
        broker_tell_full(broker, DOOR_SOCKET_INJECT);
        socket_reset(fd);
        (void)close(fd);
        return;
    }
    client->broker = broker;
    client->inject = &broker->config.injects[listener->index];
    client->index = listener->index;
    client->watch = (struct watch){.fd = fd, .ready = client_ready};
    client->timer.fire = timer_fires;
    client->go_on.run = go_on;
    client->next = broker->inject_clients;
    client->self = &broker->inject_clients;
    if (client->next)
        client->next->self = &client->next;
    broker->inject_clients = client;
    broker->connection_count++;
    socket_tune(fd, false);
    loop_arm(&broker->loop, &client->timer, KEEP_ALIVE_MS);
    if (loop_watch(&broker->loop, &client->watch, 0))
        inject_watch(client);
    else
        inject_client_end(client, true);
}
