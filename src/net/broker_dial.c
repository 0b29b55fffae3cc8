/* SPDX-License-Identifier: MIT */
/* From a name to a connected socket: resolves with c-ares, asks the kernel for the route to an
 * address, and connects to the first address that answers. */
#include "net/broker_dial.h"

#include <ares.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/sockets.h"

/* The delay before the next address is tried in parallel. */
#define NEXT_MS 250
#define TRY_MS 2500
#define TRIES 3
#define QUERIES_MAX 1024
/* A route without a gateway and with a prefix this short is a tunnel for all traffic, not a local
 * network. */
#define WIDE_IPV4 8
#define WIDE_IPV6 16

/* ---- Resolving ---- */

struct resolve_socket {
    struct node node; /* must be first */
    struct watch watch;
    struct resolver *resolver;
};

/* A query in c-ares. It cannot be cancelled there, so it outlives cancelled requests. */
struct resolve_query {
    struct node node; /* must be first */
    struct resolver *resolver;
    struct node *requests;
    char name[NET_NAME_MAX + 1];
};

static void rearm(struct resolver *resolver)
{
    struct timeval wait;
    if (!ares_timeout(resolver->channel, NULL, &wait)) {
        loop_disarm(&resolver->timer);
        return;
    }
    int64_t wait_ms = (int64_t)wait.tv_sec * 1000 + wait.tv_usec / 1000;
    loop_arm(resolver->loop, &resolver->timer, (uint64_t)wait_ms + 1);
}

static void timer_fires(struct timer *timer)
{
    struct resolver *resolver = container_of(timer, struct resolver, timer);
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    rearm(resolver);
}

static void socket_ready(struct watch *watch, uint32_t events)
{
    struct resolver *resolver = container_of(watch, struct resolve_socket, watch)->resolver;
    bool broken = events & (EPOLLERR | EPOLLHUP);
    int readable = (events & EPOLLIN) || broken ? watch->fd : ARES_SOCKET_BAD;
    int writable = (events & EPOLLOUT) ? watch->fd : ARES_SOCKET_BAD;
    ares_process_fd(resolver->channel, readable, writable);
    rearm(resolver);
}

static struct resolve_socket *find_socket(const struct resolver *resolver, int fd)
{
    struct node *at = resolver->sockets;
    while (at && ((struct resolve_socket *)at)->watch.fd != fd)
        at = at->next;
    return (struct resolve_socket *)at;
}

/* Called by c-ares with the events it waits for on one of its sockets. If memory is short, the
 * socket is not watched and the query times out. */
static void socket_changes(void *data, ares_socket_t fd, int readable, int writable)
{
    struct resolver *resolver = data;
    uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);
    struct resolve_socket *socket = find_socket(resolver, fd);
    if (socket && events) {
        loop_rewatch(resolver->loop, &socket->watch, events);
    } else if (socket) {
        (void)loop_forget(resolver->loop, &socket->watch);
        loop_free_later(resolver->loop, &socket->node);
    } else if (events && (socket = calloc(1, sizeof *socket))) {
        socket->watch = (struct watch){.fd = fd, .ready = socket_ready};
        socket->resolver = resolver;
        node_add(&resolver->sockets, &socket->node);
        (void)loop_watch(resolver->loop, &socket->watch, events);
    }
}

static int set_servers(ares_channel channel, const struct broker_config *config)
{
    struct ares_addr_port_node nodes[CONFIG_RESOLVERS_MAX] = {0};
    for (size_t i = 0; i < config->resolver_count; i++) {
        const struct http_authority *host = &config->resolvers[i];
        bool v4 = host->address.family == NET_V4;
        nodes[i].family = v4 ? AF_INET : AF_INET6;
        memcpy(&nodes[i].addr, host->address.bytes, v4 ? 4 : 16);
        nodes[i].udp_port = nodes[i].tcp_port = host->port;
        if (i > 0)
            nodes[i - 1].next = &nodes[i];
    }
    return config->resolver_count > 0 ? ares_set_servers_ports(channel, nodes) : ARES_SUCCESS;
}

static int open_channel(struct resolver *resolver)
{
    struct ares_options options = {
        .flags = ARES_FLAG_NOSEARCH,
        .timeout = TRY_MS,
        .tries = TRIES,
        .sock_state_cb = socket_changes,
        .sock_state_cb_data = resolver,
    };
    ares_channel channel;
    int status = ares_init_options(&channel, &options,
                                   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                       ARES_OPT_SOCK_STATE_CB);
    if (status != ARES_SUCCESS)
        return status;
    status = set_servers(channel, resolver->config);
    if (status != ARES_SUCCESS) {
        ares_destroy(channel);
        return status;
    }
    resolver->channel = channel;
    return ARES_SUCCESS;
}

int resolver_init(struct resolver *resolver, struct loop *loop, const struct broker_config *config,
                  struct brig_error *err)
{
    *resolver = (struct resolver){.loop = loop, .config = config, .timer.fire = timer_fires};
    int status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status == ARES_SUCCESS)
        status = open_channel(resolver);
    if (status != ARES_SUCCESS)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "cannot make a resolver: %s",
                         ares_strerror(status));
    return 0;
}

/* A laptop changes networks, and its resolvers with them, but c-ares reads them only when it is
 * initialised. So it is reinitialised, unless a query is pending. */
static void follow_host(struct resolver *resolver)
{
    ares_channel old = resolver->channel;
    if (resolver->config->resolver_count == 0 && resolver->in_flight == 0 &&
        open_channel(resolver) == ARES_SUCCESS)
        ares_destroy(old);
}

static size_t take_addresses(const struct ares_addrinfo *result,
                             struct net_address addresses[RESOLVE_ADDRESSES_MAX])
{
    size_t count = 0;
    const struct ares_addrinfo_node *node = result ? result->nodes : NULL;
    for (; node && count < RESOLVE_ADDRESSES_MAX; node = node->ai_next) {
        const struct sockaddr *from = node->ai_addr;
        union socket_address copy = {.any.sa_family = from->sa_family};
        uint16_t port;
        memcpy(&copy, from, from->sa_family == AF_INET6 ? sizeof copy.v6 : sizeof copy.v4);
        count += socket_address_read(&copy, &addresses[count], &port);
    }
    return count;
}

static const char *why_not(int status)
{
    switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENONAME:
        return "the name does not exist";
    case ARES_ENODATA:
        return "the name has no address";
    case ARES_ETIMEOUT:
        return "no resolver answers";
    case ARES_ECONNREFUSED:
        return "no resolver can be reached";
    default:
        return "the name cannot be resolved";
    }
}

static enum dns_code code_of(int status)
{
    switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENONAME:
        return DNS_NXDOMAIN;
    case ARES_SUCCESS:
    case ARES_ENODATA:
        return DNS_NOERROR;
    default:
        return DNS_SERVFAIL;
    }
}

static void ares_answers(void *data, int status, int timeouts, struct ares_addrinfo *result)
{
    struct resolve_query *query = data;
    struct net_address addresses[RESOLVE_ADDRESSES_MAX];
    size_t count = take_addresses(result, addresses);
    const char *why = count > 0 ? NULL : why_not(status == ARES_SUCCESS ? ARES_ENODATA : status);
    (void)timeouts;
    if (result)
        ares_freeaddrinfo(result);
    node_remove(&query->node); /* a request from a callback starts a new one */
    while (query->requests) {
        struct resolve_request *request = (struct resolve_request *)query->requests;
        node_remove(&request->node);
        request->code = code_of(status);
        request->done(request, addresses, count, why);
    }
    /* Decremented last: the callback may ask again, and then the channel must not be replaced. */
    query->resolver->in_flight--;
    free(query);
}

static struct resolve_query *find_query(const struct resolver *resolver, const char *name)
{
    struct node *at = resolver->queries;
    while (at && strcmp(((struct resolve_query *)at)->name, name) != 0)
        at = at->next;
    return (struct resolve_query *)at;
}

void resolver_ask(struct resolver *resolver, const char *name, struct resolve_request *request)
{
    const struct ares_addrinfo_hints hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_NOSORT};
    struct resolve_query *query = find_query(resolver, name);
    if (query) {
        node_add(&query->requests, &request->node);
        return;
    }
    follow_host(resolver);
    query = resolver->in_flight < QUERIES_MAX ? calloc(1, sizeof *query) : NULL;
    if (!query) {
        request->code = DNS_SERVFAIL;
        request->done(request, NULL, 0, "too many names are being resolved");
        return;
    }
    query->resolver = resolver;
    (void)snprintf(query->name, sizeof query->name, "%s", name);
    node_add(&resolver->queries, &query->node);
    node_add(&query->requests, &request->node);
    resolver->in_flight++;
    ares_getaddrinfo(resolver->channel, name, NULL, &hints, ares_answers, query);
    rearm(resolver);
}

void resolver_cancel(struct resolve_request *request)
{
    node_remove(&request->node);
}

void resolver_done(struct resolver *resolver)
{
    if (resolver->channel)
        ares_destroy(resolver->channel);
    resolver->channel = NULL;
    loop_disarm(&resolver->timer);
    ares_library_cleanup();
}

/* ---- Routes, by rtnetlink ---- */

struct route_question {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr attribute;
    uint8_t address[16];
};

union route_answer {
    struct nlmsghdr head;
    char bytes[4096];
};

int route_open(int *ret_fd, struct brig_error *err)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "the broker cannot ask the kernel for routes");
    *ret_fd = fd;
    return 0;
}

/* Without a route, connect() will fail. */
static bool is_unreachable(int sys_errno)
{
    return sys_errno == ENETUNREACH || sys_errno == EHOSTUNREACH || sys_errno == EACCES ||
           sys_errno == EINVAL;
}

static enum route_kind read_error(struct nlmsghdr *head)
{
    const struct nlmsgerr *error = NLMSG_DATA(head);
    if (head->nlmsg_len < NLMSG_LENGTH(sizeof *error) || !is_unreachable(-error->error))
        return ROUTE_NEAR;
    return ROUTE_FAR;
}

static bool has_gateway(struct nlmsghdr *head)
{
    int left = (int)RTM_PAYLOAD(head);
    struct rtmsg *route = NLMSG_DATA(head);
    for (struct rtattr *at = RTM_RTA(route); RTA_OK(at, left); at = RTA_NEXT(at, left))
        if (at->rta_type == RTA_GATEWAY || at->rta_type == RTA_VIA ||
            at->rta_type == RTA_MULTIPATH || at->rta_type == RTA_NH_ID)
            return true;
    return false;
}

/* The kernel's macros lack const. */
static enum route_kind read_answer(struct nlmsghdr *head, size_t length)
{
    if (length < sizeof *head || !NLMSG_OK(head, length))
        return ROUTE_NEAR;
    if (head->nlmsg_type == NLMSG_ERROR)
        return read_error(head);
    const struct rtmsg *route = NLMSG_DATA(head);
    if (head->nlmsg_type != RTM_NEWROUTE || head->nlmsg_len < NLMSG_LENGTH(sizeof *route))
        return ROUTE_NEAR;
    if (route->rtm_type == RTN_BLACKHOLE || route->rtm_type == RTN_UNREACHABLE ||
        route->rtm_type == RTN_PROHIBIT)
        return ROUTE_FAR;
    if (route->rtm_type != RTN_UNICAST)
        return ROUTE_OWN;
    unsigned wide = route->rtm_family == AF_INET ? WIDE_IPV4 : WIDE_IPV6;
    return has_gateway(head) || route->rtm_dst_len <= wide ? ROUTE_FAR : ROUTE_NEAR;
}

enum route_kind route_find(int fd, const struct net_address *address)
{
    bool v4 = address->family == NET_V4;
    size_t size = v4 ? 4 : 16;
    struct route_question question = {
        .head = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = v4 ? AF_INET : AF_INET6,
                  .rtm_dst_len = (unsigned char)(size * 8),
                  .rtm_flags = RTM_F_FIB_MATCH},
        .attribute = {.rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(size)},
    };
    union route_answer answer;
    memcpy(question.address, address->bytes, size);
    question.head.nlmsg_len =
        (uint32_t)(offsetof(struct route_question, attribute) + RTA_LENGTH(size));
    /* The kernel answers before send() returns. First discard what an earlier request left. */
    while (recv(fd, &answer, sizeof answer, MSG_DONTWAIT) >= 0)
        ;
    if (send(fd, &question, question.head.nlmsg_len, MSG_DONTWAIT) < 0)
        return ROUTE_NEAR;
    ssize_t length = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    return length < 0 ? ROUTE_NEAR : read_answer(&answer.head, (size_t)length);
}

const char *route_text(enum route_kind kind)
{
    switch (kind) {
    case ROUTE_FAR:
        return "far away";
    case ROUTE_OWN:
        return "this machine's own";
    case ROUTE_NEAR:
        return "on the local network";
    }
    return "";
}

/* ---- Connecting ---- */

static void try_next(struct dial *dial);

static void drop_attempt(struct dial_attempt *attempt)
{
    loop_close(attempt->dial->loop, &attempt->watch);
    attempt->dial->running--;
}

void dial_cancel(struct dial *dial)
{
    if (!dial->loop)
        return;
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        if (dial->attempts[i].watch.fd >= 0)
            drop_attempt(&dial->attempts[i]);
    loop_disarm(&dial->timer);
}

static void succeed(struct dial *dial, struct dial_attempt *attempt)
{
    int fd = loop_forget(dial->loop, &attempt->watch);
    struct net_address address = attempt->address;
    dial->running--;
    dial_cancel(dial);
    dial->done(dial, fd, &address, 0);
}

static void attempt_ready(struct watch *watch, uint32_t events)
{
    struct dial_attempt *attempt = container_of(watch, struct dial_attempt, watch);
    struct dial *dial = attempt->dial;
    int sys_errno = 0;
    socklen_t length = sizeof sys_errno;
    (void)events;
    if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &sys_errno, &length) < 0)
        sys_errno = errno;
    if (sys_errno == 0) {
        union socket_address peer;
        length = sizeof peer;
        /* The event may belong to a previous descriptor with the same number. */
        if (getpeername(watch->fd, &peer.any, &length) == 0)
            succeed(dial, attempt);
        return;
    }
    dial->last_errno = sys_errno;
    drop_attempt(attempt);
    try_next(dial);
}

/* Creates a socket and starts to connect; -1 with errno. */
static int begin(const struct dial *dial, const struct net_address *address)
{
    union socket_address to;
    socklen_t length = socket_address_fill(&to, address, dial->port);
    int fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, &to.any, length) == 0 || errno == EINPROGRESS)
        return fd;
    int sys_errno = errno;
    (void)close(fd);
    errno = sys_errno;
    return -1;
}

static struct dial_attempt *free_attempt(struct dial *dial)
{
    for (size_t i = 0; i < DIAL_AT_ONCE; i++)
        if (dial->attempts[i].watch.fd < 0)
            return &dial->attempts[i];
    return NULL;
}

/* Tries the next address that does not fail at once; reports a failure if none is left. */
static void try_next(struct dial *dial)
{
    struct dial_attempt *attempt;
    while (dial->next < dial->count && (attempt = free_attempt(dial))) {
        attempt->address = dial->addresses[dial->next++];
        attempt->watch.ready = attempt_ready;
        attempt->watch.fd = begin(dial, &attempt->address);
        if (attempt->watch.fd >= 0 && loop_watch(dial->loop, &attempt->watch, EPOLLOUT)) {
            dial->running++;
            loop_arm(dial->loop, &dial->timer, NEXT_MS);
            return;
        }
        dial->last_errno = errno;
        if (attempt->watch.fd >= 0)
            (void)close(attempt->watch.fd);
        attempt->watch.fd = -1;
    }
    if (dial->running > 0)
        return;
    loop_disarm(&dial->timer);
    dial->done(dial, -1, NULL, dial->last_errno);
}

static void next_due(struct timer *timer)
{
    struct dial *dial = container_of(timer, struct dial, timer);
    if (dial->next < dial->count)
        try_next(dial);
}

/* Alternates between IPv6 and IPv4, starting with the family of the first address. */
static void take_turns(struct dial *dial, const struct net_address *addresses, size_t count)
{
    enum net_family family = count > 0 ? addresses[0].family : NET_V4;
    bool taken[DIAL_ADDRESSES_MAX] = {false};
    dial->count = 0;
    while (dial->count < count) {
        size_t at = 0;
        while (at < count && (taken[at] || addresses[at].family != family))
            at++;
        if (at < count) {
            taken[at] = true;
            dial->addresses[dial->count++] = addresses[at];
        }
        family = family == NET_V4 ? NET_V6 : NET_V4;
    }
}

void dial_start(struct dial *dial, struct loop *loop, const struct net_address *addresses,
                size_t count, uint16_t port)
{
    dial->loop = loop;
    dial->port = port;
    dial->next = dial->running = 0;
    dial->last_errno = EHOSTUNREACH;
    dial->timer.fire = next_due;
    for (size_t i = 0; i < DIAL_AT_ONCE; i++) {
        dial->attempts[i].dial = dial;
        dial->attempts[i].watch.fd = -1;
    }
    take_turns(dial, addresses, count < DIAL_ADDRESSES_MAX ? count : DIAL_ADDRESSES_MAX);
    try_next(dial);
}
