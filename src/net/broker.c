/* SPDX-License-Identifier: MIT */
/* The broker: its sockets, its limits, and the messages from and to the job. */
#include "net/broker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"
#include "net/sockets.h"

#define ACCEPT_AT_ONCE 64
#define REST_MS 100
/* At the end of a job: how long connections may stay open, and how long the job may take to read
 * the last events. LAST_WORDS_MS in jail/net/door.c, the time that the job waits, is longer. */
#define FINISH_MS 300
#define DRAIN_MS 1500
/* Descriptors other than those of connections: sockets, c-ares, libcurl, queries. */
#define FDS_OF_OTHERS (DOOR_SOCKETS_MAX + 256)
#define FDS_OF_CONNECTION 3

/* The shadow memory of a sanitizer exceeds any limit. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW true
#else
#define HAS_SHADOW false
#endif

_Static_assert(DOOR_RULE_MAX >= NET_RULE_TEXT_MAX, "an event has room for every rule");
_Static_assert(DOOR_ADDRESS_MAX >= NET_ADDRESS_TEXT_MAX, "and for every address");
_Static_assert(DOOR_NAME_MAX > NET_NAME_MAX, "and for every name");

/* ---- Limits ---- */

/* Limits the address space, because the jail must not fill the host's memory with data that it
 * sends. When an allocation fails, a connection is refused. */
static int bound_memory(const struct broker *broker, struct brig_error *err)
{
    uint64_t bytes = door_memory_bytes(broker->config.limits[CONFIG_LIMIT_CONNECTIONS]);
    struct rlimit data;
    if (HAS_SHADOW)
        return 0;
    if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_max < bytes)
        bytes = data.rlim_max;
    data = (struct rlimit){.rlim_cur = bytes, .rlim_max = bytes};
    if (setrlimit(RLIMIT_DATA, &data) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot bound its memory");
    return 0;
}

/* Lowers the connection limit to the available descriptors. */
static void fit_limits(struct broker *broker)
{
    uint64_t *limit = &broker->config.limits[CONFIG_LIMIT_CONNECTIONS];
    uint64_t files = fds_raise_limit(RLIM_INFINITY, NULL);
    uint64_t others = FDS_OF_OTHERS < files / 2 ? FDS_OF_OTHERS : files / 2;
    uint64_t possible = (files - others) / FDS_OF_CONNECTION;
    if (*limit > possible)
        *limit = possible;
}

bool broker_admit(struct broker *broker, enum door_socket via, const void *memory, int fd)
{
    if (memory && broker->connection_count < broker->config.limits[CONFIG_LIMIT_CONNECTIONS]) {
        broker->connection_count++;
        return true;
    }
    struct door_event event = {.verdict = DOOR_ERROR,
                               .because = DOOR_BECAUSE_CONNECTIONS,
                               .via = via,
                               .connection = ++broker->last_connection};
    broker_tell(broker, &event, "", NULL, "too many connections at one time");
    if (fd >= 0) {
        socket_reset(fd);
        (void)close(fd);
    }
    return false;
}

void broker_count_off(struct broker *broker)
{
    broker->connection_count--;
    if (broker->finishing && broker->connection_count == 0)
        broker->loop.stop = true;
}

void broker_count_bytes(struct broker *broker, size_t bytes)
{
    uint64_t limit = broker->config.limits[CONFIG_LIMIT_BYTES];
    broker->bytes += bytes;
    if (limit > 0 && broker->bytes > limit)
        loop_queue(&broker->loop, &broker->over_bytes);
}

bool broker_is_spent(const struct broker *broker)
{
    uint64_t limit = broker->config.limits[CONFIG_LIMIT_BYTES];
    return limit > 0 && broker->bytes >= limit;
}

static void end_connections(struct broker *broker, enum door_because because)
{
    connections_end(broker, because);
    inject_clients_end(broker, because);
}

static void over_bytes(struct task *task)
{
    end_connections(container_of(task, struct broker, over_bytes), DOOR_BECAUSE_BYTES);
}

/* ---- Events ---- */

/* Blocks until the job reads, and does nothing else for the jail meanwhile, so that no event is
 * lost. Without a job the broker ends rather than continue unobserved; after the end of the jail it
 * does not wait for long. */
void broker_tell(struct broker *broker, struct door_event *event, const char *name,
                 const struct net_rule *rule, const char *detail)
{
    struct pollfd waiting = {.fd = broker->control.fd, .events = POLLOUT};
    event->head = (struct door_message){.version = DOOR_WIRE_VERSION, .type = DOOR_EVENT};
    event->time_ns = clock_wall_ns();
    (void)snprintf(event->name, sizeof event->name, "%s", name);
    (void)snprintf(event->detail, sizeof event->detail, "%s", detail);
    if (rule)
        net_rule_print(rule, event->rule);
    while (!broker->unheard &&
           send(broker->control.fd, event, sizeof *event, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        bool busy = errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM;
        int wait_ms = broker->finishing || broker->loop.stop ? DRAIN_MS : -1;
        broker->unheard = !busy || poll(&waiting, 1, wait_ms) == 0;
    }
    if (broker->unheard)
        broker->loop.stop = true;
}

/* ---- Sockets ---- */

static void (*const accepted[DOOR_SOCKET_COUNT])(struct listener *listener, int fd) = {
    [DOOR_SOCKET_DNS_TCP] = dns_tcp_accepted,       [DOOR_SOCKET_REDIRECT] = connection_accepted,
    [DOOR_SOCKET_HTTP_PROXY] = connection_accepted, [DOOR_SOCKET_SOCKS] = connection_accepted,
    [DOOR_SOCKET_INJECT] = inject_accepted,         [DOOR_SOCKET_PUBLISH] = publish_accepted,
};

static void listener_rested(struct timer *timer)
{
    struct listener *listener = container_of(timer, struct listener, rest);
    loop_rewatch(&listener->broker->loop, &listener->watch, EPOLLIN);
}

/* Without free descriptors accept() fails and the socket stays readable: without a pause the loop
 * would spin. */
static void accept_failed(struct listener *listener)
{
    struct loop *loop = &listener->broker->loop;
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return;
    loop_rewatch(loop, &listener->watch, 0);
    loop_arm(loop, &listener->rest, REST_MS);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
    struct listener *listener = container_of(watch, struct listener, watch);
    (void)events;
    if (listener->kind == DOOR_SOCKET_DNS_UDP) {
        dns_udp_ready(listener);
        return;
    }
    if (listener->kind == DOOR_SOCKET_QUEUE) {
        hold_ready(listener);
        return;
    }
    for (size_t i = 0; i < ACCEPT_AT_ONCE; i++) {
        /* cppcheck-suppress nullPointer */
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            accept_failed(listener);
            return;
        }
        accepted[listener->kind](listener, fd);
    }
}

static bool index_fits(const struct broker *broker, enum door_socket kind, unsigned index)
{
    if (kind == DOOR_SOCKET_INJECT)
        return index < broker->config.inject_count;
    if (kind == DOOR_SOCKET_PUBLISH)
        return index < broker->config.publish_count;
    return index == 0;
}

/* Takes a socket from the job; false if it is invalid. */
static bool add_socket(struct broker *broker, enum door_socket kind, unsigned index, int fd)
{
    if (kind >= DOOR_SOCKET_COUNT || !index_fits(broker, kind, index))
        return false;
    if (kind == DOOR_SOCKET_CONNECTOR)
        return publish_connector(broker, fd);
    if (broker->listener_count == DOOR_SOCKETS_MAX)
        return false;
    struct listener *listener = &broker->listeners[broker->listener_count];
    *listener = (struct listener){.watch = {.fd = fd, .ready = listener_ready},
                                  .rest = {.fire = listener_rested},
                                  .broker = broker,
                                  .kind = kind,
                                  .index = index};
    if (!socket_unblock(fd) || !loop_watch(&broker->loop, &listener->watch, EPOLLIN))
        return false;
    broker->listener_count++;
    if (kind == DOOR_SOCKET_QUEUE)
        broker->queue = fd;
    return true;
}

static void close_listeners(struct broker *broker)
{
    for (size_t i = 0; i < broker->listener_count; i++) {
        loop_disarm(&broker->listeners[i].rest);
        loop_close(&broker->loop, &broker->listeners[i].watch);
    }
    broker->listener_count = 0;
    broker->queue = -1;
}

/* ---- The job's messages ---- */

static bool is_message(ssize_t length, const struct door_message *message)
{
    return length == (ssize_t)sizeof *message && message->version == DOOR_WIRE_VERSION;
}

static int read_config(struct broker *broker, int fd, struct brig_error *err)
{
    struct stat found;
    if (fstat(fd, &found) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the door's configuration");
    if (found.st_size > DOOR_CONFIG_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "the door's configuration is larger than %u bytes",
                         DOOR_CONFIG_MAX);
    size_t length = (size_t)found.st_size;
    char *text = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the door's configuration");
    int status = broker_config_read(&broker->config, text, length, err);
    (void)munmap(text, length);
    return status;
}

/* Receives the first message; *ret_secrets and *ret_live are -1 if there are none. The caller closes
 * them. */
static int receive_config(int control, int *ret_config, int *ret_secrets, int *ret_live,
                          struct brig_error *err)
{
    struct door_message message = {0};
    struct pollfd waiting = {.fd = control, .events = POLLIN};
    int fds[3] = {-1, -1, -1};
    size_t count = 3;
    while (poll(&waiting, 1, -1) < 0)
        if (errno != EINTR)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot wait for the job");
    ssize_t length = socket_receive(control, &message, sizeof message, fds, &count);
    if (length < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot hear the job");
    *ret_config = fds[0];
    *ret_secrets = fds[1];
    *ret_live = fds[2];
    if (!is_message(length, &message) || message.type != DOOR_CONFIG || count == 0)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the job does not begin with a configuration of version %d",
                         DOOR_WIRE_VERSION);
    return 0;
}

static void broker_finish(struct task *task)
{
    struct broker *broker = container_of(task, struct broker, job_ended);
    broker->finishing = true;
    dns_end(broker); /* queries that wait have the descriptor of a listener */
    close_listeners(broker);
    loop_rewatch(&broker->loop, &broker->control, 0); /* no more messages will arrive */
    if (broker->connection_count == 0)
        broker->loop.stop = true;
    else
        loop_arm(&broker->loop, &broker->finish, FINISH_MS);
}

static void finish_expires(struct timer *timer)
{
    container_of(timer, struct broker, finish)->loop.stop = true;
}

/* Adds the user's answer; false if it is invalid. */
static bool take_rule(struct broker *broker, const struct door_rule *message)
{
    struct net_rules *rules = &broker->config.rules;
    const struct net_rule *before = rules->items;
    if (!broker->config.ask || !memchr(message->line, 0, sizeof message->line) ||
        net_rules_read_line(rules, message->line, NULL) < 0)
        return false;
    connections_ask_again(broker, before);
    return true;
}

/* Takes the fd; false if the rules are invalid. */
static bool take_rules(struct broker *broker, int fd)
{
    autoclose int file = fd;
    autostr struct str text = {0};
    struct net_rules old;
    str_append(&text, "");
    if (read_all(file, DOOR_RULES_MAX, &text) < 0 || text.failed || text.length > DOOR_RULES_MAX ||
        strlen(text.data) != text.length ||
        broker_config_replace(&broker->config, text.data, &old, NULL) < 0)
        return false;
    connections_judge_again(broker);
    net_rules_done(&old);
    return true;
}

/* False if there is nothing more to read. */
static bool take_message(struct broker *broker)
{
    union {
        struct door_message head;
        struct door_rule rule;
    } received = {0};
    struct door_message message;
    int fd = -1;
    size_t count = 1;
    ssize_t length = socket_receive(broker->control.fd, &received, sizeof received, &fd, &count);
    message = received.head;
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (length == 0) { /* the job shut down its end: the jail has ended */
        loop_queue(&broker->loop, &broker->job_ended);
        return false;
    }
    if (is_message(length, &message) && message.type == DOOR_SOCKET && count == 1 &&
        add_socket(broker, message.kind, message.index, fd))
        return true;
    if (is_message(length, &message) && message.type == DOOR_RULES && count == 1 &&
        take_rules(broker, take_fd(&fd)))
        return true;
    if (length == (ssize_t)sizeof received.rule && message.version == DOOR_WIRE_VERSION &&
        message.type == DOOR_RULE && count == 0 && take_rule(broker, &received.rule))
        return true;
    own_close(&fd);
    broker->loop.stop = true;
    return false;
}

void broker_hear(struct broker *broker)
{
    while (broker->control.fd >= 0 && !broker->finishing && !broker->loop.stop &&
           take_message(broker))
        ;
}

static void control_ready(struct watch *watch, uint32_t events)
{
    struct broker *broker = container_of(watch, struct broker, control);
    if (events & EPOLLIN)
        broker_hear(broker);
    if (events & (EPOLLHUP | EPOLLERR)) /* the job closed its end */
        broker->loop.stop = true;
}

/* ---- Beginning and end ---- */

void broker_init(struct broker *broker)
{
    broker->finish.fire = finish_expires;
    broker->control.fd = broker->connector.fd = broker->loop.epoll = broker->routes = -1;
    broker->queue = -1;
    broker->live = -1;
    broker->over_bytes.run = over_bytes;
    broker->job_ended.run = broker_finish;
}

int broker_start(struct broker *broker, int control, struct brig_error *err)
{
    autoclose int config = -1;
    autoclose int secrets = -1;
    int status = receive_config(control, &config, &secrets, &broker->live, err);
    if (status == 0 && secrets >= 0)
        status = secrets_read(&broker->secrets, secrets, err);
    if (status == 0)
        status = read_config(broker, config, err);
    if (status < 0)
        return status;
    if (broker->config.secret_count > broker->secrets.count)
        return brig_fail(err, BRIG_E_INVALID, 0, "%u credentials are named and %zu were given",
                         broker->config.secret_count, broker->secrets.count);
    fit_limits(broker);
    status = bound_memory(broker, err);
    if (status == 0)
        status = loop_init(&broker->loop, err);
    if (status < 0)
        return status;
    broker->control.fd = control;
    broker->names.limit = (size_t)broker->config.limits[CONFIG_LIMIT_NAMES];
    status = route_open(&broker->routes, err);
    if (status == 0)
        status = resolver_init(&broker->resolver, &broker->loop, &broker->config, err);
    return status < 0 ? status : inject_init(broker, err);
}

int broker_serve(struct broker *broker, struct brig_error *err)
{
    const struct door_message ready = {.version = DOOR_WIRE_VERSION, .type = DOOR_READY};
    broker->control.ready = control_ready;
    if (!loop_watch(&broker->loop, &broker->control, EPOLLIN))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot watch the job");
    (void)socket_send(broker->control.fd, &ready, sizeof ready, NULL, 0);
    loop_run(&broker->loop);
    return 0;
}

void broker_fail(int control, const struct brig_error *err)
{
    struct door_failure failure = {
        .head = {.version = DOOR_WIRE_VERSION, .type = DOOR_FAILED},
    };
    (void)snprintf(failure.message, sizeof failure.message, "%s", err->message);
    (void)socket_send(control, &failure, sizeof failure, NULL, 0);
}

void broker_done(struct broker *broker)
{
    if (broker->loop.epoll >= 0) {
        end_connections(broker, DOOR_BECAUSE_CLOSED);
        dns_end(broker);
        inject_done(broker);
        resolver_done(&broker->resolver);
        close_listeners(broker);
        names_done(&broker->names);
        own_close(&broker->routes);
        loop_done(&broker->loop);
    }
    own_close(&broker->live);
    broker_config_done(&broker->config);
    secrets_done(&broker->secrets);
}
