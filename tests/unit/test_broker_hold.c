/* SPDX-License-Identifier: MIT */
/* The kernel's messages about held connections, and the destination from the first bytes of a SYN. */
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <string.h>

#include "net/broker_connection.h"
#include "tap.h"

#define LENGTH_V4 40 /* IPv4 and TCP without options */
#define LENGTH_V6 44 /* up to the ports */

static void test_v4(void)
{
    uint8_t packet[64] = {0x45, [9] = 6, [12] = 198, 18, 0, 1, 93, 184, 216, 34, 0x80, 1, 1, 0xbb};
    char text[NET_ADDRESS_TEXT_MAX];
    struct hold hold = {0};
    tap_ok(hold_read_packet(packet, LENGTH_V4, &hold), "a SYN without options is read");
    net_address_print(&hold.to, text);
    tap_is_str(text, "93.184.216.34", "with the destination");
    tap_is_int(hold.to_port, 443, "its port");
    tap_is_int(hold.from_port, 0x8001, "and the client's");
    tap_ok(!hold_read_packet(packet, LENGTH_V4 - 1, &hold), "one byte less is too short");
    tap_ok(!hold_read_packet(packet, 0, &hold), "and so is nothing");
    packet[0] = 0x4f; /* a header of 60 bytes */
    tap_ok(!hold_read_packet(packet, 63, &hold), "ports behind the end are not read");
    tap_ok(hold_read_packet(packet, 64, &hold), "options of IPv4 are skipped");
    packet[9] = 17;
    tap_ok(!hold_read_packet(packet, 64, &hold), "UDP is not TCP");
}

static void test_v6(void)
{
    uint8_t packet[64] = {0x60, [6] = 6, [24] = 0x26, 6, [39] = 0x34, 0, 9, 0, 80};
    char text[NET_ADDRESS_TEXT_MAX];
    struct hold hold = {0};
    tap_ok(hold_read_packet(packet, LENGTH_V6, &hold), "a SYN of IPv6 is read");
    net_address_print(&hold.to, text);
    tap_is_str(text, "2606::34", "with the destination");
    tap_is_int(hold.to_port, 80, "and its port");
    tap_ok(!hold_read_packet(packet, LENGTH_V6 - 1, &hold), "one byte less is too short");
    packet[6] = 0; /* hop-by-hop options */
    tap_ok(!hold_read_packet(packet, 64, &hold), "extension headers are refused");
}

/* ---- Messages ---- */

#define PACKET_TYPE (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET)
#define ROOM 512

static size_t put(uint8_t *bytes, size_t at, const void *data, size_t size)
{
    memcpy(bytes + at, data, size);
    return at + size;
}

/* Writes the message about a SYN with `extra` bytes of data, as the kernel does; returns its
 * length, which is that in its head. */
static size_t put_packet(uint8_t *bytes, uint8_t number, size_t extra)
{
    const uint8_t packet[64] = {0x45, [9] = 6, [12] = 198, 18,   0, 1, 93,
                                184,  216,     34,         0x80, 1, 0, 80};
    const uint8_t about[8] = {[3] = number};
    struct nlmsghdr head = {.nlmsg_type = PACKET_TYPE};
    const struct nlattr first = {.nla_len = NLA_HDRLEN + 7, .nla_type = NFQA_PACKET_HDR};
    const struct nlattr second = {.nla_len = (uint16_t)(NLA_HDRLEN + LENGTH_V4 + extra),
                                  .nla_type = NFQA_PAYLOAD};
    size_t at = sizeof head + sizeof(struct nfgenmsg);
    at = put(bytes, at, &first, sizeof first);
    at = put(bytes, at, about, sizeof about);
    at = put(bytes, at, &second, sizeof second);
    at = put(bytes, at, packet, LENGTH_V4 + extra);
    head.nlmsg_len = (uint32_t)at;
    (void)put(bytes, 0, &head, sizeof head);
    return at;
}

static void test_messages(void)
{
    uint8_t bytes[ROOM] = {0};
    struct hold_message message;
    size_t first = put_packet(bytes, 7, 0), second = put_packet(bytes + first, 8, 0);
    tap_is_int((long)hold_read_message(bytes, first + second, &message), (long)first,
               "the first of two messages is read");
    tap_ok(message.kind == HOLD_PACKET && message.is_tcp && message.hold.packet == 7,
           "with the packet and its number");
    tap_is_int((long)hold_read_message(bytes + first, second, &message), (long)second,
               "and then the second");
    tap_is_int(message.hold.packet, 8, "with its own number");
    tap_is_int((long)hold_read_message(bytes, first - 1, &message), 0,
               "a message that is cut off is not read");
    tap_is_int((long)hold_read_message(bytes, 0, &message), 0, "nor is nothing");
}

/* The kernel does not pad a packet. What is behind it in the buffer is not a message. */
static void test_unpadded(void)
{
    for (size_t extra = 1; extra < 4; extra++) {
        uint8_t bytes[ROOM] = {0};
        struct hold_message message;
        size_t length = put_packet(bytes, 7, extra);
        (void)put_packet(bytes + NLMSG_ALIGN(length), 9, 0);
        size_t used = hold_read_message(bytes, length, &message);
        tap_is_int((long)used, (long)length, "a SYN with %zu bytes of data ends with them", extra);
        tap_is_int(message.hold.packet, 7, "and is read");
    }
}

static void test_errors(void)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
    } bytes = {.head = {.nlmsg_len = sizeof bytes, .nlmsg_type = NLMSG_ERROR},
               .error = {.error = -EPERM}};
    struct hold_message message;
    (void)hold_read_message((const uint8_t *)&bytes, sizeof bytes, &message);
    tap_is_int(message.kind, HOLD_FORBIDDEN, "a verdict that is not permitted is known");
    bytes.error.error = -ENOENT;
    (void)hold_read_message((const uint8_t *)&bytes, sizeof bytes, &message);
    tap_is_int(message.kind, HOLD_OTHER, "another error is ignored");
}

int main(void)
{
    test_v4();
    test_v6();
    test_messages();
    test_unpadded();
    test_errors();
    return tap_done();
}
