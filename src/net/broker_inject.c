/* SPDX-License-Identifier: MIT */
/* Endpoints inside the jail that speak plain HTTP. This file decides which requests are allowed;
 * the credential is added upstream. Every process in the jail may use the endpoints: only the
 * secret is protected. */
#include "net/broker_inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/broker_confine.h"
#include "net/broker_connection.h"
#include "net/sockets.h"

#define KEEP_ALIVE_MS 120000
#define LEAVE_MS 2000

static void read_request(struct inject_client *client);

/* ---- Lines with secrets ---- */

static size_t line_size(const char *name, const char *secret)
{
    return strlen(name) + strlen(": ") + strlen(secret) + 1;
}

static const char *write_line(char **at, const char *name, const char *secret)
{
    const char *line = *at;
    size_t size = line_size(name, secret);
    (void)snprintf(*at, size, "%s: %s", name, secret);
    *at += size;
    return line;
}

/* Additional room for a value that changes. */
static size_t room_of(const struct config_inject *inject, size_t header)
{
    return inject->is_live && header == 0 ? DOOR_LIVE_TEXT_MAX : 0;
}

void inject_refresh(struct broker *broker, unsigned index)
{
    const struct config_inject *from = &broker->config.injects[index];
    struct inject *inject = broker->inject;
    off_t start = (off_t)(from->live * sizeof(struct door_live));
    uint64_t generation = 0;
    if (!from->is_live || broker->live < 0 ||
        pread(broker->live, &generation, sizeof generation, start) != sizeof generation ||
        generation == inject->generations[index])
        return;
    char text[DOOR_LIVE_TEXT_MAX];
    size_t place = offsetof(struct door_live, texts) + (generation & 1) * sizeof text;
    /* The line is in locked memory, which is ours. */
    char *line = (char *)(uintptr_t)inject->header_lines[index][0];
    if (pread(broker->live, text, sizeof text, start + (off_t)place) == sizeof text &&
        memchr(text, 0, sizeof text) && secrets_is_value(text)) {
        (void)snprintf(line + strlen(from->headers[0].name), sizeof text + 2, ": %s", text);
        inject->generations[index] = generation;
    }
    explicit_bzero(text, sizeof text);
}

/* Builds "Header: secret" for each header, in memory of the same kind as the secrets. */
static int make_lines(struct broker *broker, struct brig_error *err)
{
    static const char proxy_header[] = "Proxy-Authorization";
    const struct broker_config *config = &broker->config;
    const char *const *secrets = broker->secrets.texts;
    struct inject *inject = broker->inject;
    size_t size = 1;
    for (size_t i = 0; i < config->inject_count; i++)
        for (size_t k = 0; k < config->injects[i].header_count; k++)
            size += line_size(config->injects[i].headers[k].name,
                              secrets[config->injects[i].headers[k].secret]) +
                    room_of(&config->injects[i], k);
    if (config->proxy_secret >= 0)
        size += line_size(proxy_header, secrets[config->proxy_secret]);
    int status = secrets_map(&inject->lines, size, err);
    if (status < 0)
        return status;
    char *at = inject->lines.memory;
    for (size_t i = 0; i < config->inject_count; i++)
        for (size_t k = 0; k < config->injects[i].header_count; k++) {
            inject->header_lines[i][k] = write_line(&at, config->injects[i].headers[k].name,
                                                    secrets[config->injects[i].headers[k].secret]);
            at += room_of(&config->injects[i], k);
        }
    if (config->proxy_secret >= 0)
        inject->proxy_line = write_line(&at, proxy_header, secrets[config->proxy_secret]);
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
    broker->inject = calloc(1, sizeof *broker->inject);
    if (!broker->inject)
        return brig_fail_nomem(err);
    broker->inject->certificates = confine_certificates(&broker->config);
    if (!broker->inject->certificates && speaks_tls(&broker->config))
        return brig_fail(err, BRIG_E_UNSUPPORTED, 0,
                         "no CA certificates were found to check upstreams with; install "
                         "ca-certificates");
    int status = make_lines(broker, err);
    return status < 0 ? status : transfer_init(broker->inject, &broker->loop, err);
}

void inject_done(struct broker *broker)
{
    if (!broker->inject)
        return;
    transfer_done(broker->inject);
    secrets_done(&broker->inject->lines);
    free(broker->inject);
    broker->inject = NULL;
}

/* ---- One client ---- */

bool inject_has_output(const struct inject_client *client)
{
    return client->output_at < client->output.length;
}

void inject_watch(struct inject_client *client)
{
    uint32_t events = EPOLLRDHUP;
    bool more = !client->body_ended || client->upgrade.phase == UPGRADE_OPEN;
    bool reads =
        client->stage == INJECT_LEAVE || client->stage == INJECT_HEAD ||
        (client->stage == INJECT_TRANSFER && more && client->input_size < INJECT_INPUT_MAX);
    if (reads)
        events |= EPOLLIN;
    if (inject_has_output(client))
        events |= EPOLLOUT;
    if (events != client->watched)
        loop_rewatch(&client->broker->loop, &client->watch, events);
    client->watched = events;
}

static void end(struct inject_client *client, bool reset)
{
    struct broker *broker = client->broker;
    broker_count_off(broker);
    resolver_cancel(&client->resolve);
    transfer_drop(client);
    loop_disarm(&client->timer);
    loop_unqueue(&broker->loop, &client->go_on);
    if (reset)
        socket_reset(client->watch.fd);
    loop_close(&broker->loop, &client->watch);
    str_done(&client->reply_head);
    str_done(&client->output);
    free(client->input);
    loop_free_later(&broker->loop, &client->node);
}

static bool has_ended(const struct inject_client *client)
{
    return !client->node.self;
}

static void tell(struct inject_client *client, enum door_verdict verdict, enum door_because because,
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
    char text[DOOR_DETAIL_MAX];
    (void)snprintf(event.address, sizeof event.address, "%s", client->address);
    if (detail)
        (void)snprintf(text, sizeof text, "%s%s%s", client->what, client->what[0] ? ": " : "",
                       detail);
    else if (client->status > 0)
        (void)snprintf(text, sizeof text, "%s -> %u", client->what, client->status);
    else
        (void)snprintf(text, sizeof text, "%s", client->what);
    broker_tell(broker, &event, client->inject->name, NULL, text);
}

static void abort_client(struct inject_client *client, enum door_because because)
{
    if (client->allowed)
        tell(client, DOOR_ENDED, because, NULL);
    end(client, true);
}

void inject_clients_end(struct broker *broker, enum door_because because)
{
    while (broker->inject_clients)
        abort_client((struct inject_client *)broker->inject_clients, because);
}

/* ---- Sending ---- */

/* Returns how much was sent, or -1 if the client closed the connection. */
static ssize_t send_some(const struct inject_client *client, const char *bytes, size_t size)
{
    ssize_t sent = send(client->watch.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent;
}

bool inject_send(struct inject_client *client, const char *bytes, size_t size)
{
    ssize_t sent = inject_has_output(client) ? 0 : send_some(client, bytes, size);
    if (sent < 0)
        return false;
    client->active_ms = client->broker->loop.now_ms;
    if ((size_t)sent == size)
        return true;
    str_append_bytes(&client->output, bytes + sent, size - (size_t)sent);
    inject_watch(client);
    return !client->output.failed;
}

static bool flush(struct inject_client *client)
{
    ssize_t sent = send_some(client, client->output.data + client->output_at,
                             client->output.length - client->output_at);
    if (sent < 0)
        return false;
    client->output_at += (size_t)sent;
    if (!inject_has_output(client)) {
        str_done(&client->output);
        client->output_at = 0;
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
    transfer_drop(client);
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
        read_request(client);
}

static void refuse(struct inject_client *client, enum door_verdict verdict,
                   enum door_because because, unsigned status, const char *phrase,
                   const char *detail)
{
    char text[REFUSAL_TEXT_MAX];
    tell(client, verdict, because, detail);
    client->allowed = false;
    resolver_cancel(&client->resolve); /* a late answer must not start the transfer */
    transfer_drop(client);
    size_t length = refusal_http(text, status, phrase, client->inject->name, detail);
    if (inject_send(client, text, length))
        leave(client);
    else
        end(client, true);
}

void inject_transferred(struct inject_client *client, enum door_because because,
                        const char *failure)
{
    if (!failure) {
        tell(client, DOOR_ENDED, DOOR_BECAUSE_CLOSED, NULL);
        client->allowed = false;
        client->reply_ended = true;
        if (client->chunked && !inject_send(client, "0\r\n\r\n", 5))
            end(client, true);
        else if (!inject_has_output(client))
            next_request(client);
    } else if (client->reply_begun) {
        tell(client, DOOR_ENDED, DOOR_BECAUSE_RESET, failure);
        end(client, true);
    } else if (client->body_bad) {
        refuse(client, DOOR_ENDED, DOOR_BECAUSE_BAD_REQUEST, 400, "Bad Request",
               client->body.reason);
    } else {
        refuse(client, DOOR_ENDED, because, 502, "Bad Gateway", failure);
    }
}

/* ---- The upstream ---- */

const struct http_authority *inject_first_hop(const struct inject_client *client)
{
    const struct broker_config *config = &client->broker->config;
    const struct http_authority *upstream = &client->inject->upstream;
    bool proxied = !upstream->is_address && strcmp(upstream->name, NET_HOST_NAME) != 0 &&
                   broker_config_is_proxied(config, upstream->name);
    return proxied ? &config->proxy : upstream;
}

static void resolved(struct resolve_request *request, const struct net_address *addresses,
                     size_t count, const char *why)
{
    struct inject_client *client = container_of(request, struct inject_client, resolve);
    if (why) {
        refuse(client, DOOR_ERROR, DOOR_BECAUSE_NO_NAME, 502, "Bad Gateway", why);
        return;
    }
    client->stage = INJECT_TRANSFER;
    client->allowed = true;
    tell(client, DOOR_ALLOWED, DOOR_BECAUSE_RULE, NULL);
    if (!transfer_start(client, addresses, count)) {
        refuse(client, DOOR_ENDED, DOOR_BECAUSE_NO_CONNECT, 502, "Bad Gateway",
               "the request cannot be started");
        return;
    }
    uint64_t idle = client->broker->config.limits[CONFIG_LIMIT_IDLE_MS];
    if (idle > 0)
        loop_arm(&client->broker->loop, &client->timer, idle);
    else
        loop_disarm(&client->timer);
    inject_watch(client);
}

static void find_upstream(struct inject_client *client)
{
    struct broker *broker = client->broker;
    const struct http_authority *host = inject_first_hop(client);
    client->stage = INJECT_RESOLVE;
    client->resolve.done = resolved;
    loop_arm(&broker->loop, &client->timer, broker->config.limits[CONFIG_LIMIT_CONNECT_MS]);
    inject_watch(client);
    const struct net_address loopback[] = {socket_loopback(NET_V4), socket_loopback(NET_V6)};
    if (host->is_address)
        resolved(&client->resolve, &host->address, 1, NULL);
    else if (host == &client->inject->upstream && strcmp(host->name, NET_HOST_NAME) == 0)
        resolved(&client->resolve, loopback, 2, NULL);
    else
        resolver_ask(&broker->resolver, host->name, &client->resolve);
}

/* ---- The request: checks ---- */

/* A server echoes the request, including the credential, in its answer to TRACE and TRACK. */
static bool is_method_allowed(const struct inject_client *client)
{
    const struct config_list *methods = &client->inject->methods;
    if (strcasecmp(client->method, "TRACE") == 0 || strcasecmp(client->method, "TRACK") == 0)
        return false;
    for (size_t i = 0; i < methods->count; i++)
        if (strcmp(methods->items[i], client->method) == 0)
            return true;
    return methods->count == 0;
}

/* The normalised path, without the upstream's prefix. */
static struct http_slice path_of(const struct inject_client *client)
{
    const char *path = client->target + strlen(client->inject->prefix);
    return (struct http_slice){.at = path, .length = strlen(path)};
}

static bool is_path_allowed(const struct inject_client *client)
{
    const struct config_list *paths = &client->inject->paths;
    for (size_t i = 0; i < paths->count; i++)
        if (http_path_below(path_of(client), paths->items[i]))
            return true;
    return paths->count == 0;
}

/* Whether only a part of the upstream's paths is allowed. */
static bool is_bounded(const struct config_inject *inject)
{
    bool all = inject->paths.count == 0;
    for (size_t i = 0; i < inject->paths.count; i++)
        all |= strcmp(inject->paths.items[i], "/") == 0;
    return inject->prefix[0] || !all;
}

/* Fills in client->target: the upstream's prefix and the path, which is normalised unless every
 * path of the upstream is allowed. False if servers could interpret the path differently. */
static bool write_target(struct inject_client *client, const struct http_head *head)
{
    size_t before = strlen(client->inject->prefix), length = head->path.length;
    char *target = client->target;
    memcpy(target, client->inject->prefix, before);
    if (!is_bounded(client->inject))
        memcpy(target + before, head->path.at, length);
    else if (!http_path_normalise(head->path, target + before, &length))
        return false;
    target[before + length] = 0;
    return true;
}

static void describe_path(struct inject_client *client, struct http_slice path)
{
    const char *query = memchr(path.at, '?', path.length);
    size_t length = query ? (size_t)(query - path.at) : path.length;
    (void)snprintf(client->what, sizeof client->what, "%s %.*s", client->method, (int)length,
                   path.at);
}

static void describe(struct inject_client *client, const struct http_head *head)
{
    (void)snprintf(client->method, sizeof client->method, "%.*s", (int)head->method.length,
                   head->method.at);
    describe_path(client, head->path);
    client->active_ms = client->broker->loop.now_ms;
    client->keep_alive = head->keep_alive;
    client->minor = head->minor;
    client->body_bad = false;
    http_body_init(&client->body, head);
    client->body_length = head->framing == HTTP_BODY_CHUNKED ? -1 : (int64_t)head->content_length;
    client->body_ended = client->body_length == 0;
    client->upgrade.phase = upgrade_is_asked(head) ? UPGRADE_CONNECT : UPGRADE_NONE;
}

/* ---- The request: rewritten with the credential, without credentials and framing of the client
 * ---- */

/* Credentials that a client might send; always dropped. */
static const char *const credentials[] = {
    "authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key", "private-token",
};

/* Headers that make some servers use another method or path than the checked ones. */
static const char *const overrides[] = {
    "x-http-method-override", "x-http-method",  "x-method-override", "x-original-method",
    "x-original-url",         "x-original-uri", "x-rewrite-url",
};

/* Headers that libcurl or this file writes. */
static const char *const remade[] = {"host", "content-length", "expect"};

static bool is_among(struct http_slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (http_slice_alias(name, names[i]))
            return true;
    return false;
}

static bool is_dropped(const struct config_inject *inject, const struct http_head *head,
                       const struct http_header *header)
{
    bool restricted = inject->methods.count > 0 || inject->paths.count > 0 || inject->prefix[0];
    for (size_t i = 0; i < inject->header_count; i++)
        if (http_slice_alias(header->name, inject->headers[i].name))
            return true;
    return http_head_is_hop(head, header) ||
           is_among(header->name, credentials, ARRAY_LENGTH(credentials)) ||
           is_among(header->name, remade, ARRAY_LENGTH(remade)) ||
           (restricted && is_among(header->name, overrides, ARRAY_LENGTH(overrides))) ||
           is_among(header->name, inject->strip.items, inject->strip.count);
}

/* For libcurl, "Name:" means to omit a header, and "Name;" that its value is empty. */
static bool add_header(struct inject_client *client, const struct http_header *header)
{
    autostr struct str line = {0};
    str_append_bytes(&line, header->name.at, header->name.length);
    str_append(&line, header->value.length > 0 ? ": " : ";");
    str_append_bytes(&line, header->value.at, header->value.length);
    return !line.failed && transfer_add_header(client, line.data);
}

static bool add_headers(struct inject_client *client, const struct http_head *head)
{
    bool accepts = false;
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];
        accepts |= http_slice_like(header->name, "accept");
        if (!is_dropped(client->inject, head, header) && !add_header(client, header))
            return false;
    }
    if (client->upgrade.phase != UPGRADE_NONE)
        return true; /* the lines below are for libcurl only */
    return transfer_add_header(client, "Expect:") &&
           (accepts || transfer_add_header(client, "Accept:"));
}

/* Checks a request: NULL, or what is wrong with it. */
static const char *judge(struct inject_client *client, const struct http_head *head,
                         enum door_because *ret_because)
{
    *ret_because = DOOR_BECAUSE_METHOD;
    if (!is_method_allowed(client))
        return "the method is not allowed";
    *ret_because = DOOR_BECAUSE_PATH;
    if (!write_target(client, head))
        return "the path can be read in more than one way";
    describe_path(client, path_of(client));
    return is_path_allowed(client) ? NULL : "the path is not allowed";
}

static void obey(struct inject_client *client, const struct http_head *head)
{
    enum door_because because;
    describe(client, head);
    if (head->form != HTTP_FORM_ORIGIN) {
        refuse(client, DOOR_DENIED, DOOR_BECAUSE_BAD_REQUEST, 400, "Bad Request",
               "this address accepts HTTP requests for its own host only; it is not a proxy");
        return;
    }
    client->target = malloc(strlen(client->inject->prefix) + head->path.length + 1);
    if (!client->target) {
        end(client, true);
        return;
    }
    const char *wrong = judge(client, head, &because);
    if (wrong) {
        refuse(client, DOOR_DENIED, because, 403, "Forbidden", wrong);
        return;
    }
    if (broker_is_spent(client->broker)) {
        refuse(client, DOOR_ERROR, DOOR_BECAUSE_BYTES, 503, "Service Unavailable",
               "the limit on bytes");
        return;
    }
    bool added = add_headers(client, head);
    client->input_size -= head->length;
    memmove(client->input, client->input + head->length, client->input_size);
    if (head->expect_continue && !client->body_ended)
        added = added && inject_send(client, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (added)
        find_upstream(client);
    else
        end(client, true);
}

/* Parses the input; when the head is complete, starts or refuses the request. */
static void read_request(struct inject_client *client)
{
    struct http_head head;
    enum http_state state =
        http_head_read(client->input, client->input_size, client->input_seen, &head);
    client->input_seen = client->input_size;
    if (state == HTTP_NEED_MORE && client->input_size < INJECT_INPUT_MAX)
        return;
    client->id = ++client->broker->last_connection;
    client->started_ms = client->broker->loop.now_ms;
    if (state == HTTP_DONE) {
        obey(client, &head);
        return;
    }
    bool large = state != HTTP_BAD;
    refuse(client, DOOR_DENIED, DOOR_BECAUSE_BAD_REQUEST, large ? 431 : 400,
           large ? "Request Header Fields Too Large" : "Bad Request",
           state == HTTP_NEED_MORE ? "the head is too large" : head.reason);
}

/* ---- Events of the client ---- */

static void go_on(struct inject_client *client)
{
    transfer_go_on(client);
    if (!has_ended(client))
        inject_watch(client);
}

static void read_more(struct inject_client *client)
{
    ssize_t got = recv(client->watch.fd, client->input + client->input_size,
                       INJECT_INPUT_MAX - client->input_size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        abort_client(client, DOOR_BECAUSE_RESET);
        return;
    }
    client->input_size += (size_t)got;
    client->active_ms = client->broker->loop.now_ms;
    if (client->stage == INJECT_HEAD)
        read_request(client);
    else
        go_on(client);
}

static void discard(struct inject_client *client)
{
    char scratch[4096];
    ssize_t got = recv(client->watch.fd, scratch, sizeof scratch, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        end(client, false);
}

/* False if the client has been ended. */
static bool write_more(struct inject_client *client)
{
    if (!flush(client)) {
        abort_client(client, DOOR_BECAUSE_RESET);
        return false;
    }
    if (inject_has_output(client))
        return true;
    if (client->reply_ended)
        next_request(client);
    else if (client->stage == INJECT_TRANSFER)
        transfer_go_on(client);
    if (has_ended(client))
        return false;
    inject_watch(client);
    return true;
}

static void client_ready(struct watch *watch, uint32_t events)
{
    struct inject_client *client = container_of(watch, struct inject_client, watch);
    if ((events & EPOLLOUT) && inject_has_output(client) && !write_more(client))
        return;
    if (client->stage == INJECT_LEAVE)
        discard(client);
    else if ((events & EPOLLIN) && client->input_size < INJECT_INPUT_MAX)
        read_more(client);
    else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        abort_client(client,
                     DOOR_BECAUSE_RESET); /* the client cannot receive the answer any more */
}

static void task_runs(struct task *task)
{
    transfer_go_on(container_of(task, struct inject_client, go_on));
}

static void timer_fires(struct timer *timer)
{
    struct inject_client *client = container_of(timer, struct inject_client, timer);
    struct loop *loop = &client->broker->loop;
    int64_t idle = loop->now_ms - client->active_ms;
    int64_t limit = (int64_t)client->broker->config.limits[CONFIG_LIMIT_IDLE_MS];
    if (client->stage == INJECT_RESOLVE) {
        refuse(client, DOOR_ERROR, DOOR_BECAUSE_TIMEOUT, 504, "Gateway Timeout",
               "no answer in time");
        return;
    }
    if (client->stage == INJECT_TRANSFER && limit > 0 && idle < limit) {
        loop_arm(loop, &client->timer, (uint64_t)(limit - idle));
        return;
    }
    if (client->allowed)
        tell(client, DOOR_ENDED, DOOR_BECAUSE_TIMEOUT, "idle for too long");
    end(client, client->stage == INJECT_TRANSFER);
}

void inject_accepted(struct listener *listener, int fd)
{
    struct broker *broker = listener->broker;
    struct inject_client *client = calloc(1, sizeof *client);
    char *input = malloc(INJECT_INPUT_MAX);
    if (!broker_admit(broker, DOOR_SOCKET_INJECT, input ? client : NULL, fd)) {
        free(client);
        free(input);
        return;
    }
    client->input = input;
    client->broker = broker;
    client->inject = &broker->config.injects[listener->index];
    client->index = listener->index;
    client->watch = (struct watch){.fd = fd, .ready = client_ready};
    client->timer.fire = timer_fires;
    client->go_on.run = task_runs;
    client->upgrade.watch.fd = -1;
    node_add(&broker->inject_clients, &client->node);
    socket_tune(fd, false);
    loop_arm(&broker->loop, &client->timer, KEEP_ALIVE_MS);
    if (loop_watch(&broker->loop, &client->watch, 0))
        inject_watch(client);
    else
        end(client, true);
}
