/* SPDX-License-Identifier: MIT */
/* One connection out of the jail: accepting, deciding and ending. */
#include "net/broker_connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sockets.h"

#define LEAVE_MS 2000
#define ARRIVE_MS 5000
#define ASK_MAX 64 /* connections that wait for the user's answer */
#define HALF_CLOSED_MS ((int64_t)10 * 60 * 1000)
/* Up to BUFFERS_UNBOUND connections have the kernel's default buffers; more of them share
 * BUFFERS_BYTES. */
#define BUFFERS_UNBOUND 32
#define BUFFERS_BYTES ((size_t)16 << 20)
#define BUFFER_LEAST ((size_t)64 << 10)

static void client_ready(struct watch *watch, uint32_t events);
static void timer_fires(struct timer *timer);

/* ---- Beginning and end ---- */

struct connection *connection_new(struct broker *broker, enum door_socket via, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!broker_admit(broker, via, connection, fd)) {
        free(connection);
        return NULL;
    }
    connection->broker = broker;
    connection->id = ++broker->last_connection;
    connection->via = via;
    connection->started_ms = connection->active_ms = broker->loop.now_ms;
    connection->client = (struct watch){.fd = fd, .ready = client_ready};
    connection->world.fd = -1;
    connection->timer.fire = timer_fires;
    node_add(&broker->connections, &connection->node);
    if (fd < 0 || loop_watch(&broker->loop, &connection->client, 0))
        return connection;
    connection_close(connection, DOOR_ERROR, DOOR_BECAUSE_RESET, "out of memory", true);
    return NULL;
}

void connection_enter(struct connection *connection, enum connection_stage stage, uint32_t events,
                      uint64_t limit_ms)
{
    struct loop *loop = &connection->broker->loop;
    connection->stage = stage;
    if (connection->client.fd >= 0)
        loop_rewatch(loop, &connection->client, events);
    loop_arm(loop, &connection->timer, limit_ms);
}

static void tell(const struct connection *connection, enum door_verdict verdict,
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
    if (connection->has_address)
        net_address_print(&connection->address, event.address);
    broker_tell(connection->broker, &event, connection->name, connection->rule, detail);
}

static void end(struct connection *connection, bool reset)
{
    struct broker *broker = connection->broker;
    hold_release(connection, false);
    broker_count_off(broker);
    upstream_cancel(connection);
    loop_disarm(&connection->timer);
    relay_stop(&connection->relay, reset);
    if (reset && connection->client.fd >= 0)
        socket_reset(connection->client.fd);
    loop_close(&broker->loop, &connection->client);
    free(connection->input);
    free(connection->proxy_reply);
    loop_free_later(&broker->loop, &connection->node);
}

void connection_close(struct connection *connection, enum door_verdict verdict,
                      enum door_because because, const char *detail, bool reset)
{
    tell(connection, verdict, because, detail);
    end(connection, reset);
}

void connections_end(struct broker *broker, enum door_because because)
{
    while (broker->connections) {
        struct connection *connection = (struct connection *)broker->connections;
        if (connection->stage != CONNECTION_LEAVE)
            tell(connection, connection->allowed ? DOOR_ENDED : DOOR_ERROR, because, "");
        end(connection, true);
    }
}

/* Lets a held client in undecided; it is decided about again when it is accepted. */
static void pass(struct connection *connection)
{
    hold_release(connection, true);
    end(connection, false);
}

void connection_refuse(struct connection *connection, enum door_verdict verdict,
                       enum door_because because, const char *detail)
{
    /* A client whose protocol is known is told the reason in it. */
    if (hold_waits(connection) && verdict == DOOR_DENIED &&
        connection->inspect != INSPECT_NOTHING) {
        pass(connection);
        return;
    }
    tell(connection, verdict, because, detail);
    if (connection->client.fd < 0 || !refusal_say(connection, verdict, because, detail)) {
        end(connection, true);
        return;
    }
    upstream_cancel(connection);
    (void)shutdown(connection->client.fd, SHUT_WR);
    connection_enter(connection, CONNECTION_LEAVE, EPOLLIN | EPOLLRDHUP, LEAVE_MS);
}

/* ---- The client ---- */

bool connection_read(struct connection *connection)
{
    size_t size = connection->input_size;
    if (!connection->input)
        connection->input = malloc(CONNECTION_INPUT_MAX);
    if (!connection->input || size == CONNECTION_INPUT_MAX) {
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_BAD_REQUEST,
                          "too much was sent before it could be understood");
        return false;
    }
    ssize_t got = recv(connection->client.fd, connection->input + size, CONNECTION_INPUT_MAX - size,
                       MSG_DONTWAIT);
    if (got > 0)
        connection->input_size += (size_t)got;
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return true;
    connection_close(connection, DOOR_ERROR, got < 0 ? DOOR_BECAUSE_RESET : DOOR_BECAUSE_CLOSED,
                     "closed by the jail before it said where to", got < 0);
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
    connection_close(connection, connection->allowed ? DOOR_ENDED : DOOR_ERROR, DOOR_BECAUSE_RESET,
                     "", true);
    return false;
}

/* Discards unread bytes: close() would reset the connection, and the client could lose the
 * answer. */
static void read_rest(struct connection *connection)
{
    char scratch[4096];
    ssize_t got = recv(connection->client.fd, scratch, sizeof scratch, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        end(connection, false);
}

static void client_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = container_of(watch, struct connection, client);
    switch (connection->stage) {
    case CONNECTION_PROXY:
        proxy_ready(connection);
        return;
    case CONNECTION_INSPECT:
        inspect_ready(connection);
        return;
    case CONNECTION_ASK:
    case CONNECTION_UPSTREAM:
        if (events & (EPOLLHUP | EPOLLERR))
            connection_close(connection, DOOR_ERROR, DOOR_BECAUSE_RESET, "closed by the jail",
                             true);
        return;
    case CONNECTION_LEAVE:
        read_rest(connection);
        return;
    case CONNECTION_ARRIVE:
    case CONNECTION_RELAY:
        return;
    }
}

/* ---- Time ---- */

static void look_at_relay(struct connection *connection)
{
    struct loop *loop = &connection->broker->loop;
    int64_t limit = (int64_t)connection->broker->config.limits[CONFIG_LIMIT_IDLE_MS];
    int64_t idle = loop->now_ms - connection->active_ms;
    bool half = connection->relay.in.closed || connection->relay.out.closed;
    if ((limit > 0 && idle >= limit) || (half && idle >= HALF_CLOSED_MS)) {
        connection_close(connection, DOOR_ENDED, DOOR_BECAUSE_TIMEOUT, "idle for too long", true);
        return;
    }
    int64_t period = limit > 0 && limit < HALF_CLOSED_MS ? limit : HALF_CLOSED_MS;
    loop_arm(loop, &connection->timer, (uint64_t)(period > idle ? period - idle : period));
}

static void timer_fires(struct timer *timer)
{
    struct connection *connection = container_of(timer, struct connection, timer);
    switch (connection->stage) {
    case CONNECTION_PROXY:
    case CONNECTION_INSPECT:
        connection_refuse(connection, DOOR_ERROR, DOOR_BECAUSE_TIMEOUT,
                          "nothing was sent that says where to");
        return;
    case CONNECTION_ASK:
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_NO_RULE,
                          "nobody allowed it in time");
        return;
    case CONNECTION_UPSTREAM:
        connection_refuse(connection, DOOR_ERROR, DOOR_BECAUSE_TIMEOUT, "no answer in time");
        return;
    case CONNECTION_ARRIVE:
        connection_close(connection, DOOR_ERROR, DOOR_BECAUSE_RESET, "closed by the jail", true);
        return;
    case CONNECTION_RELAY:
        look_at_relay(connection);
        return;
    case CONNECTION_LEAVE:
        end(connection, true);
        return;
    }
}

/* ---- Decisions ---- */

/* Lets the connection wait for the user's answer. The user is asked once for each destination. */
static void ask(struct connection *connection)
{
    struct broker *broker = connection->broker;
    size_t waiting = 0;
    bool asked = false;
    for (const struct node *at = broker->connections; at; at = at->next) {
        const struct connection *other = (const struct connection *)at;
        if (other->stage != CONNECTION_ASK || other == connection)
            continue;
        waiting++;
        asked = asked ||
                (other->port == connection->port && strcmp(other->name, connection->name) == 0);
    }
    if (waiting >= ASK_MAX) {
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_NO_RULE,
                          "too many connections wait to be allowed");
        return;
    }
    connection_enter(connection, CONNECTION_ASK, 0, broker->config.limits[CONFIG_LIMIT_ASK_MS]);
    if (!asked)
        tell(connection, DOOR_WAITING, DOOR_BECAUSE_NO_RULE, "");
}

static bool must_ask(const struct connection *connection, enum net_reason reason)
{
    return connection->broker->config.ask && connection->has_name &&
           (reason == NET_NO_RULE || reason == NET_WRONG_PORT);
}

static void obey(struct connection *connection, struct net_verdict verdict)
{
    const struct broker *broker = connection->broker;
    connection->rule = verdict.rule;
    if (must_ask(connection, verdict.reason)) {
        ask(connection);
        return;
    }
    if (verdict.reason != NET_OK) {
        const char *detail;
        enum door_because because =
            broker_config_because(&broker->config, connection->name, verdict.reason, &detail);
        connection_refuse(connection, DOOR_DENIED, because, detail);
        return;
    }
    if (broker_is_spent(broker)) {
        connection_refuse(connection, DOOR_ERROR, DOOR_BECAUSE_BYTES, "the limit on bytes");
        return;
    }
    connection->inspect = inspect_choose(connection, verdict.tls);
    if (hold_waits(connection) && inspect_must_name(connection))
        pass(connection); /* only its first bytes can tell whether it may connect at all */
    else if (hold_waits(connection))
        upstream_start(connection); /* before connect() succeeds; the inspection follows */
    else if (connection->inspect != INSPECT_NOTHING)
        inspect_start(connection);
    else if (inspect_must_name(connection))
        connection_refuse(
            connection, DOOR_DENIED, DOOR_BECAUSE_ADDRESS,
            "a name is denied that this address could belong to; use a name, or allow the address");
    else
        upstream_start(connection);
}

void connections_ask_again(struct broker *broker, const struct net_rule *before)
{
    const struct net_rules *rules = &broker->config.rules;
    for (struct node *at = broker->connections; at; at = at->next) {
        struct connection *connection = (struct connection *)at;
        if (connection->rule)
            connection->rule = rules->items + (connection->rule - before);
    }
    for (struct node *at = broker->connections, *next; at; at = next) {
        struct connection *connection = (struct connection *)at;
        next = at->next;
        if (connection->stage != CONNECTION_ASK)
            continue;
        struct net_verdict verdict = net_rules_name(rules, connection->name, connection->port);
        if (!must_ask(connection, verdict.reason))
            obey(connection, verdict);
    }
}

static void judge_again(struct connection *connection)
{
    const struct broker *broker = connection->broker;
    const struct net_rules *rules = &broker->config.rules;
    bool aimed =
        connection->stage != CONNECTION_PROXY && (connection->has_name || connection->has_address);
    connection->rule = NULL;
    if (!aimed || connection->stage == CONNECTION_LEAVE || connection->via == DOOR_SOCKET_PUBLISH)
        return;
    struct net_verdict verdict =
        connection->has_name ? net_rules_name(rules, connection->name, connection->port)
                             : net_rules_address(rules, &connection->address, connection->port);
    connection->rule = verdict.rule;
    if (connection->stage == CONNECTION_ASK) {
        if (!must_ask(connection, verdict.reason))
            obey(connection, verdict);
    } else if (verdict.reason != NET_OK) {
        const char *detail;
        enum door_because because =
            broker_config_because(&broker->config, connection->name, verdict.reason, &detail);
        connection_close(connection, connection->allowed ? DOOR_ENDED : DOOR_DENIED, because,
                         "the rules have changed", true);
    }
}

void connections_judge_again(struct broker *broker)
{
    for (struct node *at = broker->connections, *next; at; at = next) {
        next = at->next;
        judge_again((struct connection *)at);
    }
}

static void aim_at_name(struct connection *connection, const char *name)
{
    connection->has_name = true;
    connection->has_address = false;
    (void)snprintf(connection->name, sizeof connection->name, "%s", name);
    /* The host's proxy would resolve "localhost" to the host. */
    if (net_name_is_localhost(name))
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_ADDRESS,
                          "localhost is the jail itself; connect without the proxy");
    else
        obey(connection, net_rules_name(&connection->broker->config.rules, name, connection->port));
}

void connection_aim(struct connection *connection, const char *name,
                    const struct net_address *address, uint16_t port)
{
    struct broker *broker = connection->broker;
    broker_hear(broker);
    connection->port = port;
    if (!name) {
        connection->address = *address;
        connection->has_address = true;
        name = names_find(&broker->names, address);
    }
    if (name)
        aim_at_name(connection, name);
    else if (names_is_ours(address))
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_UNKNOWN,
                          "the address does not stand for a name");
    else
        obey(connection, net_rules_address(&broker->config.rules, address, port));
}

bool connection_held(struct broker *broker, const struct hold *hold)
{
    struct connection *connection = connection_new(broker, DOOR_SOCKET_REDIRECT, -1);
    if (!connection)
        return false;
    connection->hold = *hold;
    connection_aim(connection, NULL, &hold->to, hold->to_port);
    return true;
}

void connection_arrived(struct connection *connection, int fd)
{
    connection->client.fd = fd;
    if (!loop_watch(&connection->broker->loop, &connection->client, 0))
        connection_close(connection, DOOR_ERROR, DOOR_BECAUSE_RESET, "out of memory", true);
    else if (connection->inspect != INSPECT_NOTHING)
        inspect_start(connection);
    else
        upstream_start(connection);
}

void connection_accepted(struct listener *listener, int fd)
{
    struct connection *held =
        listener->kind == DOOR_SOCKET_REDIRECT ? hold_find(listener->broker, fd) : NULL;
    if (held) {
        connection_arrived(held, fd);
        return;
    }
    struct connection *connection = connection_new(listener->broker, listener->kind, fd);
    struct net_address address;
    uint16_t port;
    if (!connection)
        return;
    if (listener->kind != DOOR_SOCKET_REDIRECT)
        proxy_start(connection);
    else if (socket_destination(fd, &address, &port))
        connection_aim(connection, NULL, &address, port);
    else
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_UNKNOWN, "no destination");
}

/* ---- Relaying ---- */

static void relay_done(struct relay *relay, bool reset)
{
    connection_close(container_of(relay, struct connection, relay), DOOR_ENDED,
                     reset ? DOOR_BECAUSE_RESET : DOOR_BECAUSE_CLOSED, "", reset);
}

static void relay_moved(struct relay *relay, size_t bytes)
{
    struct connection *connection = container_of(relay, struct connection, relay);
    connection->active_ms = connection->broker->loop.now_ms;
    broker_count_bytes(connection->broker, bytes);
}

/* The kernel's buffers of a fast connection grow to megabytes, which is right only for a few
 * connections. */
static void bound_buffers(const struct broker *broker, int fd)
{
    size_t share = BUFFERS_BYTES / broker->connection_count;
    if (broker->connection_count > BUFFERS_UNBOUND)
        socket_bound(fd, share > BUFFER_LEAST ? share : BUFFER_LEAST);
}

void connection_connected(struct connection *connection, int fd, const void *ahead, size_t size)
{
    struct broker *broker = connection->broker;
    if (hold_waits(connection)) {
        connection->world = (struct watch){.fd = fd};
        hold_release(connection, true);
        connection_enter(connection, CONNECTION_ARRIVE, 0, ARRIVE_MS);
        return;
    }
    connection->allowed = true;
    tell(connection, DOOR_ALLOWED, DOOR_BECAUSE_RULE, "");
    if (!proxy_succeed(connection)) {
        (void)close(fd);
        return;
    }
    int client = loop_forget(&broker->loop, &connection->client);
    bound_buffers(broker, client);
    bound_buffers(broker, fd);
    bool publish = connection->via == DOOR_SOCKET_PUBLISH;
    const struct relay_ahead both = {.to_world = connection->input,
                                     .to_world_size = connection->input_size,
                                     .to_jail = ahead,
                                     .to_jail_size = size};
    connection->relay.done = relay_done;
    connection->relay.moved = relay_moved;
    connection->stage = CONNECTION_RELAY;
    connection->active_ms = broker->loop.now_ms;
    if (!relay_start(&connection->relay, &broker->loop, publish ? fd : client,
                     publish ? client : fd, &both)) {
        connection_close(connection, DOOR_ENDED, DOOR_BECAUSE_RESET, "out of memory", true);
        return;
    }
    free(connection->input);
    connection->input = NULL;
    look_at_relay(connection);
}
