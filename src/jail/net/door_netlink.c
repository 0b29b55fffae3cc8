/* SPDX-License-Identifier: MIT */
/* Netlink messages for the network of a jail with a door. */
#include "jail/net/door_netlink.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "net/broker_wire.h"
#include "policy/net_address.h"

/* Loopback is the first device of every network namespace. */
#define LOOPBACK_INDEX 1
#define DEVICE_UP 1U /* IFF_UP */
/* From <linux/if_link.h>, missing in older distributions; and the device's maximum. */
#define LINK_GSO_MAX_SIZE 41
#define LINK_GSO_IPV4_MAX_SIZE 63
#define PACKET_BYTES 524280
/* For connections to addresses through the door; the numbers are arbitrary. */
#define DOOR_TABLE 100
#define DOOR_PRIORITY 100
/* From <linux/netfilter.h> and <linux/netfilter_ipv4.h>, which conflict with <netinet/in.h>. */
#define HOOK_LOCAL_IN 1
#define HOOK_LOCAL_OUT 3
#define PRIORITY_MANGLE (-150)
#define PRIORITY_NAT_DST (-100)
#define PRIORITY_FILTER 0
#define FAMILY_INET 1
#define PROTOCOL_TCP 6

static const uint8_t device_v4[4] = {198, 18, 0, 1};
static const uint8_t device_v6[16] = {0xfd, 0x62, 0x72, 0x69, 0x67, [15] = 1};

/* ---- messages and their attributes ---- */

/* The length of the header must need no padding; this holds for all headers used here. */
static size_t begin(struct str *bytes, unsigned type, unsigned flags, unsigned subject,
                    const void *header, size_t length)
{
    size_t at = bytes->length;
    struct nlmsghdr head = {.nlmsg_type = (uint16_t)type,
                            .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
                            .nlmsg_seq = subject};
    str_append_bytes(bytes, &head, sizeof head);
    str_append_bytes(bytes, header, length);
    return at;
}

/* Writes the length of the message or attribute that starts at `at`. */
static void end(struct str *bytes, size_t at)
{
    uint32_t length = (uint32_t)(bytes->length - at);
    if (!bytes->failed)
        memcpy(bytes->data + at, &length, sizeof length);
}

static void put(struct str *bytes, unsigned type, const void *data, size_t length)
{
    struct nlattr head = {.nla_len = (uint16_t)(NLA_HDRLEN + length), .nla_type = (uint16_t)type};
    size_t size = NLA_ALIGN(NLA_HDRLEN + length);
    char *added = str_extend(bytes, size);
    if (!added)
        return;
    memset(added + size - NLA_ALIGNTO, 0, NLA_ALIGNTO); /* padding */
    memcpy(added, &head, sizeof head);
    if (length > 0)
        memcpy(added + NLA_HDRLEN, data, length);
}

static void put_text(struct str *bytes, unsigned type, const char *text)
{
    put(bytes, type, text, strlen(text) + 1);
}

/* nf_tables uses network byte order, routing the machine's. */
static void put_be32(struct str *bytes, unsigned type, uint32_t value)
{
    uint32_t wire = htonl(value);
    put(bytes, type, &wire, sizeof wire);
}

static void put_u32(struct str *bytes, unsigned type, uint32_t value)
{
    put(bytes, type, &value, sizeof value);
}

static size_t nest(struct str *bytes, unsigned type)
{
    size_t at = bytes->length;
    put(bytes, type | NLA_F_NESTED, NULL, 0);
    return at;
}

static void unnest(struct str *bytes, size_t at)
{
    uint16_t length = (uint16_t)(bytes->length - at);
    if (!bytes->failed)
        memcpy(bytes->data + at, &length, sizeof length);
}

/* ---- routing ---- */

static void bring_up(struct str *bytes)
{
    struct ifinfomsg link = {
        .ifi_index = LOOPBACK_INDEX, .ifi_flags = DEVICE_UP, .ifi_change = DEVICE_UP};
    end(bytes, begin(bytes, RTM_NEWLINK, 0, DOOR_ABOUT_DEVICE, &link, sizeof link));
}

/* Loopback packets need not fit a wire: fewer and larger packets transfer much data faster. Before
 * 6.3 IPv4 allows none above 64 KiB, before 5.19 nor does IPv6. */
static void enlarge_packets(struct str *bytes)
{
    struct ifinfomsg link = {.ifi_index = LOOPBACK_INDEX};
    size_t at = begin(bytes, RTM_NEWLINK, 0, DOOR_ABOUT_PACKETS, &link, sizeof link);
    put_u32(bytes, LINK_GSO_MAX_SIZE, PACKET_BYTES);
    put_u32(bytes, LINK_GSO_IPV4_MAX_SIZE, PACKET_BYTES);
    end(bytes, at);
}

static void add_address_v4(struct str *bytes)
{
    struct ifaddrmsg address = {.ifa_family = AF_INET,
                                .ifa_prefixlen = DOOR_IPV4_PREFIX_LENGTH,
                                .ifa_index = LOOPBACK_INDEX};
    size_t at = begin(bytes, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, DOOR_ABOUT_DEVICE, &address,
                      sizeof address);
    put(bytes, IFA_LOCAL, device_v4, sizeof device_v4);
    put(bytes, IFA_ADDRESS, device_v4, sizeof device_v4);
    end(bytes, at);
}

/* Usable at once: no other host can have the address, so duplicate address detection is skipped. */
static void add_address_v6(struct str *bytes)
{
    struct ifaddrmsg address = {.ifa_family = AF_INET6,
                                .ifa_prefixlen = 128,
                                .ifa_flags = IFA_F_NODAD,
                                .ifa_index = LOOPBACK_INDEX};
    size_t at = begin(bytes, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, DOOR_ABOUT_IPV6, &address,
                      sizeof address);
    put(bytes, IFA_ADDRESS, device_v6, sizeof device_v6);
    end(bytes, at);
}

static void put_congestion(struct str *bytes)
{
    size_t metrics = nest(bytes, RTA_METRICS);
    put_text(bytes, RTAX_CC_ALGO, DOOR_CONGESTION);
    unnest(bytes, metrics);
}

/* Adds a local route: addresses of the range are delivered inside the jail. */
static void add_route(struct str *bytes, const struct net_range *range, unsigned table)
{
    bool v4 = range->base.family == NET_V4;
    struct rtmsg route = {.rtm_family = v4 ? AF_INET : AF_INET6,
                          .rtm_dst_len = (uint8_t)range->prefix,
                          .rtm_table = (uint8_t)table,
                          .rtm_protocol = RTPROT_STATIC,
                          .rtm_scope = v4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                          .rtm_type = RTN_LOCAL};
    size_t at = begin(bytes, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE,
                      v4 ? DOOR_ABOUT_ADDRESSES : DOOR_ABOUT_IPV6, &route, sizeof route);
    if (range->prefix > 0)
        put(bytes, RTA_DST, range->base.bytes, v4 ? 4 : 16);
    put_u32(bytes, RTA_OIF, LOOPBACK_INDEX);
    if (v4)
        put(bytes, RTA_PREFSRC, device_v4, sizeof device_v4);
    put_congestion(bytes);
    end(bytes, at);
}

/* Routes only TCP to the table. Without the rule UDP would be routed, too, and a program that sends
 * without connecting would wait for a reply in vain. */
static void add_tcp_rule(struct str *bytes, int family)
{
    struct fib_rule_hdr rule = {
        .family = (uint8_t)family, .table = DOOR_TABLE, .action = FR_ACT_TO_TBL};
    uint8_t protocol = PROTOCOL_TCP;
    size_t at =
        begin(bytes, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL,
              family == AF_INET ? DOOR_ABOUT_ADDRESSES : DOOR_ABOUT_IPV6, &rule, sizeof rule);
    put_u32(bytes, FRA_PRIORITY, DOOR_PRIORITY);
    put(bytes, FRA_IP_PROTO, &protocol, sizeof protocol);
    end(bytes, at);
}

static void add_ranges(struct str *bytes, const struct net_range *ranges, size_t count, bool v4)
{
    bool ruled = false;
    for (size_t i = 0; i < count; i++) {
        if ((ranges[i].base.family == NET_V4) != v4)
            continue;
        if (!ruled)
            add_tcp_rule(bytes, v4 ? AF_INET : AF_INET6);
        ruled = true;
        add_route(bytes, &ranges[i], DOOR_TABLE);
    }
}

void door_write_routes(struct str *bytes, const struct net_range *ranges, size_t count)
{
    struct net_range names_v4 = {.base = {.family = NET_V4}, .prefix = DOOR_IPV4_PREFIX_LENGTH};
    struct net_range names_v6 = {.base = {.family = NET_V6}, .prefix = DOOR_IPV6_PREFIX_LENGTH};
    memcpy(names_v4.base.bytes, device_v4, DOOR_IPV4_PREFIX_LENGTH / 8 + 1);
    memcpy(names_v6.base.bytes, device_v6, DOOR_IPV6_PREFIX_LENGTH / 8);
    bring_up(bytes);
    enlarge_packets(bytes);
    add_address_v4(bytes);
    add_route(bytes, &names_v4, RT_TABLE_LOCAL); /* replaces the route that the kernel created */
    add_ranges(bytes, ranges, count, true);
    add_address_v6(bytes);
    add_route(bytes, &names_v6, RT_TABLE_LOCAL);
    add_ranges(bytes, ranges, count, false);
}

/* ---- nf_tables ---- */

#define TABLE_NAME "brig"
#define CHAIN_NAME "door"
#define HOLD_CHAIN "hold"
#define REFUSE_CHAIN "refuse"
/* Bytes of a packet that the broker reads: the headers of IPv4 or IPv6 and TCP. */
#define QUEUE_COPY_BYTES 128
#define QUEUE_LENGTH 4096
#define QUEUE_TARGET "NFQUEUE"
#define QUEUE_TARGET_REVISION 2
#define COMPAT_TYPE_TARGET 1
#define TCP_FLAGS_OFFSET 13
#define TCP_SYN 0x02
#define TCP_SYN_OR_ACK 0x12

struct chain {
    const char *name, *type;
    unsigned hook;
    int priority;
};

static const struct chain door_chain = {CHAIN_NAME, "nat", HOOK_LOCAL_OUT, PRIORITY_NAT_DST};
static const struct chain hold_chain = {HOLD_CHAIN, "filter", HOOK_LOCAL_OUT, PRIORITY_MANGLE};
static const struct chain refuse_chain = {REFUSE_CHAIN, "filter", HOOK_LOCAL_IN, PRIORITY_FILTER};

static size_t begin_nft(struct str *bytes, unsigned type, unsigned flags)
{
    struct nfgenmsg header = {.nfgen_family = FAMILY_INET, .version = NFNETLINK_V0};
    return begin(bytes, (unsigned)NFNL_SUBSYS_NFTABLES << 8 | type, flags | NLM_F_ACK,
                 DOOR_ABOUT_REDIRECT, &header, sizeof header);
}

static void mark_batch(struct str *bytes, unsigned type)
{
    struct nfgenmsg header = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    end(bytes, begin(bytes, type, 0, DOOR_ABOUT_REDIRECT, &header, sizeof header));
}

static void add_table(struct str *bytes)
{
    size_t at = begin_nft(bytes, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    put_text(bytes, NFTA_TABLE_NAME, TABLE_NAME);
    end(bytes, at);
}

static void add_chain(struct str *bytes, const struct chain *chain)
{
    size_t at = begin_nft(bytes, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    put_text(bytes, NFTA_CHAIN_TABLE, TABLE_NAME);
    put_text(bytes, NFTA_CHAIN_NAME, chain->name);
    size_t hook = nest(bytes, NFTA_CHAIN_HOOK);
    put_be32(bytes, NFTA_HOOK_HOOKNUM, chain->hook);
    put_be32(bytes, NFTA_HOOK_PRIORITY, (uint32_t)chain->priority);
    unnest(bytes, hook);
    put_text(bytes, NFTA_CHAIN_TYPE, chain->type);
    end(bytes, at);
}

/* An expression is a name and its attributes in two nested attributes. */
struct expression {
    size_t element, data;
};

static struct expression begin_expression(struct str *bytes, const char *name)
{
    struct expression expression = {.element = nest(bytes, NFTA_LIST_ELEM)};
    put_text(bytes, NFTA_EXPR_NAME, name);
    expression.data = nest(bytes, NFTA_EXPR_DATA);
    return expression;
}

static void end_expression(struct str *bytes, struct expression expression)
{
    unnest(bytes, expression.data);
    unnest(bytes, expression.element);
}

static void put_value(struct str *bytes, unsigned type, const void *value, size_t length)
{
    size_t at = nest(bytes, type);
    put(bytes, NFTA_DATA_VALUE, value, length);
    unnest(bytes, at);
}

static void load_meta(struct str *bytes, unsigned key)
{
    struct expression meta = begin_expression(bytes, "meta");
    put_be32(bytes, NFTA_META_KEY, key);
    put_be32(bytes, NFTA_META_DREG, NFT_REG_1);
    end_expression(bytes, meta);
}

static void load_payload(struct str *bytes, unsigned base, unsigned offset, unsigned length)
{
    struct expression payload = begin_expression(bytes, "payload");
    put_be32(bytes, NFTA_PAYLOAD_DREG, NFT_REG_1);
    put_be32(bytes, NFTA_PAYLOAD_BASE, base);
    put_be32(bytes, NFTA_PAYLOAD_OFFSET, offset);
    put_be32(bytes, NFTA_PAYLOAD_LEN, length);
    end_expression(bytes, payload);
}

static void load_destination(struct str *bytes, unsigned offset, unsigned length)
{
    load_payload(bytes, NFT_PAYLOAD_NETWORK_HEADER, offset, length);
}

/* At most four bytes. */
static void mask(struct str *bytes, const uint8_t *bits, size_t length)
{
    static const uint8_t none[4];
    struct expression bitwise = begin_expression(bytes, "bitwise");
    put_be32(bytes, NFTA_BITWISE_SREG, NFT_REG_1);
    put_be32(bytes, NFTA_BITWISE_DREG, NFT_REG_1);
    put_be32(bytes, NFTA_BITWISE_LEN, (uint32_t)length);
    put_value(bytes, NFTA_BITWISE_MASK, bits, length);
    put_value(bytes, NFTA_BITWISE_XOR, none, length);
    end_expression(bytes, bitwise);
}

static void compare(struct str *bytes, unsigned operation, const void *value, size_t length)
{
    struct expression cmp = begin_expression(bytes, "cmp");
    put_be32(bytes, NFTA_CMP_SREG, NFT_REG_1);
    put_be32(bytes, NFTA_CMP_OP, operation);
    put_value(bytes, NFTA_CMP_DATA, value, length);
    end_expression(bytes, cmp);
}

static void load_value(struct str *bytes, unsigned target, const void *value, size_t length)
{
    struct expression immediate = begin_expression(bytes, "immediate");
    put_be32(bytes, NFTA_IMMEDIATE_DREG, target);
    put_value(bytes, NFTA_IMMEDIATE_DATA, value, length);
    end_expression(bytes, immediate);
}

/* Not "redirect", which would use a port of 127.0.0.1 in the jail. */
static void send_to_door(struct str *bytes, int family)
{
    uint16_t port = htons(DOOR_REDIRECT_PORT);
    bool v4 = family == AF_INET;
    load_value(bytes, NFT_REG_1, v4 ? device_v4 : device_v6, v4 ? 4 : 16);
    load_value(bytes, NFT_REG_2, &port, sizeof port);
    struct expression nat = begin_expression(bytes, "nat");
    put_be32(bytes, NFTA_NAT_TYPE, NFT_NAT_DNAT);
    put_be32(bytes, NFTA_NAT_FAMILY, (uint32_t)family);
    put_be32(bytes, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
    put_be32(bytes, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
    end_expression(bytes, nat);
}

static void match_tcp(struct str *bytes, int family)
{
    uint8_t protocol = PROTOCOL_TCP, network = (uint8_t)family;
    load_meta(bytes, NFT_META_NFPROTO); /* AF_INET and AF_INET6 are also netfilter's numbers */
    compare(bytes, NFT_CMP_EQ, &network, sizeof network);
    load_meta(bytes, NFT_META_L4PROTO);
    compare(bytes, NFT_CMP_EQ, &protocol, sizeof protocol);
}

static void match_v4(struct str *bytes)
{
    static const uint8_t loopback[1] = {127}, bits[4] = {255, 255, 255, 240}, own[4] = {198, 18};
    load_destination(bytes, 16, 1);
    compare(bytes, NFT_CMP_NEQ, loopback, sizeof loopback);
    load_destination(bytes, 16, 4);
    mask(bytes, bits, sizeof bits);
    compare(bytes, NFT_CMP_NEQ, own, sizeof own);
}

static void match_v6(struct str *bytes)
{
    static const uint8_t loopback[16] = {[15] = 1};
    load_destination(bytes, 24, 16);
    compare(bytes, NFT_CMP_NEQ, loopback, sizeof loopback);
}

/* A SYN that opens a connection, not one that answers. */
static void match_syn(struct str *bytes)
{
    static const uint8_t bits[1] = {TCP_SYN_OR_ACK}, syn[1] = {TCP_SYN};
    load_payload(bytes, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, 1);
    mask(bytes, bits, sizeof bits);
    compare(bytes, NFT_CMP_EQ, syn, sizeof syn);
}

/* To queue 0. Without a process that reads it ("bypass"), the SYN is redirected. */
static void send_to_queue(struct str *bytes, int family)
{
    const uint16_t number = 0, flags = htons(NFT_QUEUE_FLAG_BYPASS);
    (void)family;
    struct expression queue = begin_expression(bytes, "queue");
    put(bytes, NFTA_QUEUE_NUM, &number, sizeof number);
    put(bytes, NFTA_QUEUE_FLAGS, &flags, sizeof flags);
    end_expression(bytes, queue);
}

/* The same with the target of iptables, which some kernels have instead. */
static void send_to_target(struct str *bytes, int family)
{
    const struct xt_NFQ_info_v2 info = {.queues_total = 1, .bypass = 1};
    (void)family;
    struct expression target = begin_expression(bytes, "target");
    put_text(bytes, NFTA_TARGET_NAME, QUEUE_TARGET);
    put_be32(bytes, NFTA_TARGET_REV, QUEUE_TARGET_REVISION);
    put(bytes, NFTA_TARGET_INFO, &info, sizeof info);
    end_expression(bytes, target);
}

/* A redirected SYN has the door's address by now, and is not reset. */
static void reset(struct str *bytes, int family)
{
    if (family == AF_INET6) {
        load_destination(bytes, 24, 16);
        compare(bytes, NFT_CMP_NEQ, device_v6, sizeof device_v6);
    }
    struct expression reject = begin_expression(bytes, "reject");
    put_be32(bytes, NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST);
    end_expression(bytes, reject);
}

/* Adds a rule for TCP to any address that is redirected. */
static void add_rule(struct str *bytes, const char *chain, int family, bool syn,
                     void (*action)(struct str *bytes, int family))
{
    size_t at = begin_nft(bytes, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    put_text(bytes, NFTA_RULE_TABLE, TABLE_NAME);
    put_text(bytes, NFTA_RULE_CHAIN, chain);
    size_t list = nest(bytes, NFTA_RULE_EXPRESSIONS);
    match_tcp(bytes, family);
    if (syn)
        match_syn(bytes);
    if (family == AF_INET)
        match_v4(bytes);
    else
        match_v6(bytes);
    action(bytes, family);
    unnest(bytes, list);
    end(bytes, at);
}

void door_write_redirect(struct str *bytes)
{
    mark_batch(bytes, NFNL_MSG_BATCH_BEGIN);
    add_table(bytes);
    add_chain(bytes, &door_chain);
    add_rule(bytes, CHAIN_NAME, AF_INET, false, send_to_door);
    add_rule(bytes, CHAIN_NAME, AF_INET6, false, send_to_door);
    mark_batch(bytes, NFNL_MSG_BATCH_END);
}

/* ---- holding connections ---- */

/* The kernel loads the module of a target for this question, but not for a rule of the family inet.
 * To try a rule instead is slow: a batch that fails waits for an RCU grace period. */
static void ask_for_target(struct str *bytes)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};
    size_t at = begin(bytes, (unsigned)NFNL_SUBSYS_NFT_COMPAT << 8 | NFNL_MSG_COMPAT_GET, 0,
                      DOOR_ABOUT_TARGET, &header, sizeof header);
    put_text(bytes, NFTA_COMPAT_NAME, QUEUE_TARGET);
    put_be32(bytes, NFTA_COMPAT_REV, QUEUE_TARGET_REVISION);
    put_be32(bytes, NFTA_COMPAT_TYPE, COMPAT_TYPE_TARGET);
    end(bytes, at);
}

void door_write_queue(struct str *bytes)
{
    const struct nfgenmsg header = {.version = NFNETLINK_V0}; /* queue 0 */
    const struct nfqnl_msg_config_cmd bind = {.command = NFQNL_CFG_CMD_BIND};
    const struct nfqnl_msg_config_params copy = {.copy_range = htonl(QUEUE_COPY_BYTES),
                                                 .copy_mode = NFQNL_COPY_PACKET};
    size_t at = begin(bytes, (unsigned)NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG, NLM_F_ACK,
                      DOOR_ABOUT_HOLD, &header, sizeof header);
    put(bytes, NFQA_CFG_CMD, &bind, sizeof bind);
    put(bytes, NFQA_CFG_PARAMS, &copy, sizeof copy);
    put_be32(bytes, NFQA_CFG_QUEUE_MAXLEN, QUEUE_LENGTH);
    /* A SYN that the queue has no room for is redirected at once. */
    put_be32(bytes, NFQA_CFG_MASK, NFQA_CFG_F_FAIL_OPEN);
    put_be32(bytes, NFQA_CFG_FLAGS, NFQA_CFG_F_FAIL_OPEN);
    end(bytes, at);
    ask_for_target(bytes);
}

void door_write_hold(struct str *bytes, bool target)
{
    void (*queue)(struct str * bytes, int family) = target ? send_to_target : send_to_queue;
    mark_batch(bytes, NFNL_MSG_BATCH_BEGIN);
    add_chain(bytes, &refuse_chain);
    add_chain(bytes, &hold_chain);
    add_rule(bytes, REFUSE_CHAIN, AF_INET, true, reset);
    add_rule(bytes, REFUSE_CHAIN, AF_INET6, true, reset);
    add_rule(bytes, HOLD_CHAIN, AF_INET, true, queue);
    add_rule(bytes, HOLD_CHAIN, AF_INET6, true, queue);
    mark_batch(bytes, NFNL_MSG_BATCH_END);
}
