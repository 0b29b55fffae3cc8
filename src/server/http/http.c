/* SPDX-License-Identifier: MIT */
/* Theory of operation.
 *
 * The http process is the one process of brigd that reads what strangers send. It is one thread with one
 * loop: libmicrohttpd speaks HTTP in it, and says when a request is there as a whole; who has to wait
 * for another process is suspended meanwhile. It runs as nobody where brigd was started by root, and
 * before it accepts its first client it shuts itself in (confine.c): it can open no file, start no
 * program and make no socket. What it knows are API keys as hashes, the key of the certificate, and
 * the requests of the moment.
 *
 * It trusts the supervisor. The executor checks again whatever it is sent, so that a http process in a stranger's
 * hands can do no more than that stranger's requests could; and what the executor and the history process send
 * here is checked, as they work with what strangers wrote. If either of them ends, who waited for it
 * is told so; if the http process ends, runs go on and their rows are written. */
#include "server/http/http.h"

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "server/config.h"
#include "server/http/confine.h"
#include "server/http/detector.h"
#include "server/http/loop.h"
#include "server/http/rate.h"
#include "server/http/tls.h"
#include "server/role.h"

#define OTHER_FILES 256 /* beside connections: channels, messages, lingering sockets */
#define TLS_PATIENCE_MS 10000

/* Opened by http_prepare(), if it was called, for http_main(). */
static struct access_log prepared_log = {.fd = -1};

int http_prepare(const struct server_config *config, struct brig_error *err)
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

static int set_up_parts(struct http *http, struct brig_error *err)
{
    const struct server_config *config = http->config;
    int result = clients_init(&http->clients, &config->security.trusted_proxies, err);
    if (result == 0)
        result = keys_init(&http->keys, &config->security.allowed_keys, err);
    if (result == 0)
        result = rate_new(config->security.rate_limit_rps, config->security.rate_limit_burst,
                          &http->rate, err);
    if (result == 0 && config->security.detector)
        result = detector_new(&http->detector, err);
    if (result == 0 && prepared_log.fd < 0)
        result = access_log_open(&prepared_log, config->server.access_log, err);
    if (result == 0)
        result = seed_hashes(err);
    http->log = prepared_log;
    prepared_log = (struct access_log){.fd = -1};
    http->tells_hosts = http->keys.count == 0 && config->security.trusted_proxies.count == 0 &&
                        is_loopback(http->listener);
    return result;
}

/* The certificate is the first the supervisor sends; without it there is nothing to serve with. */
static int wait_for_tls(struct http *http, struct brig_error *err)
{
    uint64_t until_ms = clock_now_ms() + TLS_PATIENCE_MS;
    while (http->config->tls.enabled && !http->tls) {
        struct epoll_event event;
        if (clock_now_ms() >= until_ms)
            return brig_fail(err, BRIG_E_SETUP, 0, "no certificate came from the supervisor");
        (void)epoll_wait(http->epoll, &event, 1, HTTP_TICK_MS);
        int result = http_hear_control(http, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int set_up(struct http *http, struct brig_error *err)
{
    uint64_t open_files = raise_files(http->config);
    http->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (http->epoll < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make an epoll");
    int result = set_up_parts(http, err);
    if (result == 0)
        result = loop_add(http, channel_fd(http->control), LOOP_CONTROL, err);
    if (result == 0)
        result = wait_for_tls(http, err);
    if (result == 0)
        result = daemon_start(http, err);
    if (result < 0)
        return result;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "libmicrohttpd has no epoll");
    result = loop_add(http, info->epoll_fd, LOOP_HTTP, err);
    return result < 0 ? result : confine_http(open_files, err);
}

static void tear_down(struct http *http)
{
    daemon_stop(http);
    access_log_flush(&http->log);
    if (http->daemon)
        return; /* somebody still holds on to all this */
    for (int i = 0; i < ROLES_; i++)
        channel_free(take_ptr(&http->peers[i]));
    for (size_t i = 0; i < HTTP_TICKETS; i++)
        while (http->tickets[i])
            ticket_free(http, http->tickets[i]);
    access_log_close(&http->log);
    detector_free(http->detector);
    rate_free(http->rate);
    tls_free(http->tls);
    str_done(&http->runtimes);
    str_done(&http->store);
    str_done(&http->openapi);
    own_close(&http->epoll);
    free(http);
}

int http_main(const struct server_config *config, struct channel *control, int listener,
              struct brig_error *err)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return brig_fail_nomem(err);
    http->config = config;
    http->control = control;
    http->listener = listener;
    http->epoll = -1;
    http->log.fd = -1;
    http->now_ms = clock_now_ms();
    int result = set_up(http, err);
    if (result == 0)
        result = loop_run(http, err);
    tear_down(http);
    return result;
}
