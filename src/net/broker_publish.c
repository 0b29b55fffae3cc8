/* SPDX-License-Identifier: MIT */
/* Connections into the jail: a socket of the host's listens, and the connector makes the other side.
 * It answers in order, so requests wait in a queue. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/broker_connection.h"
#include "net/broker_sockets.h"

/* One that was asked for. */
struct publish_request {
    struct publish_request *next;
    uint32_t id;
};

static void fail(struct connection *connection, const char *detail)
{
    connection_refuse(connection, DOOR_ERROR, DOOR_BECAUSE_NO_CONNECT, detail);
}

static void ask(struct connection *connection, enum door_loopback loopback)
{
    struct broker *broker = connection->broker;
    const struct door_connect message = {.version = DOOR_WIRE_VERSION,
                                         .loopback = loopback,
                                         .port = connection->port,
                                         .id = (uint32_t)connection->id};
    struct publish_request *request = broker->connector.fd >= 0 ? calloc(1, sizeof *request) : NULL;
    if (!request || !socket_send(broker->connector.fd, &message, sizeof message, -1)) {
        free(request);
        fail(connection, "the jail cannot be reached");
        return;
    }
    request->id = message.id;
    *broker->publish_last = request;
    broker->publish_last = &request->next;
}

/* ---- The other side ---- */

static void try_ipv6(struct connection *connection, const char *why)
{
    loop_close(&connection->broker->loop, &connection->world);
    if (connection->inside_tried_ipv6) {
        fail(connection, why);
        return;
    }
    connection->inside_tried_ipv6 = true;
    ask(connection, DOOR_LOOPBACK_IPV6);
}

static void world_ready(struct watch *watch, uint32_t events)
{
    struct connection *connection =
        (struct connection *)((char *)watch - offsetof(struct connection, world));
    int sys_errno = 0;
    socklen_t length = sizeof sys_errno;
    (void)events;
    (void)getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &sys_errno, &length);
    if (sys_errno != 0) {
        try_ipv6(connection, "nothing listens on this port in the jail");
        return;
    }
    int fd = watch->fd;
    loop_forget(&connection->broker->loop, watch);
    watch->fd = -1;
    connection_connected(connection, fd, NULL, 0);
}

static void take_socket(struct connection *connection, int fd, int sys_errno)
{
    struct loop *loop = &connection->broker->loop;
    if (fd < 0) {
        try_ipv6(connection, sys_errno == ECONNREFUSED ? "nothing listens on this port in the jail"
                                                       : "the jail cannot be reached");
        return;
    }
    connection->world = (struct watch){.fd = fd, .ready = world_ready};
    if (!loop_watch(loop, &connection->world, EPOLLOUT))
        fail(connection, "the jail cannot be reached");
}

static struct publish_request *take_request(struct broker *broker)
{
    struct publish_request *request = broker->publish_first;
    if (!request)
        return NULL;
    broker->publish_first = request->next;
    if (!broker->publish_first)
        broker->publish_last = &broker->publish_first;
    return request;
}

/* Whom the answer is for: the connection may have ended. */
static struct connection *find(struct broker *broker, uint32_t id)
{
    for (struct connection *at = broker->connections; at; at = at->next)
        if ((uint32_t)at->id == id && at->via == DOOR_SOCKET_PUBLISH)
            return at;
    return NULL;
}

/* The connector is gone, or not what it should be: nothing is published any more. */
static void lose_connector(struct broker *broker)
{
    struct publish_request *request;
    loop_close(&broker->loop, &broker->connector);
    while ((request = take_request(broker))) {
        struct connection *connection = find(broker, request->id);
        free(request);
        if (connection)
            fail(connection, "the jail cannot be reached");
    }
}

static void connector_ready(struct watch *watch, uint32_t events)
{
    struct broker *broker = (struct broker *)((char *)watch - offsetof(struct broker, connector));
    struct door_connected reply;
    int fd = -1;
    size_t count = 1;
    (void)events;
    ssize_t length = socket_receive(watch->fd, &reply, sizeof reply, &fd, &count);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct publish_request *request = take_request(broker);
    bool good = length == (ssize_t)sizeof reply && reply.version == DOOR_WIRE_VERSION && request &&
                reply.id == request->id && (count == 1) == (reply.sys_errno == 0);
    free(request);
    struct connection *connection = good ? find(broker, reply.id) : NULL;
    if (connection)
        take_socket(connection, count ? fd : -1, reply.sys_errno);
    else if (count)
        (void)close(fd);
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
    connection->stage = CONNECTION_UPSTREAM;
    connection->port = broker->config.publish[listener->index];
    connection->has_address = getpeername(fd, &peer.any, &length) == 0 &&
                              socket_address_read(&peer, &connection->address, &peer_port);
    loop_arm(&broker->loop, &connection->timer,
             (int64_t)broker->config.limits[CONFIG_LIMIT_CONNECT_MS]);
    ask(connection, DOOR_LOOPBACK_IPV4);
}
