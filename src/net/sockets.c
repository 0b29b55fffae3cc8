/* SPDX-License-Identifier: MIT */
/* Sockets, their addresses, and messages with descriptors. */
#include "net/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"

#define IP6T_ORIGINAL_DST 80 /* linux/netfilter_ipv6/ip6_tables.h, which clashes with libc */

/* Ten minutes until the first probe, then about five more. */
#define KEEP_IDLE_SECONDS 600
#define KEEP_INTERVAL_SECONDS 60
#define KEEP_PROBES 5

socklen_t socket_address_fill(union socket_address *address, const struct net_address *from,
                              uint16_t port)
{
    memset(address, 0, sizeof *address);
    if (from->family == NET_V4) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        memcpy(&address->v4.sin_addr, from->bytes, 4);
        return sizeof address->v4;
    }
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(port);
    memcpy(&address->v6.sin6_addr, from->bytes, 16);
    return sizeof address->v6;
}

bool socket_address_read(const union socket_address *address, struct net_address *ret_address,
                         uint16_t *ret_port)
{
    if (address->any.sa_family == AF_INET) {
        uint8_t bytes[4];
        memcpy(bytes, &address->v4.sin_addr, sizeof bytes);
        *ret_address = net_address_v4(bytes);
        *ret_port = ntohs(address->v4.sin_port);
        return true;
    }
    if (address->any.sa_family != AF_INET6)
        return false;
    *ret_address = net_address_v6(address->v6.sin6_addr.s6_addr);
    *ret_port = ntohs(address->v6.sin6_port);
    return true;
}

struct net_address socket_loopback(enum net_family family)
{
    static const uint8_t v4[4] = {127, 0, 0, 1};
    static const uint8_t v6[16] = {[15] = 1};
    return family == NET_V6 ? net_address_v6(v6) : net_address_v4(v4);
}

bool socket_destination(int fd, struct net_address *ret_address, uint16_t *ret_port)
{
    static const int options[][2] = {{SOL_IP, SO_ORIGINAL_DST}, {SOL_IPV6, IP6T_ORIGINAL_DST}};
    union socket_address address;
    socklen_t length;
    for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
        length = sizeof address;
        if (getsockopt(fd, options[i][0], options[i][1], &address, &length) == 0 &&
            socket_address_read(&address, ret_address, ret_port))
            return true;
    }
    length = sizeof address;
    return getsockname(fd, &address.any, &length) == 0 &&
           socket_address_read(&address, ret_address, ret_port);
}

static void set(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

void socket_tune(int fd, bool keep_alive)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (!keep_alive)
        return;
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_SECONDS);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES);
}

void socket_bound(int fd, size_t bytes)
{
    set(fd, SOL_SOCKET, SO_RCVBUF, (int)bytes);
    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, (int)bytes);
}

bool socket_unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

void socket_reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

ssize_t socket_receive(int socket, void *data, size_t size, int *fds, size_t *count)
{
    struct iovec part = {.iov_base = data, .iov_len = size};
    ssize_t length = fdpass_receive(socket, &part, 1, fds, count, MSG_DONTWAIT);
    if (length >= 0)
        return length;
    errno = (int)-length;
    return -1;
}

bool socket_send(int socket, const void *data, size_t size, const int *fds, size_t count)
{
    const struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    ssize_t sent = fdpass_send(socket, &part, 1, fds, count, MSG_DONTWAIT);
    if (sent < 0)
        errno = (int)-sent;
    return sent >= 0;
}
