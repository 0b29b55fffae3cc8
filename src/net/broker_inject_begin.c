/* SPDX-License-Identifier: MIT */
/* The beginning of a request to an endpoint with a credential: what may be asked, and of whom. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "net/broker_inject_parts.h"

static void resolved(struct resolve_request *request, const struct net_address *addresses,
                     size_t count, const char *why)
{
    struct inject_client *client =
        (struct inject_client *)((char *)request - offsetof(struct inject_client, resolve));
    if (why) {
        inject_refuse(client, DOOR_ERROR, DOOR_BECAUSE_NO_NAME, 502, "Bad Gateway", why);
        return;
    }
    client->stage = INJECT_TRANSFER;
    client->allowed = true;
    inject_tell(client, DOOR_ALLOWED, DOOR_BECAUSE_RULE, NULL);
    if (!inject_request_start(client, addresses, count)) {
        inject_refuse(client, DOOR_ENDED, DOOR_BECAUSE_NO_CONNECT, 502, "Bad Gateway",
                      "the request cannot be started");
        return;
    }
    uint64_t idle = client->broker->config.limits[CONFIG_LIMIT_IDLE_MS];
    if (idle > 0)
        loop_arm(&client->broker->loop, &client->timer, (int64_t)idle);
    else
        loop_disarm(&client->broker->loop, &client->timer);
    inject_watch(client);
}

/* Whoever is connected to first: the upstream, or the host's proxy on the way to it. */
static void find_upstream(struct inject_client *client)
{
    const struct broker_config *config = &client->broker->config;
    const struct config_host *host = &client->inject->upstream;
    if (config->has_proxy && !host->is_address && !broker_config_is_direct(config, host->name))
        host = &config->proxy;
    client->stage = INJECT_RESOLVE;
    client->resolve.done = resolved;
    loop_arm(&client->broker->loop, &client->timer,
             (int64_t)config->limits[CONFIG_LIMIT_CONNECT_MS]);
    inject_watch(client);
    if (host->is_address)
        resolved(&client->resolve, &host->address, 1, NULL);
    else
        resolver_ask(&client->broker->resolver, host->name, &client->resolve);
}

/* A server answers these with the request as it came, credential and all. */
static bool is_echo(const char *method)
{
    return strcasecmp(method, "TRACE") == 0 || strcasecmp(method, "TRACK") == 0;
}

static bool is_method_allowed(const struct inject_client *client)
{
    const struct config_list *methods = &client->inject->methods;
    if (is_echo(client->method))
        return false;
    for (size_t i = 0; i < methods->count; i++)
        if (strcmp(methods->items[i], client->method) == 0)
            return true;
    return methods->count == 0;
}

/* The path as it is sent, without the upstream's prefix. */
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
    client->id = ++client->broker->last_connection;
    client->started_ms = client->active_ms = client->broker->loop.now_ms;
    client->is_head = strcmp(client->method, "HEAD") == 0;
    client->keep_alive = head->keep_alive;
    client->minor = head->minor;
    client->body_bad = false;
    http_body_init(&client->body, head);
    client->body_length = head->framing == HTTP_BODY_CHUNKED  ? -1
                          : head->framing == HTTP_BODY_LENGTH ? (int64_t)head->content_length
                                                              : 0;
    client->body_ended = client->body_length == 0;
}

static void deny(struct inject_client *client, enum door_because because, const char *detail)
{
    inject_refuse(client, DOOR_DENIED, because, 403, "Forbidden", detail);
}

static void obey(struct inject_client *client, const struct http_head *head)
{
    const struct broker_config *config = &client->broker->config;
    uint64_t limit = config->limits[CONFIG_LIMIT_BYTES];
    describe(client, head);
    if (head->form != HTTP_FORM_ORIGIN || head->upgrade) {
        inject_refuse(
            client, DOOR_DENIED, DOOR_BECAUSE_BAD_REQUEST, 400, "Bad Request",
            "this address accepts HTTP requests for its own host only; it is not a proxy");
        return;
    }
    if (!is_method_allowed(client)) {
        deny(client, DOOR_BECAUSE_METHOD, "the method is not allowed");
        return;
    }
    switch (inject_request_target(client, head)) {
    case INJECT_TARGET_MADE:
        break;
    case INJECT_TARGET_AMBIGUOUS:
        deny(client, DOOR_BECAUSE_PATH, "the path can be read in more than one way");
        return;
    case INJECT_TARGET_FAILED:
        inject_client_end(client, true);
        return;
    }
    describe_path(client, path_of(client));
    if (!is_path_allowed(client)) {
        deny(client, DOOR_BECAUSE_PATH, "the path is not allowed");
        return;
    }
    if (limit > 0 && client->broker->bytes >= limit) {
        inject_refuse(client, DOOR_ERROR, DOOR_BECAUSE_BYTES, 503, "Service Unavailable",
                      "the limit on bytes");
        return;
    }
    bool prepared = inject_request_prepare(client, head);
    client->input_size -= head->length;
    memmove(client->input, client->input + head->length, client->input_size);
    if (head->expect_continue && !client->body_ended)
        prepared = prepared && inject_send(client, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (prepared)
        find_upstream(client);
    else
        inject_client_end(client, true);
}

void inject_read_request(struct inject_client *client)
{
    struct http_head head;
    if (client->broker->paused)
        return;
    enum http_state state =
        http_head_read(client->input, client->input_size, client->input_seen, &head);
    client->input_seen = client->input_size;
    if (state == HTTP_DONE) {
        obey(client, &head);
        return;
    }
    if (state == HTTP_NEED_MORE && client->input_size < INJECT_INPUT_MAX)
        return;
    client->id = ++client->broker->last_connection;
    client->started_ms = client->broker->loop.now_ms;
    bool large = state != HTTP_BAD;
    inject_refuse(client, DOOR_DENIED, DOOR_BECAUSE_BAD_REQUEST, large ? 431 : 400,
                  large ? "Request Header Fields Too Large" : "Bad Request",
                  state == HTTP_NEED_MORE ? "the head is too large" : head.reason);
}
