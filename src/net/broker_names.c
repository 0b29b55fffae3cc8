/* SPDX-License-Identifier: MIT */
/* The jail's name server: an allowed name gets an address of the door, every other name does not
 * exist. No other server is asked, so no query carries data out of the jail. */
#include "net/broker_names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/broker.h"
#include "net/dns.h"
#include "net/sockets.h"

#define TTL_SECONDS 60
#define QUERIES_AT_ONCE 64
#define STREAMS_MAX 64
#define STREAM_MS 10000
#define DENIED_AGAIN_MS 2000

static const uint8_t ipv6_prefix[DOOR_IPV6_PREFIX_LENGTH / 8] = {0xfd, 0x62, 0x72, 0x69, 0x67, 0};

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void keep(void *text)
{
    (void)text;
}

void names_done(struct names *names)
{
    tdestroy(names->tree, keep);
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    *names = (struct names){0};
}

/* Reserves memory for the maximum number of names; the kernel allocates only the pages that are
 * used. The jail chooses the names: libc's tree is balanced, while its hash table could be made to
 * degrade to a linear search. */
int names_need(struct names *names, const char *name)
{
    if (!names->texts && !(names->texts = calloc(names->limit, sizeof(*names->texts))))
        return -1;
    char **const *found = tfind(&name, &names->tree, compare_texts);
    if (found)
        return (int)(*found - names->texts);
    char *copy = names->count < names->limit ? strdup(name) : NULL;
    if (!copy)
        return -1;
    names->texts[names->count] = copy;
    if (!tsearch(&names->texts[names->count], &names->tree, compare_texts)) {
        free(copy);
        return -1;
    }
    return (int)names->count++;
}

/* The last four bytes of an address of the door, as a number. */
static uint32_t number_of(const struct net_address *address)
{
    uint32_t wire;
    memcpy(&wire, address->bytes + (address->family == NET_V4 ? 0 : 12), sizeof wire);
    return ntohl(wire);
}

static struct net_address address_of(enum net_family family, uint32_t number)
{
    struct net_address address = {.family = family};
    uint32_t wire = htonl(number);
    if (family == NET_V6)
        memcpy(address.bytes, ipv6_prefix, sizeof ipv6_prefix);
    memcpy(address.bytes + (family == NET_V4 ? 0 : 12), &wire, sizeof wire);
    return address;
}

struct net_address names_ipv4(size_t index)
{
    return address_of(NET_V4, DOOR_IPV4_FIRST + (uint32_t)index);
}

struct net_address names_ipv6(size_t index)
{
    return address_of(NET_V6, DOOR_IPV6_FIRST + (uint32_t)index);
}

bool names_is_ours(const struct net_address *address)
{
    if (address->family == NET_V6)
        return memcmp(address->bytes, ipv6_prefix, sizeof ipv6_prefix) == 0;
    return number_of(address) >> (32 - DOOR_IPV4_PREFIX_LENGTH) ==
           DOOR_IPV4_PREFIX >> (32 - DOOR_IPV4_PREFIX_LENGTH);
}

const char *names_find(const struct names *names, const struct net_address *address)
{
    bool v4 = address->family == NET_V4;
    uint32_t first = v4 ? DOOR_IPV4_FIRST : DOOR_IPV6_FIRST;
    /* For an address below the first, the difference wraps to a large number. */
    size_t index = (size_t)(number_of(address) - first);
    if (index >= names->count)
        return NULL;
    struct net_address own = address_of(address->family, first + (uint32_t)index);
    return net_address_equal(&own, address) ? names->texts[index] : NULL;
}

/* ---- Answers ---- */

/* A connection to the name server. */
struct dns_stream {
    struct node node; /* must be first */
    struct broker *broker;
    struct watch watch;
    struct timer timer;
    size_t size;
    uint8_t input[DNS_FRAME_PREFIX + DNS_QUERY_MAX];
};

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
    if (!was_denied(broker, name))
        broker_tell(broker, &event, name, rule, detail);
}

/* Decides how to answer a query for this name; fills in both of its addresses. */
static enum dns_code decide(struct broker *broker, enum door_socket via,
                            const struct dns_query *query, struct net_address addresses[2],
                            size_t *ret_count)
{
    const char *name = query->name;
    /* Many programs look up the names of addresses by themselves: not an event. */
    if (!query->has_name || net_name_below(name, "arpa"))
        return DNS_NXDOMAIN;
    if (net_name_is_localhost(name)) {
        addresses[0] = socket_loopback(NET_V4);
        addresses[1] = socket_loopback(NET_V6);
        *ret_count = 2;
        return DNS_NOERROR;
    }
    struct net_verdict verdict = net_rules_resolve(&broker->config.rules, name);
    if (verdict.reason != NET_OK) {
        const char *detail;
        enum door_because because =
            broker_config_because(&broker->config, name, verdict.reason, &detail);
        tell(broker, via, name, DOOR_DENIED, because, verdict.rule, detail);
        return DNS_NXDOMAIN;
    }
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
    for (size_t i = 0; i < QUERIES_AT_ONCE; i++) {
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
    stream->broker->dns_stream_count--;
    loop_disarm(&stream->timer);
    loop_close(loop, &stream->watch);
    loop_free_later(loop, &stream->node);
}

void dns_streams_end(struct broker *broker)
{
    while (broker->dns_streams)
        stream_end((struct dns_stream *)broker->dns_streams);
}

/* Answers one message; false if the connection is over. */
static bool answer_frame(struct dns_stream *stream, const uint8_t *message, size_t length)
{
    uint8_t frame[DNS_FRAME_PREFIX + DNS_ANSWER_MAX];
    size_t size =
        answer(stream->broker, DOOR_SOCKET_DNS_TCP, message, length, frame + DNS_FRAME_PREFIX);
    if (size == 0)
        return true;
    dns_frame_prefix(size, frame);
    size += DNS_FRAME_PREFIX;
    /* The connection of a client that does not read its answers is closed. */
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
