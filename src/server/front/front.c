/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * The front is the one process of brigd that reads what strangers send. It is one thread with one
 * loop: libmicrohttpd speaks HTTP in it, and says when a request is there as a whole; who has to wait
 * for another process is suspended meanwhile. It runs as nobody where brigd was started by root, and
 * before it accepts its first client it shuts itself in (confine.c): it can open no file, start no
 * program and make no socket. What it knows are API keys as hashes, the key of the certificate, and
 * the requests of the moment.
 *
 * It trusts the keeper. The warden checks again whatever it is sent, so that a front in a stranger's
 * hands can do no more than that stranger's requests could; and what the warden and the recorder send
 * here is checked, as they work with what strangers wrote. If either of them ends, who waited for it
 * is told so; if the front ends, runs go on and their rows are written. */
#include "server/front/front.h"

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/own.h"
#include "server/config.h"
#include "server/front/confine.h"
#include "server/front/detector.h"
#include "server/front/loop.h"
#include "server/front/rate.h"
#include "server/front/tls.h"
#include "server/role.h"

#define OTHER_FILES 256 /* beside connections: channels, messages, lingering sockets */
#define TLS_PATIENCE_MS 10000

/* Opened by front_prepare(), if it was called, for front_main(). */
static struct access_log prepared_log = {.fd = -1};

int front_prepare(const struct server_config *config, struct brig_error *err)
{
    return access_log_open(&prepared_log, config->server.access_log, err);
}

/* As many as connections need, as far as this process may. */
static uint64_t raise_files(const struct server_config *config)
{
    rlim_t wanted = (rlim_t)config->server.max_connections + OTHER_FILES;
    rlim_t now = fds_raise_limit(wanted, NULL);
    return now < wanted ? now : wanted;
}

/* Jansson would read its seed from a file later on. */
static int seed_hashes(struct brig_error *err)
{
    size_t seed = 0;
    while (seed == 0)
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "no random bytes");
    json_object_seed(seed);
    return 0;
}

static bool is_loopback(int listener)
{
    struct sockaddr_storage where = {0};
    socklen_t length = sizeof where;
    if (getsockname(listener, (struct sockaddr *)&where, &length) < 0)
        return false;
    if (where.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&where)->sin_addr.s_addr) >> 24 == 127;
    return where.ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&where)->sin6_addr);
}

static int set_up_parts(struct front *front, struct brig_error *err)
{
    const struct server_config *config = front->config;
    int result = clients_init(&front->clients, &config->security.trusted_proxies, err);
    if (result == 0)
        result = keys_init(&front->keys, &config->security.allowed_keys, err);
    if (result == 0)
        result = rate_new(config->security.rate_limit_rps, config->security.rate_limit_burst,
                          &front->rate, err);
    if (result == 0 && config->security.detector)
        result = detector_new(&front->detector, err);
    if (result == 0 && prepared_log.fd < 0)
        result = access_log_open(&prepared_log, config->server.access_log, err);
    if (result == 0)
        result = seed_hashes(err);
    front->log = prepared_log;
    prepared_log = (struct access_log){.fd = -1};
    front->tells_hosts = front->keys.count == 0 && config->security.trusted_proxies.count == 0 &&
                         is_loopback(front->listener);
    return result;
}

/* The certificate is the first the keeper sends; without it there is nothing to serve with. */
static int wait_for_tls(struct front *front, struct brig_error *err)
{
    uint64_t until_ms = clock_now_ms() + TLS_PATIENCE_MS;
    while (front->config->tls.enabled && !front->tls) {
        struct epoll_event event;
        if (clock_now_ms() >= until_ms)
            return brig_fail(err, BRIG_E_SETUP, 0, "no certificate came from the keeper");
        (void)epoll_wait(front->epoll, &event, 1, FRONT_TICK_MS);
        int result = front_hear_control(front, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int set_up(struct front *front, struct brig_error *err)
{
    uint64_t open_files = raise_files(front->config);
    front->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (front->epoll < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make an epoll");
    int result = set_up_parts(front, err);
    if (result == 0)
        result = loop_add(front, channel_fd(front->control), LOOP_CONTROL, err);
    if (result == 0)
        result = wait_for_tls(front, err);
    if (result == 0)
        result = http_start(front, err);
    if (result < 0)
        return result;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(front->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "libmicrohttpd has no epoll");
    result = loop_add(front, info->epoll_fd, LOOP_HTTP, err);
    return result < 0 ? result : confine_front(open_files, err);
}

static void tear_down(struct front *front)
{
    http_stop(front);
    access_log_flush(&front->log);
    if (front->daemon)
        return; /* somebody still holds on to all this */
    for (int i = 0; i < ROLES_; i++)
        channel_free(take_ptr(&front->peers[i]));
    for (size_t i = 0; i < FRONT_TICKETS; i++)
        while (front->tickets[i])
            ticket_free(front, front->tickets[i]);
    access_log_close(&front->log);
    detector_free(front->detector);
    rate_free(front->rate);
    tls_free(front->tls);
    str_done(&front->runtimes);
    str_done(&front->store);
    str_done(&front->openapi);
    own_close(&front->epoll);
    free(front);
}

int front_main(const struct server_config *config, struct channel *control, int listener,
               struct brig_error *err)
{
    struct front *front = calloc(1, sizeof *front);
    if (!front)
        return brig_fail_nomem(err);
    front->config = config;
    front->control = control;
    front->listener = listener;
    front->epoll = -1;
    front->log.fd = -1;
    front->now_ms = clock_now_ms();
    int result = set_up(front, err);
    if (result == 0)
        result = loop_run(front, err);
    tear_down(front);
    return result;
}
