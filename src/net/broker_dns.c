/* SPDX-License-Identifier: MIT */
/* The jail's name server. A name that may be reached gets an address of the door, every other name
 * does not exist.
 *
 * Where only some names are allowed, no other server is asked, so no query carries data out of the
 * jail. Where every public name is allowed, the resolvers outside are asked whether the name exists
 * when the jail asks for the first time; the query waits for them, within limits. */
#include "net/broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/dns.h"
#include "net/sockets.h"

#define TTL_SECONDS 60
#define QUERIES_AT_ONCE 64
#define STREAMS_MAX 64
#define STREAM_MS 10000
#define DENIED_AGAIN_MS 2000
#define LOOKUPS_MAX 256 /* names that are resolved at one time */
#define ASKERS_MAX 1024 /* queries that wait for them */
#define LOOKUP_MS 4000  /* resolvers in the jail repeat a query after five seconds */

/* A connection to the name server. */
struct dns_stream {
    struct node node; /* must be first */
    struct broker *broker;
    struct watch watch;
    struct timer timer;
    bool broken; /* an answer could not be sent */
    size_t size;
    uint8_t input[DNS_FRAME_PREFIX + DNS_QUERY_MAX];
};

/* The client of one query: the sender of a datagram, or a connection. */
struct asker {
    struct node node; /* in the list of a lookup; must be first */
    int fd;           /* of the listener */
    union socket_address from;
    socklen_t from_length;
    struct dns_stream *stream; /* NULL: a datagram */
    struct dns_query query;
};

/* A name that is being resolved for queries. */
struct lookup {
    struct node node; /* must be first */
    struct broker *broker;
    struct resolve_request resolve;
    struct timer timer;
    struct node *askers;
    char name[NET_NAME_MAX + 1];
};

/* What is answered. */
struct answer {
    enum dns_code code;
    struct net_address addresses[2];
    size_t count;
};

/* ---- Events ---- */

static bool was_denied(struct broker *broker, const char *name)
{
    for (size_t i = 0; i < DENIED_NAMES_MAX; i++) {
        const struct denied_name *denied = &broker->denied[i];
        if (broker->loop.now_ms - denied->when_ms < DENIED_AGAIN_MS &&
            strcmp(denied->name, name) == 0)
            return true;
    }
    struct denied_name *denied = &broker->denied[broker->next_denied++ % DENIED_NAMES_MAX];
    (void)snprintf(denied->name, sizeof denied->name, "%s", name);
    denied->when_ms = broker->loop.now_ms;
    return false;
}

static enum door_socket via_of(const struct asker *asker)
{
    return asker->stream ? DOOR_SOCKET_DNS_TCP : DOOR_SOCKET_DNS_UDP;
}

static void tell(struct broker *broker, const struct asker *asker, struct door_event event,
                 const struct net_rule *rule, const char *detail)
{
    event.via = via_of(asker);
    if (!was_denied(broker, asker->query.name))
        broker_tell(broker, &event, asker->query.name, rule, detail);
}

/* ---- Answers ---- */

static void reply(const struct asker *asker, const struct answer *answer)
{
    uint8_t frame[DNS_FRAME_PREFIX + DNS_ANSWER_MAX];
    uint8_t *message = frame + DNS_FRAME_PREFIX;
    size_t size = dns_answer(&asker->query, answer->code, answer->addresses, answer->count,
                             TTL_SECONDS, message);
    if (!asker->stream) {
        (void)sendto(asker->fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL, &asker->from.any,
                     asker->from_length);
        return;
    }
    dns_frame_prefix(size, frame);
    size += DNS_FRAME_PREFIX;
    /* The connection of a client that does not read its answers is closed. */
    if (send(asker->stream->watch.fd, frame, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
        asker->stream->broken = true;
}

static void reply_code(const struct asker *asker, enum dns_code code)
{
    const struct answer answer = {.code = code};
    reply(asker, &answer);
}

/* Replies with the addresses that stand for the name. */
static void reply_name(struct broker *broker, const struct asker *asker)
{
    struct answer answer = {.code = DNS_NOERROR, .count = 2};
    if (asker->query.type != DNS_TYPE_A && asker->query.type != DNS_TYPE_AAAA) {
        reply_code(asker, DNS_NOERROR);
        return;
    }
    int index = names_need(&broker->names, asker->query.name);
    if (index < 0) {
        tell(broker, asker,
             (struct door_event){.verdict = DOOR_ERROR, .because = DOOR_BECAUSE_NAMES}, NULL,
             "the limit on names");
        reply_code(asker, DNS_NXDOMAIN);
        return;
    }
    answer.addresses[0] = names_ipv4((size_t)index);
    answer.addresses[1] = names_ipv6((size_t)index);
    reply(asker, &answer);
}

static void reply_localhost(const struct asker *asker)
{
    const struct answer answer = {.code = DNS_NOERROR,
                                  .addresses = {socket_loopback(NET_V4), socket_loopback(NET_V6)},
                                  .count = 2};
    reply(asker, &answer);
}

/* ---- Lookups ---- */

static void stream_end(struct dns_stream *stream);

static void asker_forget(struct broker *broker, struct asker *asker)
{
    broker->asker_count--;
    loop_free_later(&broker->loop, &asker->node);
}

/* A connection that ends forgets its queries. */
static void forget_stream(struct broker *broker, const struct dns_stream *stream)
{
    for (struct node *at = broker->lookups; at; at = at->next)
        for (struct node *one = ((struct lookup *)at)->askers, *next; one; one = next) {
            next = one->next;
            if (((struct asker *)one)->stream == stream)
                asker_forget(broker, (struct asker *)one);
        }
}

/* Answers all clients: with the address of the name, or with the code. */
static void answer_askers(struct lookup *lookup, enum dns_code code, bool has_address)
{
    struct broker *broker = lookup->broker;
    while (lookup->askers) {
        struct asker *asker = (struct asker *)lookup->askers;
        struct dns_stream *stream = asker->stream;
        if (has_address)
            reply_name(broker, asker);
        else
            reply_code(asker, code);
        asker_forget(broker, asker);
        if (stream && stream->broken)
            stream_end(stream);
    }
}

static void lookup_end(struct lookup *lookup)
{
    struct broker *broker = lookup->broker;
    broker->lookup_count--;
    while (lookup->askers)
        asker_forget(broker, (struct asker *)lookup->askers);
    loop_disarm(&lookup->timer);
    resolver_cancel(&lookup->resolve);
    loop_free_later(&broker->loop, &lookup->node);
}

/* The lookup continues: when the client asks again, the name may be known. */
static void lookup_late(struct timer *timer)
{
    answer_askers(container_of(timer, struct lookup, timer), DNS_SERVFAIL, false);
}

static void lookup_done(struct resolve_request *request, const struct net_address *addresses,
                        size_t count, const char *why)
{
    struct lookup *lookup = container_of(request, struct lookup, resolve);
    struct broker *broker = lookup->broker;
    (void)addresses;
    if (lookup->askers && why)
        tell(broker, (struct asker *)lookup->askers,
             (struct door_event){.verdict = DOOR_ERROR, .because = DOOR_BECAUSE_NO_NAME}, NULL,
             why);
    if (count > 0 && !lookup->askers)
        (void)names_need(&broker->names, lookup->name);
    answer_askers(lookup, request->code, count > 0);
    lookup_end(lookup);
}

static struct lookup *lookup_find(const struct broker *broker, const char *name)
{
    struct node *at = broker->lookups;
    while (at && strcmp(((struct lookup *)at)->name, name) != 0)
        at = at->next;
    return (struct lookup *)at;
}

static struct lookup *lookup_new(struct broker *broker, const char *name)
{
    struct lookup *lookup = broker->lookup_count < LOOKUPS_MAX ? calloc(1, sizeof *lookup) : NULL;
    if (!lookup)
        return NULL;
    lookup->broker = broker;
    lookup->timer.fire = lookup_late;
    lookup->resolve.done = lookup_done;
    (void)snprintf(lookup->name, sizeof lookup->name, "%s", name);
    node_add(&broker->lookups, &lookup->node);
    broker->lookup_count++;
    return lookup;
}

/* Lets the query wait until the name is resolved. A query for a name that is being resolved waits
 * for the same answer. */
static void look_up(struct broker *broker, const struct asker *asker)
{
    struct asker *waiting = broker->asker_count < ASKERS_MAX ? malloc(sizeof *waiting) : NULL;
    struct lookup *known = lookup_find(broker, asker->query.name);
    struct lookup *lookup = known || !waiting ? known : lookup_new(broker, asker->query.name);
    if (!waiting || !lookup) {
        free(waiting);
        reply_code(asker, DNS_SERVFAIL);
        return;
    }
    *waiting = *asker;
    node_add(&lookup->askers, &waiting->node);
    broker->asker_count++;
    if (!lookup->timer.node.self)
        loop_arm(&broker->loop, &lookup->timer, LOOKUP_MS);
    if (!known)
        resolver_ask(&broker->resolver, lookup->name, &lookup->resolve);
}

/* ---- Decisions ---- */

/* Whether the resolvers outside decide if this name exists. A name that has an address in the jail
 * is not looked up again, and one that the host's proxy resolves need not exist here. */
static bool needs_lookup(const struct broker *broker, const char *name, const struct net_rule *rule)
{
    return broker->config.open && !(rule && rule->kind == NET_RULE_HOST) &&
           names_index(&broker->names, name) < 0 &&
           !broker_config_is_proxied(&broker->config, name);
}

static void answer_name(struct broker *broker, const struct asker *asker)
{
    const char *name = asker->query.name;
    broker_hear(broker);
    struct net_verdict verdict = net_rules_resolve(&broker->config.rules, name);
    /* So that a connection to the host is refused with its port, which the user needs to know to
     * allow it; and so that the user can be asked about a connection. */
    if (verdict.reason == NET_NO_RULE && (broker->config.ask || strcmp(name, NET_HOST_NAME) == 0)) {
        reply_name(broker, asker);
        return;
    }
    if (verdict.reason != NET_OK) {
        const char *detail;
        enum door_because because =
            broker_config_because(&broker->config, name, verdict.reason, &detail);
        tell(broker, asker, (struct door_event){.verdict = DOOR_DENIED, .because = because},
             verdict.rule, detail);
        reply_code(asker, DNS_NXDOMAIN);
    } else if (needs_lookup(broker, name, verdict.rule)) {
        look_up(broker, asker);
    } else {
        reply_name(broker, asker);
    }
}

/* Answers the query in these bytes, now or later. */
static void answer_query(struct broker *broker, struct asker *asker, const uint8_t *bytes,
                         size_t length)
{
    enum dns_code code = dns_query_read(bytes, length, &asker->query);
    if (code == DNS_DROP)
        return;
    if (code != DNS_NOERROR)
        reply_code(asker, code);
    /* Many programs look up the names of addresses by themselves: not an event. */
    else if (!asker->query.has_name || net_name_below(asker->query.name, "arpa"))
        reply_code(asker, DNS_NXDOMAIN);
    else if (net_name_is_localhost(asker->query.name))
        reply_localhost(asker);
    else
        answer_name(broker, asker);
}

/* ---- UDP ---- */

void dns_udp_ready(struct listener *listener)
{
    uint8_t query[DNS_QUERY_MAX + 1];
    for (size_t i = 0; i < QUERIES_AT_ONCE; i++) {
        struct asker asker = {.fd = listener->watch.fd, .from_length = sizeof asker.from};
        ssize_t length = recvfrom(asker.fd, query, sizeof query, MSG_DONTWAIT, &asker.from.any,
                                  &asker.from_length);
        if (length < 0)
            return;
        answer_query(listener->broker, &asker, query, (size_t)length);
    }
}

/* ---- TCP ---- */

/* Ends a connection, once: a name may be resolved, and its answer fail, while the query is still
 * being read. */
static void stream_end(struct dns_stream *stream)
{
    struct loop *loop = &stream->broker->loop;
    if (stream->watch.fd < 0)
        return;
    stream->broker->dns_stream_count--;
    forget_stream(stream->broker, stream);
    loop_disarm(&stream->timer);
    loop_close(loop, &stream->watch);
    loop_free_later(loop, &stream->node);
}

void dns_end(struct broker *broker)
{
    while (broker->lookups)
        lookup_end((struct lookup *)broker->lookups);
    while (broker->dns_streams)
        stream_end((struct dns_stream *)broker->dns_streams);
}

/* Answers the messages that have arrived; false if the connection is over. */
static bool answer_frames(struct dns_stream *stream)
{
    const uint8_t *message;
    size_t length;
    int taken = 0;
    while (!stream->broken &&
           (taken = dns_frame_read(stream->input, stream->size, &message, &length)) > 0) {
        struct asker asker = {.fd = -1, .stream = stream};
        answer_query(stream->broker, &asker, message, length);
        stream->size -= (size_t)taken;
        memmove(stream->input, stream->input + taken, stream->size);
    }
    return taken == 0 && !stream->broken;
}

static void stream_ready(struct watch *watch, uint32_t events)
{
    struct dns_stream *stream = container_of(watch, struct dns_stream, watch);
    (void)events;
    ssize_t got = recv(watch->fd, stream->input + stream->size, sizeof stream->input - stream->size,
                       MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        stream->size += (size_t)got;
    if (got <= 0 || !answer_frames(stream)) {
        stream_end(stream);
        return;
    }
    loop_arm(&stream->broker->loop, &stream->timer, STREAM_MS);
}

static void stream_expires(struct timer *timer)
{
    stream_end(container_of(timer, struct dns_stream, timer));
}

void dns_tcp_accepted(struct listener *listener, int fd)
{
    struct broker *broker = listener->broker;
    struct dns_stream *stream =
        broker->dns_stream_count < STREAMS_MAX ? calloc(1, sizeof *stream) : NULL;
    if (!stream) {
        (void)close(fd);
        return;
    }
    stream->broker = broker;
    stream->watch = (struct watch){.fd = fd, .ready = stream_ready};
    stream->timer.fire = stream_expires;
    node_add(&broker->dns_streams, &stream->node);
    broker->dns_stream_count++;
    loop_arm(&broker->loop, &stream->timer, STREAM_MS);
    if (!loop_watch(&broker->loop, &stream->watch, EPOLLIN))
        stream_end(stream);
}
