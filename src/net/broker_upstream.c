/* SPDX-License-Identifier: MIT */
/* The other side of a connection: the name is resolved, each address it has is asked about, and the
 * very address that was asked about is connected to. Or the host's own proxy is asked to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"
#include "net/broker_connection.h"
#include "net/broker_route.h"

#define PROXY_REPLY_MAX 8192

static void resolved(struct resolve_request *request, const struct net_address *addresses,
                     size_t count, const char *why);
static void dialled(struct dial *dial, int fd, const struct net_address *address, int sys_errno);

static bool goes_through_proxy(const struct connection *connection)
{
    const struct broker_config *config = &connection->broker->config;
    if (connection->rule && connection->rule->kind == NET_RULE_HOST)
        return false;
    if (connection->has_name)
        return !broker_config_is_direct(config, connection->name);
    /* What is granted as an address is in the neighbourhood, where no proxy is needed. */
    return config->has_proxy && net_address_class(&connection->address) == NET_PUBLIC;
}

static void fail(struct connection *connection, enum door_because because, const char *detail)
{
    connection_refuse(connection, DOOR_ERROR, because, detail);
}

/* ---- Addresses ---- */

/* A name's address is never this machine's own: it would be refused. */
static bool may_be_own(const struct net_rule *rule)
{
    return rule && (rule->kind == NET_RULE_HOST || rule->kind == NET_RULE_RANGE);
}

static void dial_all(struct connection *connection, const struct net_address *addresses,
                     size_t count, uint16_t port)
{
    struct broker *broker = connection->broker;
    connection->dial.done = dialled;
    connection->dial.routes = may_be_own(connection->rule) ? broker->routes : -1;
    dial_start(&connection->dial, &broker->loop, addresses, count, port);
}

static void dial_host(struct connection *connection)
{
    static const uint8_t loopback4[4] = {127, 0, 0, 1};
    static const uint8_t loopback6[16] = {[15] = 1};
    const struct net_address both[] = {net_address_v4(loopback4), net_address_v6(loopback6)};
    dial_all(connection, both, 2, connection->port);
}

/* An address that is not to be connected to, and why. */
struct refusal {
    struct net_address address;
    struct net_verdict verdict;
    enum route_kind route;
};

/* What is only public, and not granted as an address, must not be this machine or a neighbour. */
static bool is_allowed(const struct connection *connection, struct refusal *judged)
{
    if (judged->verdict.reason != NET_OK)
        return false;
    bool granted = judged->verdict.rule && judged->verdict.rule->kind == NET_RULE_RANGE;
    judged->route = granted ? ROUTE_FAR : route_find(connection->broker->routes, &judged->address);
    return judged->route == ROUTE_FAR;
}

/* Keeps those that may be connected to; of the others, the last is told of. */
static size_t choose(const struct connection *connection, const struct net_address *addresses,
                     size_t count, struct net_address *chosen, struct refusal *ret_refusal)
{
    const struct net_rules *rules = &connection->broker->config.rules;
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < DIAL_ADDRESSES_MAX; i++) {
        struct refusal judged = {
            .address = addresses[i],
            .verdict = net_rules_resolved(rules, &addresses[i], connection->port),
        };
        if (is_allowed(connection, &judged))
            chosen[kept++] = addresses[i];
        else
            *ret_refusal = judged;
    }
    return kept;
}

static void refuse_address(struct connection *connection, const struct refusal *refusal)
{
    char detail[DOOR_DETAIL_MAX], text[NET_ADDRESS_TEXT_MAX];
    connection->address = refusal->address;
    connection->has_address = true;
    net_address_print(&refusal->address, text);
    if (refusal->verdict.reason == NET_DENIED) {
        connection->rule = refusal->verdict.rule;
        connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_RULE, "a rule denies its address");
        return;
    }
    if (refusal->verdict.reason == NET_OK)
        (void)snprintf(detail, sizeof detail,
                       "its address %s is %s; to reach it, allow the address", text,
                       route_text(refusal->route));
    else
        (void)snprintf(detail, sizeof detail,
                       "its address %s is not public (%s); to reach it, allow the address", text,
                       net_class_name(refusal->verdict.class));
    connection_refuse(connection, DOOR_DENIED, DOOR_BECAUSE_ADDRESS, detail);
}

static void resolved(struct resolve_request *request, const struct net_address *addresses,
                     size_t count, const char *why)
{
    struct connection *connection =
        (struct connection *)((char *)request - offsetof(struct connection, resolve));
    struct net_address chosen[DIAL_ADDRESSES_MAX];
    struct refusal refusal = {0};
    if (why) {
        fail(connection, DOOR_BECAUSE_NO_NAME, why);
        return;
    }
    if (goes_through_proxy(
            connection)) { /* it was the proxy that was resolved, whom the host trusts */
        dial_all(connection, addresses, count, connection->broker->config.proxy.port);
        return;
    }
    size_t kept = choose(connection, addresses, count, chosen, &refusal);
    if (kept == 0)
        refuse_address(connection, &refusal);
    else
        dial_all(connection, chosen, kept, connection->port);
}

/* ---- The host's proxy ---- */

/* Where the proxy's answer ends, or 0. */
static size_t reply_end(const char *reply, size_t size)
{
    const char *end = memmem(reply, size, "\r\n\r\n", 4);
    return end ? (size_t)(end - reply) + 4 : 0;
}

static bool is_yes(const char *reply, size_t size)
{
    return size > 12 && memcmp(reply, "HTTP/1.", 7) == 0 && memcmp(reply + 8, " 2", 2) == 0;
}

static void read_reply(struct connection *connection)
{
    char *reply = connection->proxy_reply;
    size_t *size = &connection->proxy_reply_size;
    ssize_t got = recv(connection->world.fd, reply + *size, PROXY_REPLY_MAX - *size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "the host's proxy closed the connection");
        return;
    }
    *size += (size_t)got;
    size_t end = reply_end(reply, *size);
    if (end == 0 && *size < PROXY_REPLY_MAX)
        return;
    if (end == 0 || !is_yes(reply, end)) {
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "the host's proxy refuses it");
        return;
    }
    int fd = connection->world.fd;
    loop_forget(&connection->broker->loop, &connection->world);
    connection->world.fd = -1;
    connection_connected(connection, fd, reply + end, *size - end);
}

static void world_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    read_reply((struct connection *)((char *)watch - offsetof(struct connection, world)));
}

static void write_request(const struct connection *connection, struct str *text)
{
    const struct broker *broker = connection->broker;
    char host[NET_NAME_MAX + 16], address[NET_ADDRESS_TEXT_MAX];
    if (connection->has_name) {
        (void)snprintf(host, sizeof host, "%s:%u", connection->name, connection->port);
    } else {
        bool v6 = connection->address.family == NET_V6;
        net_address_print(&connection->address, address);
        (void)snprintf(host, sizeof host, v6 ? "[%s]:%u" : "%s:%u", address, connection->port);
    }
    str_appendf(text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", host, host);
    if (broker->config.proxy_secret >= 0)
        str_appendf(text, "Proxy-Authorization: %s\r\n",
                    broker->secrets.texts[broker->config.proxy_secret]);
    str_append(text, "\r\n");
}

static void ask_proxy(struct connection *connection, int fd)
{
    struct loop *loop = &connection->broker->loop;
    autostr struct str request = {0};
    write_request(connection, &request);
    connection->proxy_reply = malloc(PROXY_REPLY_MAX);
    connection->world = (struct watch){.fd = fd, .ready = world_ready};
    bool sent = !request.failed && connection->proxy_reply &&
                send(fd, request.data, request.length, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                    (ssize_t)request.length;
    if (request.data)
        explicit_bzero(request.data, request.length);
    if (!sent || !loop_watch(loop, &connection->world, EPOLLIN))
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "the host's proxy cannot be asked");
}

/* ---- Connected ---- */

static void dialled(struct dial *dial, int fd, const struct net_address *address, int sys_errno)
{
    struct connection *connection =
        (struct connection *)((char *)dial - offsetof(struct connection, dial));
    char text[ERROR_TEXT_MAX], detail[DOOR_DETAIL_MAX];
    if (fd < 0) {
        (void)snprintf(detail, sizeof detail, "cannot connect%s: %s",
                       goes_through_proxy(connection) ? " to the host's proxy" : "",
                       error_text(sys_errno, text));
        fail(connection, DOOR_BECAUSE_NO_CONNECT, detail);
        return;
    }
    if (goes_through_proxy(connection)) {
        ask_proxy(connection, fd);
        return;
    }
    connection->address = *address;
    connection->has_address = true;
    connection_connected(connection, fd, NULL, 0);
}

/* ---- Beginning and end ---- */

/* One that was given as such. */
static void dial_address(struct connection *connection)
{
    struct refusal judged = {.address = connection->address, .verdict = {.rule = connection->rule}};
    if (is_allowed(connection, &judged))
        dial_all(connection, &connection->address, 1, connection->port);
    else
        refuse_address(connection, &judged);
}

static void start_through_proxy(struct connection *connection)
{
    const struct config_host *proxy = &connection->broker->config.proxy;
    if (proxy->is_address)
        dial_all(connection, &proxy->address, 1, proxy->port);
    else
        resolver_ask(&connection->broker->resolver, proxy->name, &connection->resolve);
}

void upstream_start(struct connection *connection)
{
    struct broker *broker = connection->broker;
    connection->stage = CONNECTION_UPSTREAM;
    connection->resolve.done = resolved;
    loop_rewatch(&broker->loop, &connection->client, 0);
    loop_arm(&broker->loop, &connection->timer,
             (int64_t)broker->config.limits[CONFIG_LIMIT_CONNECT_MS]);
    if (goes_through_proxy(connection))
        start_through_proxy(connection);
    else if (connection->rule && connection->rule->kind == NET_RULE_HOST)
        dial_host(connection);
    else if (connection->has_name)
        resolver_ask(&broker->resolver, connection->name, &connection->resolve);
    else
        dial_address(connection);
}

void upstream_cancel(struct connection *connection)
{
    resolver_cancel(&connection->resolve);
    dial_cancel(&connection->dial);
    loop_close(&connection->broker->loop, &connection->world);
}
