/* SPDX-License-Identifier: MIT */
/* The socket that brigd listens on. */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/str.h"

#define LISTEN_BACKLOG 4096
#define SYSTEMD_FIRST_FD 3
#define UNIX_PREFIX "unix:"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_storage room;
};

static int bad_address(const char *where, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' is not an address to listen at: write HOST:PORT, [IPv6]:PORT, :PORT or "
                     "unix:/PATH, with a port from 0 to 65535",
                     str_shown(where).text);
}

static bool parse_host(const char *host, bool bracketed, uint16_t port, union address *ret)
{
    ret->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (bracketed)
        return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1;
    if (host[0] == '\0') /* every address, IPv4 and IPv6 */
        return true;
    ret->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    return inet_pton(AF_INET, str_equal(host, "localhost") ? "127.0.0.1" : host,
                     &ret->v4.sin_addr) == 1;
}

static int parse_address(const char *where, union address *ret, struct brig_error *err)
{
    char host[64];
    const char *colon = strrchr(where, ':');
    uint64_t port;
    *ret = (union address){0};
    if (str_starts_with(where, UNIX_PREFIX)) {
        const char *path = where + strlen(UNIX_PREFIX);
        ret->local.sun_family = AF_UNIX;
        if (path[0] != '/' || !str_fill(ret->local.sun_path, sizeof ret->local.sun_path, path))
            return bad_address(where, err);
        return 0;
    }
    if (!colon || (size_t)(colon - where) >= sizeof host ||
        parse_uint(colon + 1, UINT16_MAX, PARSE_ZERO_OK, &port, NULL) < 0)
        return bad_address(where, err);
    size_t length = (size_t)(colon - where);
    bool bracketed = where[0] == '[' && length >= 2 && colon[-1] == ']';
    if (!bracketed && memchr(where, ':', length))
        return bad_address(where, err);
    (void)snprintf(host, sizeof host, "%.*s", (int)length - 2 * bracketed, where + bracketed);
    return parse_host(host, bracketed, (uint16_t)port, ret) ? 0 : bad_address(where, err);
}

int listen_check(const char *where, struct brig_error *err)
{
    union address address;
    return parse_address(where, &address, err);
}

bool listen_is_tcp(int fd)
{
    union address address = {0};
    socklen_t size = sizeof address;
    (void)getsockname(fd, &address.any, &size);
    return address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6;
}

static bool is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

/* Describes the bound address, with the port that the kernel chose for 0. */
static void describe(int fd, char text[LISTEN_TEXT_MAX], bool *ret_public)
{
    union address address = {0};
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "?";
    (void)getsockname(fd, &address.any, &size);
    bool v4 = address.any.sa_family == AF_INET, v6 = address.any.sa_family == AF_INET6;
    *ret_public = (v4 || v6) && !is_loopback(&address);
    if (!v4 && !v6) {
        (void)snprintf(text, LISTEN_TEXT_MAX, "unix:%s", address.local.sun_path);
        return;
    }
    /* The port is at the same offset in both structs. */
    (void)inet_ntop(address.any.sa_family,
                    v4 ? (void *)&address.v4.sin_addr : (void *)&address.v6.sin6_addr, host,
                    sizeof host);
    (void)snprintf(text, LISTEN_TEXT_MAX, v4 ? "%s:%u" : "[%s]:%u", host,
                   ntohs(address.v4.sin_port));
}

/* Removes a socket on which no process listens. */
static void remove_stale(const struct sockaddr_un *address)
{
    struct stat info;
    if (lstat(address->sun_path, &info) < 0 || !S_ISSOCK(info.st_mode))
        return;
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 &&
        errno == ECONNREFUSED)
        (void)unlink(address->sun_path);
}

static int bind_listen(int fd, const union address *address, socklen_t size, const char *where,
                       struct brig_error *err)
{
    if (bind(fd, &address->any, size) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return 0;
    int code = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot listen on '%s'", where);
    if (err && err->sys_errno == EADDRINUSE)
        return brig_advise(err, code,
                           "Something listens there already; choose another with "
                           "server.listen, --listen or PORT");
    if (err && err->sys_errno == EACCES && address->any.sa_family != AF_UNIX)
        return brig_advise(err, code, "Ports below 1024 are for root; choose one above");
    if (err && err->sys_errno == EADDRNOTAVAIL)
        return brig_advise(err, code,
                           "No interface of this machine has that address; for all of them write "
                           "0.0.0.0 or [::]");
    return code;
}

static int open_address(const char *where, int *ret_fd, struct brig_error *err)
{
    union address address;
    const int on = 1, off = 0;
    int result = parse_address(where, &address, err);
    if (result < 0)
        return result;
    sa_family_t family = address.any.sa_family;
    if (family == AF_UNIX)
        remove_stale(&address.local);
    autoclose int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket for '%s'", where);
    if (family != AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    result = bind_listen(fd, &address,
                         family == AF_UNIX   ? sizeof address.local
                         : family == AF_INET ? sizeof address.v4
                                             : sizeof address.v6,
                         where, err);
    if (result == 0)
        *ret_fd = take_fd(&fd);
    return result;
}

bool listen_is_given(const char *env_fds, const char *env_pid)
{
    char own[32];
    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    return str_equal(env_pid, own) && str_equal(env_fds, "1");
}

int listen_open(const char *where, const char *env_fds, const char *env_pid, int *ret_fd,
                char ret_text[LISTEN_TEXT_MAX], bool *ret_public, struct brig_error *err)
{
    int fd = -1, result = 0;
    if (listen_is_given(env_fds, env_pid)) {
        fd = SYSTEMD_FIRST_FD;
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
            result = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot use the socket systemd gave");
    } else {
        result = open_address(where, &fd, err);
    }
    if (result < 0)
        return result;
    describe(fd, ret_text, ret_public);
    *ret_fd = fd;
    return 0;
}
