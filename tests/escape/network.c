/* SPDX-License-Identifier: MIT */
/* Sockets where desktops have theirs, and what can be seen of the host's network.
 * The harness listens once the attempt is ready and looks whether anybody came.
 * Only loopback is ever addressed. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "more.h"

#define INTERFACES 256
#define ACCEPT_MS 100

/* A name that begins with a NUL byte is abstract. */
static int reach(const char *what, int type, const char *name, size_t length)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (length >= sizeof(address.sun_path))
        return MISUSED;
    memcpy(address.sun_path, name, length);
    wait_for_harness();
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return judge("socket", -1);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (type == SOCK_DGRAM)
        return judge(what, sendto(fd, "escaped", 7, 0, (struct sockaddr *)&address, size));
    return judge(what, connect(fd, (struct sockaddr *)&address, size));
}

/* "@" stands for the NUL byte of an abstract name. */
static int reach_display(int type, const char *prefix, const char *suffix)
{
    char name[108];
    int length = snprintf(name, sizeof(name), "%s/tmp/.X11-unix/X%ld%s", prefix,
                          1000 + arg_number("ipc_key") % 50000, suffix);
    if (name[0] == '@')
        name[0] = '\0';
    return reach("the display", type, name, (size_t)length);
}

static int x11_path(void)
{
    return reach_display(SOCK_STREAM, "", "");
}

static int x11_abstract(void)
{
    return reach_display(SOCK_STREAM, "@", "");
}

static int abstract_datagram(void)
{
    return reach_display(SOCK_DGRAM, "@", ".log");
}

/* Where D-Bus, Wayland and PipeWire have theirs: of the uid root's jails have on the host. */
static int runtime_socket(void)
{
    char path[108];
    (void)snprintf(path, sizeof(path), "/run/user/1900000000/%s", arg("ipc_name"));
    return reach(path, SOCK_STREAM, path, strlen(path));
}

/* The other way round: is a port of the jail one of the host's? */
static int listen_for_host(void)
{
    uint16_t port = (uint16_t)(20000 + arg_number("ipc_key") % 10000);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0) {
        int answer = judge("listen", -1);
        wait_for_harness();
        return answer;
    }
    wait_for_harness();
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    return poll(&waiting, 1, ACCEPT_MS) == 1
               ? judge("accept", accept4(fd, NULL, NULL, SOCK_CLOEXEC))
               : REFUSED;
}

/* Any but loopback is the host's. */
static int see_interfaces(void)
{
    char name[IF_NAMESIZE];
    int answer = REFUSED;
    for (unsigned i = 1; i < INTERFACES; i++)
        if (if_indextoname(i, name) && strcmp(name, "lo") != 0) {
            say("interface %s", name);
            answer = THROUGH;
        }
    return answer == REFUSED && has_arg("twin") ? NOT_HERE : answer;
}

/* The listening socket of the harness, by its port. */
static int see_connections(void)
{
    char line[512], wanted[16];
    (void)snprintf(wanted, sizeof(wanted), ":%04lX ", arg_number("tcp_port"));
    FILE *file = fopen("/proc/net/tcp", "re");
    if (!file)
        return judge("/proc/net/tcp", -1);
    int answer = REFUSED;
    while (fgets(line, sizeof(line), file))
        if (strstr(line, wanted))
            answer = THROUGH;
    (void)fclose(file);
    return answer;
}

static int netlink_audit(void)
{
    int answer = judge("audit", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT));
    return answer == REFUSED && errno == EPROTONOSUPPORT && has_arg("twin") ? NOT_HERE : answer;
}

/* Families with much code and few users. */
static int odd_families(void)
{
    static const int families[] = {AF_AX25, AF_X25,  AF_ROSE,      AF_RDS,    AF_LLC,
                                   AF_CAN,  AF_TIPC, AF_BLUETOOTH, AF_PHONET, AF_CAIF,
                                   AF_NFC,  AF_KCM,  AF_SMC,       AF_XDP};
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW};
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        for (size_t j = 0; j < sizeof(types) / sizeof(types[0]); j++)
            if (socket(families[i], types[j] | SOCK_CLOEXEC, 0) >= 0) {
                say("family %d, type %d", families[i], types[j]);
                return THROUGH;
            }
    return has_arg("twin") ? NOT_HERE : REFUSED;
}

const struct attempt attempts_network[] = {
    {"x11-path", x11_path},
    {"x11-abstract", x11_abstract},
    {"x11-abstract-shared-network", x11_abstract},
    {"datagram-abstract", abstract_datagram},
    {"datagram-abstract-shared-network", abstract_datagram},
    {"runtime-socket", runtime_socket},
    {"listen-for-host", listen_for_host},
    {"see-interfaces", see_interfaces},
    {"see-connections", see_connections},
    {"netlink-audit", netlink_audit},
    {"odd-families", odd_families},
    {NULL, NULL},
};
