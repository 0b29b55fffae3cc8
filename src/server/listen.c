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
                     "server.listen '%s': write ADDRESS:PORT, [IPV6]:PORT, :PORT or unix:/PATH",
                     str_shown(where).text);
}

static bool parse_host(const char *host, uint16_t port, union address *ret)
{
    *ret = (union address){0};
    if (host[0] == 0) { /* every address, of both kinds */
        ret->v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
        return true;
    }
    if (str_equal(host, "localhost"))
        host = "127.0.0.1";
    ret->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1)
        return true;
    ret->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1;
}

static int parse_address(const char *where, union address *ret, struct brig_error *err)
{
    char host[64];
    const char *colon = strrchr(where, ':');
    uint64_t port;
    if (!colon || (size_t)(colon - where) >= sizeof host ||
        parse_uint(colon + 1, 65535, PARSE_ZERO_OK, &port, NULL) < 0)
        return bad_address(where, err);
    size_t length = (size_t)(colon - where);
    if (where[0] == '[' && length >= 2 && colon[-1] == ']')
        (void)snprintf(host, sizeof host, "%.*s", (int)length - 2, where + 1);
    else if (memchr(where, ':', length))
        return bad_address(where, err);
    else
        (void)snprintf(host, sizeof host, "%.*s", (int)length, where);
    return parse_host(host, (uint16_t)port, ret) ? 0 : bad_address(where, err);
}

/* What the socket has in the end, with the port the kernel chose for 0. */
static void describe(int fd, char text[LISTEN_TEXT_MAX], bool *ret_public)
{
    union address address = {0};
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "?";
    (void)getsockname(fd, &address.any, &size);
    *ret_public = false;
    switch (address.any.sa_family) {
    case AF_INET:
        (void)inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
        *ret_public = (ntohl(address.v4.sin_addr.s_addr) >> 24) != 127;
        (void)snprintf(text, LISTEN_TEXT_MAX, "%s:%u", host, ntohs(address.v4.sin_port));
        break;
    case AF_INET6:
        (void)inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
        *ret_public = !IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
        (void)snprintf(text, LISTEN_TEXT_MAX, "[%s]:%u", host, ntohs(address.v6.sin6_port));
        break;
    default:
        (void)snprintf(text, LISTEN_TEXT_MAX, "unix:%s", address.local.sun_path);
        break;
    }
}

/* A socket that nobody listens on any more is in the way, and removed; one that is in use is not. */
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

static int stream_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int open_local(const char *where, int *ret_fd, struct brig_error *err)
{
    union address address = {.local = {.sun_family = AF_UNIX}};
    const char *path = where + strlen("unix:");
    if (path[0] != '/' || strlen(path) >= sizeof address.local.sun_path)
        return bad_address(where, err);
    (void)snprintf(address.local.sun_path, sizeof address.local.sun_path, "%s", path);
    remove_stale(&address.local);
    autoclose int fd = stream_socket(AF_UNIX);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket");
    int result = bind_listen(fd, &address, sizeof address.local, where, err);
    if (result == 0)
        *ret_fd = take_fd(&fd);
    return result;
}

static int open_inet(const char *where, int *ret_fd, struct brig_error *err)
{
    union address address;
    const int on = 1, off = 0;
    int result = parse_address(where, &address, err);
    if (result < 0)
        return result;
    autoclose int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a socket for '%s'", where);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (address.any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    result = bind_listen(fd, &address,
                         address.any.sa_family == AF_INET ? sizeof address.v4 : sizeof address.v6,
                         where, err);
    if (result == 0)
        *ret_fd = take_fd(&fd);
    return result;
}

static bool is_given(const char *env_fds, const char *env_pid)
{
    char own[32];
    (void)snprintf(own, sizeof own, "%ld", (long)getpid());
    return str_equal(env_pid, own) && str_equal(env_fds, "1");
}

int listen_open(const char *where, const char *env_fds, const char *env_pid, int *ret_fd,
                char ret_text[LISTEN_TEXT_MAX], bool *ret_public, struct brig_error *err)
{
    int fd = -1, result = 0;
    if (is_given(env_fds, env_pid)) {
        fd = fcntl(SYSTEMD_FIRST_FD, F_DUPFD_CLOEXEC, SYSTEMD_FIRST_FD);
        if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
            result = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot use the socket systemd gave");
    } else if (str_starts_with(where, "unix:")) {
        result = open_local(where, &fd, err);
    } else {
        result = open_inet(where, &fd, err);
    }
    if (result < 0)
        return result;
    describe(fd, ret_text, ret_public);
    *ret_fd = fd;
    return 0;
}
