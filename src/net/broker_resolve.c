/* SPDX-License-Identifier: MIT */
/* Names to addresses, with c-ares: it needs no thread, no module of libc's, and no socket that a
 * filter would not allow. One question for each name is under way at a time, and an answer is kept
 * for as long as it says, but not for long: it was good for this many connections at once. */
#include "net/broker_resolve.h"

#include <ares.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

#define TRY_MS 2500
#define TRIES 3
#define ENTRIES_MAX 1024
#define KEEP_SECONDS_MAX 30
#define LOOK_MS 1000 /* how often a change of the host's resolvers is looked for */
#define RESOLV_CONF "/etc/resolv.conf"

struct resolve_socket {
    struct garbage garbage; /* must be first */
    struct watch watch;
    struct resolver *resolver;
    struct resolve_socket *next;
    uint32_t events;
};

struct resolve_entry {
    struct resolve_entry *next;
    struct resolver *resolver;
    char name[NET_NAME_MAX + 1];
    bool asking;
    int64_t expires_ms;
    struct net_address addresses[RESOLVE_ADDRESSES_MAX];
    size_t count;
    struct resolve_request *requests;
};

/* ---- Sockets and timeouts of c-ares ---- */

static void rearm(struct resolver *resolver)
{
    struct timeval wait;
    if (!ares_timeout(resolver->channel, NULL, &wait)) {
        loop_disarm(resolver->loop, &resolver->timer);
        return;
    }
    int64_t wait_ms = (int64_t)wait.tv_sec * 1000 + wait.tv_usec / 1000;
    loop_arm(resolver->loop, &resolver->timer, wait_ms + 1);
}

static void timer_fires(struct timer *timer)
{
    struct resolver *resolver =
        (struct resolver *)((char *)timer - offsetof(struct resolver, timer));
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    rearm(resolver);
}

static void socket_ready(struct watch *watch, uint32_t events)
{
    struct resolve_socket *socket =
        (struct resolve_socket *)((char *)watch - offsetof(struct resolve_socket, watch));
    struct resolver *resolver = socket->resolver;
    bool broken = events & (EPOLLERR | EPOLLHUP);
    int readable = (events & EPOLLIN) || broken ? watch->fd : ARES_SOCKET_BAD;
    int writable = (events & EPOLLOUT) ? watch->fd : ARES_SOCKET_BAD;
    ares_process_fd(resolver->channel, readable, writable);
    rearm(resolver);
}

static struct resolve_socket *new_socket(struct resolver *resolver, int fd)
{
    struct resolve_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return NULL;
    socket->watch = (struct watch){.fd = fd, .ready = socket_ready};
    socket->resolver = resolver;
    socket->next = resolver->sockets;
    resolver->sockets = socket;
    return socket;
}

/* Called by c-ares: which of its sockets it waits for. A socket it does not hear of, as memory is
 * short, is a question that times out. */
static void sockets_change(void *data, ares_socket_t fd, int readable, int writable)
{
    struct resolver *resolver = data;
    uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);
    struct resolve_socket **at = &resolver->sockets;
    while (*at && (*at)->watch.fd != fd)
        at = &(*at)->next;
    struct resolve_socket *socket = *at;
    if (!events) {
        if (!socket)
            return;
        *at = socket->next;
        loop_forget(resolver->loop, &socket->watch);
        loop_free_later(resolver->loop, &socket->garbage);
        return;
    }
    if (socket) {
        loop_rewatch(resolver->loop, &socket->watch, events);
        return;
    }
    socket = new_socket(resolver, fd);
    if (socket)
        (void)loop_watch(resolver->loop, &socket->watch, events);
}

/* ---- The channel ---- */

static struct timespec resolv_conf_changed(void)
{
    struct stat found;
    if (stat(RESOLV_CONF, &found) < 0)
        return (struct timespec){0};
    return found.st_mtim;
}

static int set_servers(ares_channel channel, const struct broker_config *config)
{
    struct ares_addr_port_node nodes[CONFIG_RESOLVERS_MAX] = {0};
    for (size_t i = 0; i < config->resolver_count; i++) {
        const struct config_host *host = &config->resolvers[i];
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
        .sock_state_cb = sockets_change,
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
    resolver->changed = resolv_conf_changed();
    resolver->looked_ms = loop->now_ms;
    int status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status == ARES_SUCCESS)
        status = open_channel(resolver);
    if (status != ARES_SUCCESS)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "cannot make a resolver: %s",
                         ares_strerror(status));
    return 0;
}

/* A laptop changes networks; its resolvers change with them. Not while a question is under way. */
static void follow_host(struct resolver *resolver)
{
    if (resolver->config->resolver_count > 0 || resolver->in_flight > 0 ||
        resolver->loop->now_ms - resolver->looked_ms < LOOK_MS)
        return;
    resolver->looked_ms = resolver->loop->now_ms;
    struct timespec changed = resolv_conf_changed();
    if (changed.tv_sec == resolver->changed.tv_sec && changed.tv_nsec == resolver->changed.tv_nsec)
        return;
    ares_channel old = resolver->channel;
    if (open_channel(resolver) != ARES_SUCCESS)
        return;
    ares_destroy(old);
    resolver->changed = changed;
}

/* ---- Entries ---- */

static void drop_entry(struct resolve_entry **at)
{
    struct resolve_entry *entry = *at;
    *at = entry->next;
    entry->resolver->entry_count--;
    free(entry);
}

static struct resolve_entry *find_entry(struct resolver *resolver, const char *name)
{
    struct resolve_entry **at = &resolver->entries;
    while (*at) {
        struct resolve_entry *entry = *at;
        bool stale = !entry->asking && entry->expires_ms <= resolver->loop->now_ms;
        if (stale) {
            drop_entry(at);
            continue;
        }
        if (strcmp(entry->name, name) == 0)
            return entry;
        at = &entry->next;
    }
    return NULL;
}

static void drop_answers(struct resolver *resolver)
{
    struct resolve_entry **at = &resolver->entries;
    while (*at) {
        if ((*at)->asking)
            at = &(*at)->next;
        else
            drop_entry(at);
    }
}

static struct resolve_entry *new_entry(struct resolver *resolver, const char *name)
{
    if (resolver->entry_count >= ENTRIES_MAX)
        drop_answers(resolver);
    if (resolver->entry_count >= ENTRIES_MAX)
        return NULL;
    struct resolve_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->resolver = resolver;
    (void)strncpy(entry->name, name, sizeof entry->name - 1);
    entry->next = resolver->entries;
    resolver->entries = entry;
    resolver->entry_count++;
    return entry;
}

static void take_address(struct resolve_entry *entry, const struct sockaddr *address)
{
    if (entry->count == RESOLVE_ADDRESSES_MAX)
        return;
    struct net_address *taken = &entry->addresses[entry->count];
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        uint8_t bytes[4];
        memcpy(bytes, &v4.sin_addr, sizeof bytes);
        *taken = net_address_v4(bytes);
        entry->count++;
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        *taken = net_address_v6(v6.sin6_addr.s6_addr);
        entry->count++;
    }
}

static void answer(struct resolve_entry *entry, const char *why)
{
    struct resolve_request *request;
    while ((request = entry->requests)) {
        entry->requests = request->next;
        request->entry = NULL;
        request->done(request, entry->addresses, entry->count, why);
    }
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

static void ares_answers(void *data, int status, int timeouts, struct ares_addrinfo *result)
{
    struct resolve_entry *entry = data;
    struct resolver *resolver = entry->resolver;
    (void)timeouts;
    int keep = KEEP_SECONDS_MAX;
    for (struct ares_addrinfo_node *node = result ? result->nodes : NULL; node;
         node = node->ai_next) {
        take_address(entry, node->ai_addr);
        if (node->ai_ttl < keep)
            keep = node->ai_ttl;
    }
    if (result)
        ares_freeaddrinfo(result);
    entry->expires_ms =
        resolver->loop->now_ms + (entry->count > 0 && keep > 0 ? (int64_t)keep * 1000 : 0);
    answer(entry,
           entry->count > 0 ? NULL : why_not(status == ARES_SUCCESS ? ARES_ENODATA : status));
    /* Not before: who is answered may ask again, and then neither entry nor channel may go. */
    entry->asking = false;
    resolver->in_flight--;
}

static void start(struct resolver *resolver, struct resolve_entry *entry)
{
    const struct ares_addrinfo_hints hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_NOSORT};
    entry->asking = true;
    resolver->in_flight++;
    ares_getaddrinfo(resolver->channel, entry->name, NULL, &hints, ares_answers, entry);
    rearm(resolver);
}

void resolver_ask(struct resolver *resolver, const char *name, struct resolve_request *request)
{
    follow_host(resolver);
    struct resolve_entry *entry = find_entry(resolver, name);
    if (entry && !entry->asking) {
        request->done(request, entry->addresses, entry->count, NULL);
        return;
    }
    bool is_new = !entry;
    if (is_new)
        entry = new_entry(resolver, name);
    if (!entry) {
        request->done(request, NULL, 0, "too many names are being resolved");
        return;
    }
    request->entry = entry;
    request->next = entry->requests;
    entry->requests = request;
    if (is_new)
        start(resolver, entry);
}

void resolver_cancel(struct resolve_request *request)
{
    if (!request->entry)
        return;
    for (struct resolve_request **at = &request->entry->requests; *at; at = &(*at)->next) {
        if (*at != request)
            continue;
        *at = request->next;
        break;
    }
    request->entry = NULL;
}

void resolver_done(struct resolver *resolver)
{
    if (resolver->channel)
        ares_destroy(resolver->channel);
    resolver->channel = NULL;
    while (resolver->entries)
        drop_entry(&resolver->entries);
    loop_disarm(resolver->loop, &resolver->timer);
    ares_library_cleanup();
}
