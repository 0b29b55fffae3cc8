/* SPDX-License-Identifier: MIT */
/* Talking to servers of the host, and to the kernel through unusual sockets. A
 * server of the harness answers with a secret; for datagrams it notes what
 * arrives. Only loopback is ever addressed. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attempt.h"

static int connect_and_read(const char *what, int family, const void *address, socklen_t size)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return judge("socket", -1);
    if (connect(fd, address, size) < 0)
        return judge(what, -1);
    return judge_read_fd(what, fd);
}

static int connect_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return MISUSED;
    memcpy(address.sun_path, path, strlen(path));
    return connect_and_read(path, AF_UNIX, &address, sizeof(address));
}

static int socket_abstract(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(arg("abstract"));
    memcpy(address.sun_path + 1, arg("abstract"), length);
    return connect_and_read("abstract socket", AF_UNIX, &address,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
}

static int socket_in_tmp(void)
{
    return connect_path(arg("sock_tmp"));
}

static int socket_in_run(void)
{
    return connect_path(arg("sock_run"));
}

static int socket_outside(void)
{
    return connect_path(arg("sock_outside"));
}

static int socket_elsewhere(void)
{
    return connect_path(arg("sock_elsewhere"));
}

static int socket_by_proc_root(void)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/proc/1/root%s", arg("sock_tmp"));
    int answer = connect_path(path);
    (void)snprintf(path, sizeof(path), "/proc/self/root%s", arg("sock_tmp"));
    return answer == THROUGH ? answer : connect_path(path);
}

static int socket_by_symlink(void)
{
    const char *link = arg_path("work", "s");
    (void)unlink(link);
    (void)!symlink(arg("sock_run"), link);
    int answer = connect_path(link);
    (void)unlink(link);
    return answer;
}

static int socket_datagram(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", arg("sock_log"));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return judge("sendto",
                 sendto(fd, "escaped", 7, 0, (struct sockaddr *)&address, sizeof(address)));
}

static struct sockaddr_in loopback(const char *key)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)arg_number(key)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int tcp_loopback(void)
{
    struct sockaddr_in address = loopback("tcp_port");
    return connect_and_read("127.0.0.1", AF_INET, &address, sizeof(address));
}

static int tcp_loopback_v6(void)
{
    struct sockaddr_in6 address = {
        .sin6_family = AF_INET6,
        .sin6_port = htons((uint16_t)arg_number("tcp_port")),
        .sin6_addr.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    return connect_and_read("::ffff:127.0.0.1", AF_INET6, &address, sizeof(address));
}

/* Sends with the connection request, so that there is no connect() to be
 * stopped. */
static int tcp_fast_open(void)
{
    struct sockaddr_in address = loopback("tcp_port");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return judge("socket", -1);
    if (sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof(address)) < 0)
        return judge("MSG_FASTOPEN", -1);
    return judge_read_fd("fast open", fd);
}

static int udp_loopback(void)
{
    struct sockaddr_in address = loopback("udp_port");
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return judge("socket", -1);
    return judge("sendto",
                 sendto(fd, "escaped", 7, 0, (struct sockaddr *)&address, sizeof(address)));
}

static int open_socket(const char *what, int family, int type, int protocol)
{
    return judge(what, socket(family, type | SOCK_CLOEXEC, protocol));
}

static int raw_socket(void)
{
    int answer = open_socket("AF_INET SOCK_RAW", AF_INET, SOCK_RAW, IPPROTO_ICMP);
    return answer == THROUGH ? answer
                             : open_socket("AF_INET6 SOCK_RAW", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static int packet_socket(void)
{
    int answer = open_socket("AF_PACKET", AF_PACKET, SOCK_RAW, htons(3));
    return answer == THROUGH ? answer : open_socket("SOCK_PACKET", AF_INET, SOCK_PACKET, htons(3));
}

static int netlink_uevent(void)
{
    return open_socket("uevents", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
}

static int netlink_generic(void)
{
    return open_socket("generic netlink", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
}

static int netlink_netfilter(void)
{
    return open_socket("netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

/* Takes the loopback interface of the network namespace down; on the host's,
 * asks for an interface that does not exist. */
static int change_interface(void)
{
    struct ifreq request = {.ifr_flags = 0};
    (void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s",
                   in_own_userns() && !has_arg("host_net") ? "lo" : "brig-none0");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return judge("SIOCSIFFLAGS", ioctl(fd, SIOCSIFFLAGS, &request));
}

static int family_vsock(void)
{
    return open_socket("AF_VSOCK", 40, SOCK_STREAM, 0);
}

static int family_alg(void)
{
    int answer = open_socket("AF_ALG", AF_ALG, SOCK_SEQPACKET, 0);
    return answer == REFUSED && errno == EAFNOSUPPORT && has_arg("twin") ? NOT_HERE : answer;
}

const struct attempt attempts_sockets[] = {
    {"socket-abstract", socket_abstract},
    {"socket-abstract-shared-network", socket_abstract},
    {"socket-in-tmp", socket_in_tmp},
    {"socket-in-run", socket_in_run},
    {"socket-outside", socket_outside},
    {"socket-elsewhere", socket_elsewhere},
    {"socket-by-proc-root", socket_by_proc_root},
    {"socket-by-symlink", socket_by_symlink},
    {"socket-datagram", socket_datagram},
    {"tcp-loopback", tcp_loopback},
    {"tcp-loopback-door", tcp_loopback},
    {"tcp-loopback-v6", tcp_loopback_v6},
    {"tcp-loopback-v6-door", tcp_loopback_v6},
    {"tcp-fast-open", tcp_fast_open},
    {"udp-loopback", udp_loopback},
    {"udp-loopback-door", udp_loopback},
    {"raw-socket", raw_socket},
    {"raw-socket-door", raw_socket},
    {"packet-socket", packet_socket},
    {"netlink-uevent", netlink_uevent},
    {"netlink-generic", netlink_generic},
    {"netlink-netfilter", netlink_netfilter},
    {"netlink-netfilter-door", netlink_netfilter},
    {"change-interface", change_interface},
    {"change-interface-door", change_interface},
    {"family-vsock", family_vsock},
    {"family-alg", family_alg},
    {NULL, NULL},
};
