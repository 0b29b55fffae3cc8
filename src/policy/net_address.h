/* SPDX-License-Identifier: MIT */
/* Addresses of the network: reading, printing, comparing them, and what kind of place they lead to.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;

enum net_family {
    NET_V4 = 4,
    NET_V6 = 6,
};

/* Plain data; of IPv4 the first four bytes, in network order, and the others are zero. An IPv4
 * address in the form ::ffff:a.b.c.d never comes out of a function here: it is its IPv4 address. */
struct net_address {
    enum net_family family;
    uint8_t bytes[16];
};

/* The addresses whose first `prefix` bits are those of `base`; its other bits are zero. */
struct net_range {
    struct net_address base;
    unsigned prefix;
};

#define NET_ADDRESS_TEXT_MAX 46 /* with the NUL */
#define NET_RANGE_TEXT_MAX (NET_ADDRESS_TEXT_MAX + 4)

/* What kind of place an address leads to. Only NET_PUBLIC is reached without being granted. */
enum net_class {
    NET_PUBLIC,
    NET_UNSPECIFIED,   /* 0.0.0.0/8, :: */
    NET_LOOPBACK,      /* 127.0.0.0/8, ::1 */
    NET_PRIVATE,       /* RFC 1918, shared (CGNAT), ULA, site-local, local NAT64 */
    NET_LINK_LOCAL,    /* 169.254.0.0/16, fe80::/10 */
    NET_METADATA,      /* where clouds hand out credentials */
    NET_MULTICAST,     /* 224.0.0.0/4, ff00::/8 */
    NET_DOCUMENTATION, /* examples and benchmarks; 198.18.0.0/15 among them, which the door uses */
    NET_RESERVED,      /* everything else that is not global unicast */
};

/* From bytes in network order: 4 or 16 of them. */
struct net_address net_address_v4(const uint8_t bytes[4]);
struct net_address net_address_v6(const uint8_t bytes[16]);

/* "10.1.2.3", "2001:db8::1": no zone, no brackets, no leading zeros. False if it is none. */
bool net_address_read(const char *text, size_t length, struct net_address *ret_address);
void net_address_print(const struct net_address *address, char text[NET_ADDRESS_TEXT_MAX]);
bool net_address_equal(const struct net_address *a, const struct net_address *b);

/* An address inside another: NAT64 (64:ff9b::/96), 6to4 (2002::/16), Teredo (2001::/32, the
 * client's). False if there is none. */
bool net_address_inner(const struct net_address *address, struct net_address *ret_inner);

/* An address with another inside is public only if both are. */
enum net_class net_address_class(const struct net_address *address);
const char *net_class_name(enum net_class class); /* "public", "link-local", … */

/* "10.0.0.0/8", or an address alone. Bits behind the prefix are refused, with what was meant. */
int net_range_parse(const char *text, size_t length, struct net_range *ret_range,
                    struct brig_error *err);
/* An address alone is printed without its prefix. */
void net_range_print(const struct net_range *range, char text[NET_RANGE_TEXT_MAX]);
bool net_range_contains(const struct net_range *range, const struct net_address *address);
bool net_range_overlaps(const struct net_range *a, const struct net_range *b);
/* One address and no more. */
bool net_range_is_single(const struct net_range *range);

/* ---- Names of hosts, in the one form in which they are compared: lower case, no trailing dot
 * ---- */

struct brig_error;

#define NET_NAME_MAX 253 /* bytes of a name, as DNS has it */
#define NET_LABEL_MAX 63

/* Letters, digits, '-' and '_' in labels of 1 to 63, of which none begins or ends with '-'; not an
 * address: the last label is not a number (nor one as 0x7f). One trailing dot is removed. False if
 * it is no name; ret_name is then untouched. */
bool net_name_read(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1]);

/* The same, and says what is wrong with it and what to write instead. */
int net_name_parse(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1],
                   struct brig_error *err);

/* Is the name below the domain: a.example.com below example.com, but example.com not below itself?
 * Both as net_name_read() gives them. */
bool net_name_below(const char *name, const char *domain);

/* Does it mean the machine that asks, on every machine (RFC 6761)? */
bool net_name_is_localhost(const char *name);
