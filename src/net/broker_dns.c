/* SPDX-License-Identifier: MIT */
/* The jail's name server: an allowed name has an address of the door's, every other does not exist.
 * Nothing is asked of anyone outside, so that no query carries anything out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/broker.h"
#include "net/broker_sockets.h"
#include "net/dns.h"

#define TTL_SECONDS 60
#define QUERIES_AT_ONCE 64
#define STREAMS_MAX 64
#define STREAM_MS 10000
#define DENIED_AGAIN_MS 2000

/* A connection to the name server. */
struct dns_stream {
    struct garbage garbage; /* must be first */
    struct broker *broker;
    struct dns_stream *next, **self;
    struct watch watch;
    struct timer timer;
    size_t size;
    uint8_t input[DNS_FRAME_PREFIX + DNS_QUERY_MAX];
};

/* ---- Answers ---- */

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

static void tell(struct broker *broker, enum door_socket via, const char *name,
                 enum door_verdict verdict, enum door_because because, const struct net_rule *rule,
                 const char *detail)
{
    struct door_event event = {.verdict = verdict, .because = because, .via = via};
    if (was_denied(broker, name))
        return;
    (void)snprintf(event.name, sizeof event.name, "%s", name);
    (void)snprintf(event.detail, sizeof event.detail, "%s", detail);
    if (rule)
        net_rule_print(rule, event.rule);

    broker_tell(broker, &event);
}

static void localhost_addresses(struct net_address addresses[2])
{
    static const uint8_t v4[4] = {127, 0, 0, 1};
    static const uint8_t v6[16] = {[15] = 1};
    addresses[0] = net_address_v4(v4);
    addresses[1] = net_address_v6(v6);
}

static enum dns_code deny(struct broker *broker, enum door_socket via, const char *name,
                          const struct net_verdict *verdict)
{
    bool injected = broker_config_injected(&broker->config, name);
    bool rule = verdict->reason == NET_DENIED;
    enum door_because because = rule ? DOOR_BECAUSE_RULE : DOOR_BECAUSE_NO_RULE;
    tell(broker, via, name, DOOR_DENIED, injected ? DOOR_BECAUSE_INJECTED : because, verdict->rule,
         injected ? "reached through its own endpoint only" : net_reason_text(verdict->reason));
    return DNS_NXDOMAIN;
}

/* What to answer to a query for this name; fills in both its addresses. */
static enum dns_code decide(struct broker *broker, enum door_socket via,
                            const struct dns_query *query, struct net_address addresses[2],
                            size_t *ret_count)
{
    const char *name = query->name;
    /* Asking for the name of an address is what many programs do of themselves: no event. */
    if (!query->has_name || net_name_below(name, "arpa"))
        return DNS_NXDOMAIN;
    if (net_name_is_localhost(name)) {
        localhost_addresses(addresses);
        *ret_count = 2;
        return DNS_NOERROR;
    }
    struct net_verdict verdict = net_rules_resolve(&broker->config.rules, name);
    if (verdict.reason != NET_OK)
        return deny(broker, via, name, &verdict);
    if (query->type != DNS_TYPE_A && query->type != DNS_TYPE_AAAA)
        return DNS_NOERROR;
    int index = names_need(&broker->names, name);
    if (index < 0) {
        tell(broker, via, name, DOOR_ERROR, DOOR_BECAUSE_NAMES, NULL, "the limit on names");
        return DNS_NXDOMAIN;
    }
    addresses[0] = names_ipv4((size_t)index);
    addresses[1] = names_ipv6((size_t)index);
    *ret_count = 2;
    return DNS_NOERROR;
}

/* Returns the length of the answer, 0 if there is none. */
static size_t answer(struct broker *broker, enum door_socket via, const uint8_t *bytes,
                     size_t length, uint8_t reply[DNS_ANSWER_MAX])
{
    struct dns_query query;
    struct net_address addresses[2];
    size_t count = 0;
    enum dns_code code = dns_query_read(bytes, length, &query);
    if (code == DNS_DROP)
        return 0;
    if (code == DNS_NOERROR)
        code = decide(broker, via, &query, addresses, &count);
    return dns_answer(&query, code, addresses, count, TTL_SECONDS, reply);
}

/* ---- UDP ---- */

void dns_udp_ready(struct listener *listener)
{
    struct broker *broker = listener->broker;
    uint8_t query[DNS_QUERY_MAX + 1], reply[DNS_ANSWER_MAX];
    for (size_t i = 0; i < QUERIES_AT_ONCE && !broker->paused; i++) {
        union socket_address from;
        socklen_t from_length = sizeof from;
        ssize_t length = recvfrom(listener->watch.fd, query, sizeof query, MSG_DONTWAIT, &from.any,
                                  &from_length);
        if (length < 0)
            return;
        size_t size = answer(broker, listener->kind, query, (size_t)length, reply);
        if (size > 0)
            (void)sendto(listener->watch.fd, reply, size, MSG_DONTWAIT | MSG_NOSIGNAL, &from.any,
                         from_length);
    }
}

/* ---- TCP ---- */

static void stream_end(struct dns_stream *stream)
{
    struct loop *loop = &stream->broker->loop;
    *stream->self = stream->next;
    if (stream->next)
        stream->next->self = stream->self;
    stream->broker->dns_stream_count--;
    loop_disarm(loop, &stream->timer);
    loop_close(loop, &stream->watch);
    loop_free_later(loop, &stream->garbage);
}

void dns_streams_end(struct broker *broker)
{
    while (broker->dns_streams)
        stream_end(broker->dns_streams);
}

/* One message of it; false if the connection is over. */
static bool answer_frame(struct dns_stream *stream, const uint8_t *message, size_t length)
{
    uint8_t frame[DNS_FRAME_PREFIX + DNS_ANSWER_MAX];
    size_t size =
        answer(stream->broker, DOOR_SOCKET_DNS_TCP, message, length, frame + DNS_FRAME_PREFIX);
    if (size == 0)
        return true;
    dns_frame_prefix(size, frame);
    size += DNS_FRAME_PREFIX;
    /* Who does not read the answers gets no more of them. */
    return send(stream->watch.fd, frame, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static bool answer_frames(struct dns_stream *stream)
{
    const uint8_t *message;
    size_t length;
    int taken;
    while ((taken = dns_frame_read(stream->input, stream->size, &message, &length)) > 0) {
        if (!answer_frame(stream, message, length))
            return false;
        stream->size -= (size_t)taken;
        memmove(stream->input, stream->input + taken, stream->size);
    }
    return taken == 0;
}

static void stream_ready(struct watch *watch, uint32_t events)
{
    struct dns_stream *stream =
        (struct dns_stream *)((char *)watch - offsetof(struct dns_stream, watch));
    (void)events;
    ssize_t got = recv(watch->fd, stream->input + stream->size, sizeof stream->input - stream->size,
                       MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        stream->size += (size_t)got;
    if (got <= 0 || !answer_frames(stream) || stream->broker->paused) {
        stream_end(stream);
        return;
    }
    loop_arm(&stream->broker->loop, &stream->timer, STREAM_MS);
}

static void stream_expires(struct timer *timer)
{
    stream_end((struct dns_stream *)((char *)timer - offsetof(struct dns_stream, timer)));
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
    stream->next = broker->dns_streams;
    stream->self = &broker->dns_streams;
    if (stream->next)
        stream->next->self = &stream->next;
    broker->dns_streams = stream;
    broker->dns_stream_count++;
    loop_arm(&broker->loop, &stream->timer, STREAM_MS);
    if (!loop_watch(&broker->loop, &stream->watch, EPOLLIN))
        stream_end(stream);
}
