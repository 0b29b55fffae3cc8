/* SPDX-License-Identifier: MIT */
/* Clients that wait in connect(). Where the kernel has nfnetlink_queue, the SYN of every connection
 * to the door is put into a queue in the jail's network namespace (jail/net/door_netlink.h). The
 * broker reads the destination from it, connects to the other side first, and then lets the SYN go
 * on to the listener, or has the kernel reset it: the client's connect() succeeds or fails as it
 * would without a door.
 *
 * The messages come from the kernel, the addresses in them from the jail. A verdict needs
 * CAP_NET_ADMIN in the jail's user namespace, which the owner of that namespace has outside of it
 * without any capability of its own. */
#include "net/broker_connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "net/sockets.h"

#define PACKETS_AT_ONCE 64
#define PACKET_TYPE ((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_PACKET)
#define VERDICT_TYPE ((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_VERDICT)
#define IPV6_HEADER 40
#define TCP_PORTS 4 /* bytes: both ports are at the start of the header */

/* From <linux/netfilter.h>, which conflicts with <netinet/in.h>. */
enum queue_verdict {
    VERDICT_DROP = 0, /* the client sends its SYN again, after a second */
    VERDICT_ACCEPT = 1,
    VERDICT_STOP = 5, /* skips the redirection; the kernel resets the connection */
};

struct verdict_message {
    struct nlmsghdr head;
    struct nfgenmsg queue;
    struct nlattr attribute;
    struct nfqnl_msg_verdict_hdr verdict;
};

static bool send_verdict(const struct broker *broker, uint32_t packet, enum queue_verdict verdict)
{
    const struct verdict_message message = {
        .head = {.nlmsg_len = sizeof message,
                 .nlmsg_type = VERDICT_TYPE,
                 .nlmsg_flags = NLM_F_REQUEST},
        .queue = {.version = NFNETLINK_V0},
        .attribute = {.nla_len = sizeof message.attribute + sizeof message.verdict,
                      .nla_type = NFQA_VERDICT_HDR},
        .verdict = {.verdict = htonl(verdict), .id = htonl(packet)},
    };
    return send(broker->queue, &message, sizeof message, MSG_DONTWAIT) == sizeof message;
}

void hold_release(struct connection *connection, bool let_in)
{
    if (!connection->hold.waiting)
        return;
    connection->hold.waiting = false;
    (void)send_verdict(connection->broker, connection->hold.packet,
                       let_in ? VERDICT_ACCEPT : VERDICT_STOP);
}

/* ---- Packets ---- */

static uint16_t read_port(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

bool hold_read_packet(const uint8_t *bytes, size_t length, struct hold *hold)
{
    bool v4 = length > 0 && bytes[0] >> 4 == 4;
    size_t header = v4 ? (size_t)(bytes[0] & 15) * 4 : IPV6_HEADER;
    if (length < IPV6_HEADER || length < header + TCP_PORTS || bytes[v4 ? 9 : 6] != IPPROTO_TCP)
        return false;
    hold->from = v4 ? net_address_v4(bytes + 12) : net_address_v6(bytes + 8);
    hold->to = v4 ? net_address_v4(bytes + 16) : net_address_v6(bytes + 24);
    hold->from_port = read_port(bytes + header);
    hold->to_port = read_port(bytes + header + 2);
    return true;
}

/* Finds the packet's number and its first bytes; false if there is no number. */
static bool read_packet(const uint8_t *bytes, size_t length, struct hold_message *message)
{
    size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
    bool numbered = false;
    while (at + NLA_HDRLEN <= length) {
        struct nlattr attribute;
        struct nfqnl_msg_packet_hdr packet;
        memcpy(&attribute, bytes + at, sizeof attribute);
        if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > length - at)
            break;
        const uint8_t *data = bytes + at + NLA_HDRLEN;
        size_t size = attribute.nla_len - NLA_HDRLEN;
        int type = attribute.nla_type & NLA_TYPE_MASK;
        if (type == NFQA_PACKET_HDR && size >= sizeof packet) {
            memcpy(&packet, data, sizeof packet);
            message->hold.packet = ntohl(packet.packet_id);
            numbered = true;
        } else if (type == NFQA_PAYLOAD) {
            message->is_tcp = hold_read_packet(data, size, &message->hold);
        }
        at += NLA_ALIGN(attribute.nla_len);
    }
    return numbered;
}

static bool is_forbidden(const uint8_t *bytes, size_t length)
{
    struct nlmsgerr error;
    if (length < NLMSG_LENGTH(sizeof error))
        return false;
    memcpy(&error, bytes + NLMSG_HDRLEN, sizeof error);
    return error.error == -EPERM;
}

size_t hold_read_message(const uint8_t *bytes, size_t length, struct hold_message *ret_message)
{
    struct nlmsghdr head;
    if (length < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > length)
        return 0;
    *ret_message = (struct hold_message){.hold.waiting = true};
    if (head.nlmsg_type == PACKET_TYPE && read_packet(bytes, head.nlmsg_len, ret_message))
        ret_message->kind = HOLD_PACKET;
    else if (head.nlmsg_type == NLMSG_ERROR && is_forbidden(bytes, head.nlmsg_len))
        ret_message->kind = HOLD_FORBIDDEN;
    /* The kernel does not pad a packet whose length is not a multiple of four. */
    size_t next = NLMSG_ALIGN(head.nlmsg_len);
    return next < length ? next : length;
}

/* ---- Connections ---- */

static bool is_from(const struct connection *connection, const struct hold *hold)
{
    const struct hold *own = &connection->hold;
    return (own->waiting || connection->stage == CONNECTION_ARRIVE) &&
           own->from_port == hold->from_port && own->to_port == hold->to_port &&
           net_address_equal(&own->from, &hold->from) && net_address_equal(&own->to, &hold->to);
}

static struct connection *find(const struct broker *broker, const struct hold *hold)
{
    struct node *at = broker->connections;
    while (at && !is_from((struct connection *)at, hold))
        at = at->next;
    return (struct connection *)at;
}

struct connection *hold_find(const struct broker *broker, int client)
{
    struct hold hold = {0};
    union socket_address peer;
    socklen_t length = sizeof peer;
    if (broker->queue < 0 || getpeername(client, &peer.any, &length) < 0 ||
        !socket_address_read(&peer, &hold.from, &hold.from_port) ||
        !socket_destination(client, &hold.to, &hold.to_port))
        return NULL;
    struct connection *connection = find(broker, &hold);
    return connection && !connection->hold.waiting ? connection : NULL;
}

/* A client repeats its SYN while it waits: the first one is decided about. */
static void take_packet(struct broker *broker, const struct hold *hold)
{
    const struct connection *known = find(broker, hold);
    if (known)
        (void)send_verdict(broker, hold->packet,
                           known->hold.waiting ? VERDICT_DROP : VERDICT_ACCEPT);
    else if (!connection_held(broker, hold))
        (void)send_verdict(broker, hold->packet, VERDICT_STOP);
}

/* The kernel takes no verdict from this process. With the socket the queue ends, and packets bypass
 * it; a client whose SYN was in it sends it again. */
static void give_up(struct listener *listener)
{
    struct broker *broker = listener->broker;
    for (struct node *at = broker->connections, *next; at; at = next) {
        next = at->next;
        if (hold_waits((struct connection *)at))
            connection_close((struct connection *)at, DOOR_ERROR, DOOR_BECAUSE_RESET, "", true);
    }
    loop_close(&broker->loop, &listener->watch);
    broker->queue = -1;
}

/* Takes the messages of one datagram; false if the kernel takes no verdict. */
static bool take_messages(struct broker *broker, const uint8_t *bytes, size_t length)
{
    struct hold_message message;
    for (size_t at = 0, used; (used = hold_read_message(bytes + at, length - at, &message)) > 0;
         at += used) {
        if (message.kind == HOLD_FORBIDDEN)
            return false;
        if (message.kind == HOLD_PACKET && message.is_tcp)
            take_packet(broker, &message.hold);
        else if (message.kind == HOLD_PACKET)
            (void)send_verdict(broker, message.hold.packet, VERDICT_STOP);
    }
    return true;
}

void hold_ready(struct listener *listener)
{
    uint8_t bytes[8192];
    for (size_t i = 0; i < PACKETS_AT_ONCE; i++) {
        ssize_t got = recv(listener->watch.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got < 0)
            return;
        if (!take_messages(listener->broker, bytes, (size_t)got)) {
            give_up(listener);
            return;
        }
    }
}
