/* SPDX-License-Identifier: MIT */
/* The destination of a held connection, from the first bytes of its SYN. */
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

int main(void)
{
    test_v4();
    test_v6();
    return tap_done();
}
