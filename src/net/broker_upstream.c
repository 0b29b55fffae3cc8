/* SPDX-License-Identifier: MIT */
/* The other side of a connection. Out of the jail: resolves the name, applies the rules to each of
 * its addresses and connects to exactly these addresses, or asks the host's proxy to connect. Into
 * the jail (--publish): the connector creates a socket in the jail's network namespace. */
#include "net/broker_connection.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "net/broker_confine.h"
#include "net/sockets.h"

#define PROXY_REPLY_MAX 8192

static void dialled(struct dial *dial, int fd, const struct net_address *address, int sys_errno);

static bool goes_through_proxy(const struct connection *connection)
{
    const struct broker_config *config = &connection->broker->config;
    if (connection->rule && connection->rule->kind == NET_RULE_HOST)
        return false;
    if (connection->has_name)
        return broker_config_is_proxied(config, connection->name);
    /* An address that is granted as such is in the local network, which needs no proxy. */
    return config->has_proxy && net_address_class(&connection->address) == NET_PUBLIC;
}

static void fail(struct connection *connection, enum door_because because, const char *detail)
{
    connection_refuse(connection, DOOR_ERROR, because, detail);
}

/* ---- Addresses ---- */

static void dial_all(struct connection *connection, const struct net_address *addresses,
                     size_t count, uint16_t port)
{
    struct broker *broker = connection->broker;
    connection->dial.done = dialled;
    dial_start(&connection->dial, &broker->loop, addresses, count, port);
}

static void dial_host(struct connection *connection)
{
    const struct net_address both[] = {socket_loopback(NET_V4), socket_loopback(NET_V6)};
    dial_all(connection, both, 2, connection->port);
}

/* An address that must not be connected to, and the reason. */
struct refusal {
    struct net_address address;
    struct net_verdict verdict;
    enum route_kind route;
};

/* An address that is merely public, and not granted as an address, must not be this machine or a
 * neighbour. */
static bool is_allowed(const struct connection *connection, struct refusal *judged)
{
    if (judged->verdict.reason != NET_OK)
        return false;
    bool granted = judged->verdict.rule && judged->verdict.rule->kind == NET_RULE_RANGE;
    judged->route = granted ? ROUTE_FAR : route_find(connection->broker->routes, &judged->address);
    return judged->route == ROUTE_FAR;
}

/* Selects the addresses that may be connected to; *ret_refusal is the last of the others. */
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
    struct connection *connection = container_of(request, struct connection, resolve);
    struct net_address chosen[DIAL_ADDRESSES_MAX];
    struct refusal refusal = {0};
    if (why) {
        fail(connection, DOOR_BECAUSE_NO_NAME, why);
        return;
    }
    if (goes_through_proxy(connection)) { /* the name was the proxy's, which the host trusts */
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

static bool is_yes(const char *reply, size_t size)
{
    return size > 12 && memcmp(reply, "HTTP/1.", 7) == 0 && memcmp(reply + 8, " 2", 2) == 0;
}

static void proxy_replies(struct watch *watch, uint32_t events)
{
    struct connection *connection = container_of(watch, struct connection, world);
    char *reply = connection->proxy_reply;
    size_t *size = &connection->proxy_reply_size;
    (void)events;
    ssize_t got = recv(watch->fd, reply + *size, PROXY_REPLY_MAX - *size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "the host's proxy closed the connection");
        return;
    }
    *size += (size_t)got;
    const char *end = memmem(reply, *size, "\r\n\r\n", 4);
    if (!end && *size < PROXY_REPLY_MAX)
        return;
    size_t length = end ? (size_t)(end - reply) + 4 : 0;
    if (!is_yes(reply, length)) {
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "the host's proxy refuses it");
        return;
    }
    int fd = loop_forget(&connection->broker->loop, &connection->world);
    connection->proxy_reply_used = length;
    connection_connected(connection, fd, reply + length, *size - length);
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
    connection->world = (struct watch){.fd = fd, .ready = proxy_replies};
    bool sent = !request.failed && connection->proxy_reply &&
                send(fd, request.data, request.length, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                    (ssize_t)request.length;
    if (request.data)
        explicit_bzero(request.data, request.length);
    if (!sent || !loop_watch(loop, &connection->world, EPOLLIN))
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "the host's proxy cannot be asked");
}

static void dialled(struct dial *dial, int fd, const struct net_address *address, int sys_errno)
{
    struct connection *connection = container_of(dial, struct connection, dial);
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

/* ---- Out of the jail ---- */

static void dial_address(struct connection *connection)
{
    struct refusal judged = {.address = connection->address, .verdict = {.rule = connection->rule}};
    if (is_allowed(connection, &judged))
        dial_all(connection, &connection->address, 1, connection->port);
    else
        refuse_address(connection, &judged);
}

static void dial_proxy(struct connection *connection)
{
    const struct http_authority *proxy = &connection->broker->config.proxy;
    if (proxy->is_address)
        dial_all(connection, &proxy->address, 1, proxy->port);
    else
        resolver_ask(&connection->broker->resolver, proxy->name, &connection->resolve);
}

void upstream_start(struct connection *connection)
{
    struct broker *broker = connection->broker;
    if (connection->world.fd >= 0) {
        /* It was connected before the client was let in. */
        size_t used = connection->proxy_reply_used;
        connection_connected(connection, loop_forget(&broker->loop, &connection->world),
                             connection->proxy_reply ? connection->proxy_reply + used : NULL,
                             connection->proxy_reply_size - used);
        return;
    }
    connection->resolve.done = resolved;
    connection_enter(connection, CONNECTION_UPSTREAM, 0,
                     broker->config.limits[CONFIG_LIMIT_CONNECT_MS]);
    if (goes_through_proxy(connection))
        dial_proxy(connection);
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

/* ---- Into the jail ---- */

static void ask_connector(struct connection *connection, enum door_loopback loopback)
{
    const struct broker *broker = connection->broker;
    const struct door_connect message = {.version = DOOR_WIRE_VERSION,
                                         .loopback = loopback,
                                         .port = connection->port,
                                         .id = (uint32_t)connection->id};
    if (!socket_send(broker->connector.fd, &message, sizeof message, NULL, 0))
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "the jail cannot be reached");
}

static void try_ipv6(struct connection *connection, int sys_errno)
{
    loop_close(&connection->broker->loop, &connection->world);
    if (connection->inside_tried_ipv6) {
        fail(connection, DOOR_BECAUSE_NO_CONNECT,
             sys_errno == ECONNREFUSED ? "nothing listens on this port in the jail"
                                       : "the jail cannot be reached");
        return;
    }
    connection->inside_tried_ipv6 = true;
    ask_connector(connection, DOOR_LOOPBACK_IPV6);
}

static void inside_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection = container_of(watch, struct connection, world);
    int sys_errno = 0;
    socklen_t length = sizeof sys_errno;
    (void)events;
    (void)getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &sys_errno, &length);
    if (sys_errno != 0)
        try_ipv6(connection, sys_errno);
    else
        connection_connected(connection, loop_forget(&connection->broker->loop, watch), NULL, 0);
}

static void take_inside(struct connection *connection, int fd, int sys_errno)
{
    struct loop *loop = &connection->broker->loop;
    if (fd < 0) {
        try_ipv6(connection, sys_errno);
        return;
    }
    connection->world = (struct watch){.fd = fd, .ready = inside_ready};
    if (!loop_watch(loop, &connection->world, EPOLLOUT))
        fail(connection, DOOR_BECAUSE_NO_CONNECT, "out of memory");
}

/* Whether the connection waits for the connector. */
static bool waits(const struct connection *connection)
{
    return connection->via == DOOR_SOCKET_PUBLISH && connection->stage == CONNECTION_UPSTREAM &&
           connection->world.fd < 0;
}

/* The connection that an answer is for; NULL if it has ended. */
static struct connection *find_waiting(const struct broker *broker, uint32_t id)
{
    for (struct node *at = broker->connections; at; at = at->next) {
        struct connection *connection = (struct connection *)at;
        if ((uint32_t)connection->id == id && waits(connection))
            return connection;
    }
    return NULL;
}

/* The connector has closed its socket or sent an invalid message: nothing is published any more. */
static void lose_connector(struct broker *broker)
{
    loop_close(&broker->loop, &broker->connector);
    for (struct node *at = broker->connections, *next; at; at = next) {
        next = at->next;
        if (waits((struct connection *)at))
            fail((struct connection *)at, DOOR_BECAUSE_NO_CONNECT, "the jail cannot be reached");
    }
}

static void connector_ready(struct watch *watch, uint32_t events)
{
    struct broker *broker = container_of(watch, struct broker, connector);
    struct door_connected reply;
    int fd = -1;
    size_t count = 1;
    (void)events;
    ssize_t length = socket_receive(watch->fd, &reply, sizeof reply, &fd, &count);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool good = length == (ssize_t)sizeof reply && reply.version == DOOR_WIRE_VERSION &&
                (count == 1) == (reply.sys_errno == 0);
    struct connection *connection = good ? find_waiting(broker, reply.id) : NULL;
    if (connection)
        take_inside(connection, fd, reply.sys_errno);
    else
        own_close(&fd);
    if (!good)
        lose_connector(broker);
}

bool publish_connector(struct broker *broker, int fd)
{
    if (broker->connector.fd >= 0)
        return false;
    broker->connector = (struct watch){.fd = fd, .ready = connector_ready};
    return loop_watch(&broker->loop, &broker->connector, EPOLLIN);
}

void publish_accepted(struct listener *listener, int fd)
{
    struct broker *broker = listener->broker;
    struct connection *connection = connection_new(broker, DOOR_SOCKET_PUBLISH, fd);
    union socket_address peer;
    socklen_t length = sizeof peer;
    uint16_t peer_port;
    if (!connection)
        return;
    connection->port = broker->config.publish[listener->index];
    connection->has_address = getpeername(fd, &peer.any, &length) == 0 &&
                              socket_address_read(&peer, &connection->address, &peer_port);
    connection_enter(connection, CONNECTION_UPSTREAM, 0,
                     broker->config.limits[CONFIG_LIMIT_CONNECT_MS]);
    ask_connector(connection, DOOR_LOOPBACK_IPV4);
}

/* ---- The connector. A socket belongs to the network namespace it was created in, so reaching a
 * server in the jail needs a process in that namespace. The connector runs in the jail's network
 * namespace, and in its user namespace if that is needed to enter, but in none of its other
 * namespaces: processes in the jail cannot see it. It reads requests of a fixed size and calls
 * socket() and connect(); its filter (broker_confine.c) allows nothing else. It never waits for a
 * server. ---- */

/* Returns a socket that is connected or connecting; or -1 with errno. */
static int connect_inside(const struct door_connect *request)
{
    union socket_address to;
    struct net_address loopback =
        socket_loopback(request->loopback == DOOR_LOOPBACK_IPV6 ? NET_V6 : NET_V4);
    if (request->port == 0 || request->port > UINT16_MAX) {
        errno = EINVAL;
        return -1;
    }
    socklen_t length = socket_address_fill(&to, &loopback, (uint16_t)request->port);
    autoclose int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || (connect(fd, &to.any, length) < 0 && errno != EINPROGRESS))
        return -1;
    return take_fd(&fd);
}

/* False if the broker has closed its socket. */
static bool answer_broker(int socket, const struct door_connect *request)
{
    struct door_connected reply = {.version = DOOR_WIRE_VERSION, .id = request->id};
    autoclose int fd = connect_inside(request);
    if (fd < 0)
        reply.sys_errno = errno;
    return socket_send(socket, &reply, sizeof reply, &fd, fd >= 0 ? 1 : 0);
}

int connector_run(int socket, struct brig_error *err)
{
    static const char *const no_files[] = {NULL};
    int status = confine(CONFINE_CONNECTOR, no_files, err);
    if (status < 0)
        return status;
    for (;;) {
        struct pollfd waiting = {.fd = socket, .events = POLLIN};
        struct door_connect request;
        size_t no_fds = 0;
        if (poll(&waiting, 1, -1) < 0 && errno != EINTR)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for the broker");
        ssize_t length = socket_receive(socket, &request, sizeof request, NULL, &no_fds);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (length != (ssize_t)sizeof request || request.version != DOOR_WIRE_VERSION ||
            !answer_broker(socket, &request))
            return 0;
    }
}
