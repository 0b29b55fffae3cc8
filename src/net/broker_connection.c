/* SPDX-License-Identifier: MIT */
/* One connection out of the jail: accepted, decided on, and ended. */
#include "net/broker_connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/broker_refusal.h"
#include "net/broker_sockets.h"

#define LEAVE_MS 2000
#define HALF_CLOSED_MS ((int64_t)10 * 60 * 1000)
#define INPUT_FIRST 4096
/* Connections at one time whose buffers the kernel alone decides on, and what others share. */
#define BUFFERS_UNBOUND 32
#define BUFFERS_BYTES ((size_t)16 << 20)
#define BUFFER_LEAST ((size_t)64 << 10)

static void client_ready(struct watch *watch, uint32_t events);
static void timer_fires(struct timer *timer);

/* ---- Beginning and end ---- */

struct connection *connection_new(struct broker *broker, enum door_socket via, int fd)
{
    struct connection *connection = broker_has_room(broker) ? calloc(1, sizeof *connection) : NULL;
    if (!connection) {
        broker_tell_full(broker, via);
        socket_reset(fd);
        (void)close(fd);
        return NULL;
    }
    connection->broker = broker;
    connection->id = ++broker->last_connection;
    connection->via = via;
    connection->started_ms = connection->active_ms = broker->loop.now_ms;
    connection->client = (struct watch){.fd = fd, .ready = client_ready};
    connection->world.fd = -1;
    connection->timer.fire = timer_fires;
    connection->next = broker->connections;
    connection->self = &broker->connections;
    if (connection->next)
        connection->next->self = &connection->next;
    broker->connections = connection;
    broker->connection_count++;
    if (!loop_watch(&broker->loop, &connection->client, 0)) {
        connection_end(connection, true);
        return NULL;
    }
    return connection;
}

void connection_end(struct connection *connection, bool reset)
{
    struct broker *broker = connection->broker;
    if (!connection->self)
        return;
    *connection->self = connection->next;
    if (connection->next)
        connection->next->self = connection->self;
    connection->self = NULL;
    broker_count_off(broker);
    upstream_cancel(connection);
    loop_disarm(&broker->loop, &connection->timer);
    if (connection->relay.running) {
        relay_stop(&connection->relay, reset);
    } else {
        if (reset && connection->client.fd >= 0)
            socket_reset(connection->client.fd);
        loop_close(&broker->loop, &connection->client);
    }
    free(connection->input);
    free(connection->proxy_reply);
    loop_free_later(&broker->loop, &connection->garbage);
}

void connections_end(struct broker *broker, enum door_because because)
{
    while (broker->connections) {
        struct connection *connection = broker->connections;
        if (connection->stage != CONNECTION_LEAVE)
            connection_tell(connection, connection->allowed ? DOOR_ENDED : DOOR_ERROR, because, "");
        connection_end(connection, true);
    }
}

/* ---- Events ---- */

void connection_tell(struct connection *connection, enum door_verdict verdict,
                     enum door_because because, const char *detail)
{
    struct door_event event = {
        .verdict = verdict,
        .because = because,
        .via = connection->via,
        .port = connection->port,
        .connection = connection->id,
        .bytes_in = connection->relay.in.total,
        .bytes_out = connection->relay.out.total,
        .duration_ms = (uint64_t)(connection->broker->loop.now_ms - connection->started_ms),
    };
    (void)snprintf(event.name, sizeof event.name, "%s", connection->name);
    (void)snprintf(event.detail, sizeof event.detail, "%s", detail ? detail : "");
    if (connection->has_address)
        net_address_print(&connection->address, event.address);
    if (connection->rule)
        net_rule_print(connection->rule, event.rule);

    broker_tell(connection->broker, &event);
}

/* ---- The client ---- */

bool connection_read(struct connection *connection)
{
    if (connection->input_size == connection->input_capacity) {
        size_t capacity = connection->input_capacity ? connection->input_capacity * 2 : INPUT_FIRST;
        char *input =
            capacity <= CONNECTION_INPUT_MAX ? realloc(connection->input, capacity) : NULL;
        if (!input) {
            connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_BAD_REQUEST,
                              "too much was sent before it could be understood");
            return false;
        }
        connection->input = input;
        connection->input_capacity = capacity;
    }
    ssize_t got = recv(connection->client.fd, connection->input + connection->input_size,
                       connection->input_capacity - connection->input_size, MSG_DONTWAIT);
    if (got > 0) {
        connection->input_size += (size_t)got;
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    connection_tell(connection, DOOR_ERROR, got < 0 ? DOOR_BECAUSE_RESET : DOOR_BECAUSE_CLOSED,
                    "closed by the jail before it said where to");
    connection_end(connection, got < 0);
    return false;
}

void connection_drop_input(struct connection *connection, size_t bytes)
{
    connection->input_size -= bytes;
    connection->input_seen = 0;
    memmove(connection->input, connection->input + bytes, connection->input_size);
}

bool connection_say(struct connection *connection, const void *bytes, size_t size)
{
    if (send(connection->client.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size)
        return true;
    connection_tell(connection, connection->allowed ? DOOR_ENDED : DOOR_ERROR, DOOR_BECAUSE_RESET,
                    "");
    connection_end(connection, true);
    return false;
}

/* Closing with bytes unread would reset the connection, and the answer might be lost with it. */
static void read_rest(struct connection *connection)
{
    char *scratch = connection->broker->relays.scratch;
    ssize_t got = recv(connection->client.fd, scratch, RELAY_CHUNK, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        connection_end(connection, false);
}

static void client_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection =
        (struct connection *)((char *)watch - offsetof(struct connection, client));
    switch (connection->stage) {
    case CONNECTION_FRONT:
        front_ready(connection);
        return;
    case CONNECTION_INSPECT:
        inspect_ready(connection);
        return;
    case CONNECTION_UPSTREAM:
        if (!(events & (EPOLLHUP | EPOLLERR)))
            return;
        connection_tell(connection, DOOR_ERROR, DOOR_BECAUSE_RESET, "closed by the jail");
        connection_end(connection, true);
        return;
    case CONNECTION_LEAVE:
        read_rest(connection);
        return;
    case CONNECTION_RELAY:
        return;
    }
}

void connection_refuse(struct connection *connection, enum door_verdict verdict,
                       enum door_because because, const char *detail)
{
    struct broker *broker = connection->broker;
    connection_tell(connection, verdict, because, detail);
    bool told = front_refuse(connection, verdict, because, detail) ||
                refusal_say(connection, verdict, because, detail);
    if (!told) {
        connection_end(connection, true);
        return;
    }
    upstream_cancel(connection);
    (void)shutdown(connection->client.fd, SHUT_WR);
    connection->stage = CONNECTION_LEAVE;
    loop_rewatch(&broker->loop, &connection->client, EPOLLIN | EPOLLRDHUP);
    loop_arm(&broker->loop, &connection->timer, LEAVE_MS);
}

/* ---- Time ---- */

static void look_at_relay(struct connection *connection)
{
    struct loop *loop = &connection->broker->loop;
    int64_t limit = (int64_t)connection->broker->config.limits[CONFIG_LIMIT_IDLE_MS];
    int64_t idle = loop->now_ms - connection->active_ms;
    bool half = connection->relay.in.closed || connection->relay.out.closed;
    if ((limit > 0 && idle >= limit) || (half && idle >= HALF_CLOSED_MS)) {
        connection_tell(connection, DOOR_ENDED, DOOR_BECAUSE_TIMEOUT, "idle for too long");
        connection_end(connection, true);
        return;
    }
    int64_t period = limit > 0 && limit < HALF_CLOSED_MS ? limit : HALF_CLOSED_MS;
    loop_arm(loop, &connection->timer, period > idle ? period - idle : period);
}

static void timer_fires(struct timer *timer)
{
    struct connection *connection =
        (struct connection *)((char *)timer - offsetof(struct connection, timer));
    switch (connection->stage) {
    case CONNECTION_FRONT:
    case CONNECTION_INSPECT:
        connection_refuse(connection, DOOR_ERROR, DOOR_BECAUSE_TIMEOUT,
                          "nothing was sent that says where to");
        return;
    case CONNECTION_UPSTREAM:
        connection_refuse(connection, DOOR_ERROR, DOOR_BECAUSE_TIMEOUT, "no answer in time");
        return;
    case CONNECTION_RELAY:
        look_at_relay(connection);
        return;
    case CONNECTION_LEAVE:
        connection_end(connection, true);
        return;
    }
}

/* ---- Decisions ---- */

static enum door_because because_of(const struct connection *connection, enum net_reason reason)
{
    switch (reason) {
    case NET_WRONG_PORT:
        return DOOR_BECAUSE_PORT;
    case NET_NOT_PUBLIC:
        return DOOR_BECAUSE_ADDRESS;
    case NET_DENIED:
        return broker_config_injected(&connection->broker->config, connection->name)
                   ? DOOR_BECAUSE_INJECTED
                   : DOOR_BECAUSE_RULE;
    case NET_OK:
    case NET_NO_RULE:
        break;
    }
    return DOOR_BECAUSE_NO_RULE;
}

static void obey(struct connection *connection, struct net_verdict verdict)
{
    connection->rule = verdict.rule;
    if (verdict.reason != NET_OK) {
        enum door_because because = because_of(connection, verdict.reason);
        connection_refuse(connection, DOOR_DENIED, because,
                          because == DOOR_BECAUSE_INJECTED ? "reached through its own endpoint only"
                                                           : net_reason_text(verdict.reason));
        return;
    }
    const struct broker_config *config = &connection->broker->config;
    if (config->limits[CONFIG_LIMIT_BYTES] > 0 &&
        connection->broker->bytes >= config->limits[CONFIG_LIMIT_BYTES]) {
        connection_refuse(connection, DOOR_ERROR, DOOR_BECAUSE_BYTES, "the limit on bytes");
        return;
    }
    connection->inspect = inspect_choose(connection, verdict.tls);
    if (connection->inspect == INSPECT_NOTHING && inspect_must_name(connection))
        connection_refuse(
            connection, DOOR_DENIED, DOOR_BECAUSE_ADDRESS,
            "a name is denied that this address could belong to; use a name, or allow the address");
    else if (connection->inspect == INSPECT_NOTHING)
        upstream_start(connection);
    else
        inspect_start(connection);
}

void connection_aim_name(struct connection *connection, const char *name, uint16_t port)
{
    connection->has_name = true;
    connection->has_address = false;
    connection->port = port;
    (void)snprintf(connection->name, sizeof connection->name, "%s", name);
    /* The host's proxy would take that for the host. */
    if (net_name_is_localhost(name)) {
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_ADDRESS,
                          "localhost is the jail itself; connect without the proxy");
        return;
    }
    obey(connection, net_rules_name(&connection->broker->config.rules, name, port));
}

void connection_aim_address(struct connection *connection, const struct net_address *address,
                            uint16_t port)
{
    struct broker *broker = connection->broker;
    connection->address = *address;
    connection->has_address = true;
    connection->port = port;
    const char *name = names_find(&broker->names, address);
    if (name) {
        connection_aim_name(connection, name, port);
    } else if (names_is_ours(address)) {
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_UNKNOWN,
                          "the address does not stand for a name");
    } else {
        obey(connection, net_rules_address(&broker->config.rules, address, port));
    }
}

void connection_passed(struct connection *connection)
{
    upstream_start(connection);
}

void connection_accepted(struct listener *listener, int fd)
{
    struct connection *connection = connection_new(listener->broker, listener->kind, fd);
    if (!connection)
        return;
    if (listener->kind != DOOR_SOCKET_REDIRECT) {
        front_start(connection);
        return;
    }
    struct net_address address;
    uint16_t port;
    if (socket_destination(fd, &address, &port))
        connection_aim_address(connection, &address, port);
    else
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_UNKNOWN, "no destination");
}

/* ---- Relaying ---- */

static struct connection *of_relay(struct relay *relay)
{
    return (struct connection *)((char *)relay - offsetof(struct connection, relay));
}

static void relay_done(struct relay *relay, bool reset)
{
    struct connection *connection = of_relay(relay);
    connection_tell(connection, DOOR_ENDED, reset ? DOOR_BECAUSE_RESET : DOOR_BECAUSE_CLOSED, "");
    connection_end(connection, reset);
}

static void relay_moved(struct relay *relay, size_t bytes)
{
    struct connection *connection = of_relay(relay);
    connection->active_ms = connection->broker->loop.now_ms;
    broker_count_bytes(connection->broker, bytes);
}

/* What the kernel keeps of a connection grows with its speed, to megabytes: right for a few. */
static void bound_buffers(const struct broker *broker, int fd)
{
    size_t share = BUFFERS_BYTES / broker->connection_count;
    if (broker->connection_count > BUFFERS_UNBOUND)
        socket_bound(fd, share > BUFFER_LEAST ? share : BUFFER_LEAST);
}

void connection_connected(struct connection *connection, int fd, const void *ahead, size_t size)
{
    struct broker *broker = connection->broker;
    connection->allowed = true;
    connection_tell(connection, DOOR_ALLOWED, DOOR_BECAUSE_RULE, "");
    if (!front_succeed(connection)) {
        (void)close(fd);
        return;
    }
    int client = connection->client.fd;
    bound_buffers(broker, client);
    bound_buffers(broker, fd);
    bool publish = connection->via == DOOR_SOCKET_PUBLISH;
    loop_forget(&broker->loop, &connection->client);
    connection->relay.done = relay_done;
    connection->relay.moved = relay_moved;
    if (!relay_start(&connection->relay, &broker->relays, publish ? fd : client,
                     publish ? client : fd, connection->input, connection->input_size, ahead,
                     size)) {
        (void)close(fd);
        connection_tell(connection, DOOR_ENDED, DOOR_BECAUSE_RESET, "out of memory");
        connection_end(connection, true);
        return;
    }
    connection->client.fd = -1;
    free(connection->input);
    connection->input = NULL;
    connection->stage = CONNECTION_RELAY;
    connection->active_ms = broker->loop.now_ms;
    look_at_relay(connection);
}
