/* SPDX-License-Identifier: MIT */
/* Both ends of what bench/egress measures: new connections, and much data in either direction.
 *
 *     egress serve ADDRESS PORT
 *     egress relay ADDRESS PORT TO      the least that can stand between: two threads that splice
 *     egress connect HOST PORT COUNT    prints the median and the 90th percentile, in microseconds
 *     egress up|down HOST PORT MIB      prints MiB a second
 *
 * With EGRESS_PROXY=HOST:PORT a connection is asked for by CONNECT, with EGRESS_PROXY_AUTH as Basic
 * credentials: some peers have no other way out.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define BLOCK ((size_t)1 << 18)
#define MIB ((uint64_t)1 << 20)
#define PIPE_BYTES (1 << 20)

/* Where to connect, and what to say there first. */
struct way {
    struct addrinfo *to;
    char connect[1024]; /* "": nothing */
};

struct order {
    char what; /* 'e': one byte back, 'u': take so many bytes, 'd': send as many */
    char padding[7];
    uint64_t bytes;
};

static bool write_all(int fd, const void *data, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = send(fd, (const char *)data + done, length - done, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t length)
{
    return recv(fd, data, length, MSG_WAITALL) == (ssize_t)length;
}

static bool drain(int fd, char *block, uint64_t bytes)
{
    while (bytes > 0) {
        ssize_t count = recv(fd, block, bytes < BLOCK ? bytes : BLOCK, 0);
        if (count <= 0)
            return false;
        bytes -= (uint64_t)count;
    }
    return true;
}

static bool fill(int fd, const char *block, uint64_t bytes)
{
    for (; bytes > 0; bytes -= bytes < BLOCK ? bytes : BLOCK)
        if (!write_all(fd, block, bytes < BLOCK ? bytes : BLOCK))
            return false;
    return true;
}

static void *answer(void *argument)
{
    int fd = (int)(intptr_t)argument;
    struct order order;
    char *block = calloc(1, BLOCK);
    while (block && read_all(fd, &order, sizeof order)) {
        bool good = order.what == 'd' ? fill(fd, block, order.bytes)
                                      : order.what != 'u' || drain(fd, block, order.bytes);
        if (!good || (order.what != 'd' && !write_all(fd, "x", 1)))
            break;
    }
    free(block);
    (void)close(fd);
    return NULL;
}

static struct addrinfo *look_up(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET}, *found = NULL;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed)
        bench_die(host, gai_strerror(failed));
    return found;
}

/* Gives each connection to a thread of its own. */
static void serve(const struct addrinfo *at, void *(*handler)(void *))
{
    int on = 1, listener = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, at->ai_addr, at->ai_addrlen) < 0 || listen(listener, 1024) < 0)
        bench_die("listen", strerror(errno));
    (void)puts("ready");
    (void)fflush(stdout);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;
        if (fd < 0)
            continue;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (pthread_create(&thread, NULL, handler, (void *)(intptr_t)fd) == 0)
            (void)pthread_detach(thread);
        else
            (void)close(fd);
    }
}

/* A proxy's answer, whose head is short and has nothing behind it yet. */
static bool read_yes(int fd)
{
    char head[1024];
    size_t length = 0;
    while (length < sizeof head - 1) {
        if (!read_all(fd, head + length, 1))
            return false;
        head[++length] = 0;
        if (length >= 4 && strcmp(head + length - 4, "\r\n\r\n") == 0)
            return strncmp(head + 8, " 200", 4) == 0;
    }
    return false;
}

/* ---- a relay ---- */

static struct way relayed_to;

struct flow {
    int from, to;
};

static void *run_flow(void *argument)
{
    const struct flow *flow = argument;
    int pipe[2];
    if (pipe2(pipe, O_CLOEXEC) < 0)
        bench_die("pipe", strerror(errno));
    (void)fcntl(pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
    ssize_t got, sent = 1;
    while (sent > 0 && (got = splice(flow->from, NULL, pipe[1], NULL, PIPE_BYTES, 0)) > 0)
        for (; got > 0 && sent > 0; got -= sent)
            sent = splice(pipe[0], NULL, flow->to, NULL, (size_t)got, SPLICE_F_MOVE);
    (void)shutdown(flow->to, SHUT_WR);
    (void)close(pipe[0]);
    (void)close(pipe[1]);
    return NULL;
}

static int dial(const struct way *way);

static void *relay(void *argument)
{
    int fd = (int)(intptr_t)argument, world = dial(&relayed_to);
    struct flow out = {fd, world}, in = {world, fd};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_flow, &in) != 0)
        bench_die("thread", "none");
    (void)run_flow(&out);
    (void)pthread_join(thread, NULL);
    (void)close(fd);
    (void)close(world);
    return NULL;
}

/* ---- the other end ---- */

static int dial(const struct way *way)
{
    const struct addrinfo *to = way->to;
    int on = 1, fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) < 0)
        bench_die("connect", strerror(errno));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (way->connect[0] && (!write_all(fd, way->connect, strlen(way->connect)) || !read_yes(fd)))
        bench_die("proxy", "it refuses");
    return fd;
}

static struct way find_way(const char *host, const char *port)
{
    const char *proxy = getenv("EGRESS_PROXY"), *auth = getenv("EGRESS_PROXY_AUTH");
    char name[256];
    struct way way = {0};
    const char *colon = proxy ? strrchr(proxy, ':') : NULL;
    if (!colon) {
        way.to = look_up(host, port);
        return way;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)(colon - proxy), proxy);
    way.to = look_up(name, colon + 1);
    (void)snprintf(way.connect, sizeof way.connect,
                   "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n%s%s%s\r\n", host, port, host, port,
                   auth ? "Proxy-Authorization: Basic " : "", auth ? auth : "", auth ? "\r\n" : "");
    return way;
}

static int compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void measure_connections(const struct way *way, unsigned count)
{
    const struct order order = {.what = 'e'};
    uint64_t *times = calloc(count, sizeof *times);
    char byte;
    if (!times)
        bench_die("memory", "none");
    for (unsigned i = 0; i < count; i++) {
        uint64_t begun = bench_now_ns();
        int fd = dial(way);
        if (!write_all(fd, &order, sizeof order) || !read_all(fd, &byte, 1))
            bench_die("connection", "it broke");
        times[i] = bench_now_ns() - begun;
        (void)close(fd);
    }
    qsort(times, count, sizeof *times, compare);
    (void)printf("%.1f %.1f\n", (double)times[count / 2] / 1e3,
                 (double)times[(uint64_t)count * 9 / 10] / 1e3);
    free(times);
}

static void measure_bulk(const struct way *way, char what, uint64_t bytes)
{
    const struct order order = {.what = what, .bytes = bytes};
    char *block = calloc(1, BLOCK), byte;
    int fd = dial(way);
    if (!block)
        bench_die("memory", "none");
    uint64_t begun = bench_now_ns();
    bool good =
        write_all(fd, &order, sizeof order) &&
        (what == 'u' ? fill(fd, block, bytes) && read_all(fd, &byte, 1) : drain(fd, block, bytes));
    if (!good)
        bench_die("transfer", "it broke");
    double seconds = (double)(bench_now_ns() - begun) / 1e9;
    (void)printf("%.0f\n", (double)bytes / (double)MIB / seconds);
    free(block);
    (void)close(fd);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        serve(look_up(argv[2], argv[3]), answer);
    if (argc != 5)
        bench_die("usage", "see the top of egress.c");
    if (strcmp(argv[1], "relay") == 0) {
        relayed_to = (struct way){.to = look_up(argv[2], argv[4])};
        serve(look_up(argv[2], argv[3]), relay);
    }
    struct way way = find_way(argv[2], argv[3]);
    unsigned number = bench_count(argv[4], 1000000);
    if (strcmp(argv[1], "connect") == 0)
        measure_connections(&way, number);
    else
        measure_bulk(&way, argv[1][0], number * MIB);
    freeaddrinfo(way.to);
    return 0;
}
