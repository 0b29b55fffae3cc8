/* SPDX-License-Identifier: MIT */
/* The connector. A socket belongs to the network namespace it was made in, so to reach a server in
 * the jail somebody has to be in there. It runs in the jail's network namespace, and in its user
 * namespace where that is needed to get there, but in none of the jail's others: nothing in the jail
 * can see it. It reads requests of a fixed size, calls socket() and connect(), and can do nothing
 * else: see broker_filter.c. It never waits for a server. */
#include "net/broker_connector.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/broker_confine.h"
#include "net/broker_sockets.h"
#include "net/broker_wire.h"

/* A socket that is connected or about to be; or -1 with errno. */
static int begin(const struct door_connect *request)
{
    static const uint8_t v4[4] = {127, 0, 0, 1};
    static const uint8_t v6[16] = {[15] = 1};
    union socket_address to;
    struct net_address loopback =
        request->loopback == DOOR_LOOPBACK_IPV6 ? net_address_v6(v6) : net_address_v4(v4);
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

/* False if there is nobody to answer. */
static bool answer(int socket, const struct door_connect *request)
{
    struct door_connected reply = {.version = DOOR_WIRE_VERSION, .id = request->id};
    autoclose int fd = begin(request);
    if (fd < 0)
        reply.sys_errno = errno;
    return socket_send(socket, &reply, sizeof reply, fd);
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
            !answer(socket, &request))
            return 0;
    }
}
