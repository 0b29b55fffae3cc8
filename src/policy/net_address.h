/* SPDX-License-Identifier: MIT */
/* Network addresses: parsing, printing, comparing and classifying them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_error;

enum net_family {
    NET_V4 = 4,
    NET_V6 = 6,
};

/* Plain data; an IPv4 address is the first four bytes, in network order, and the others are zero.
 * No function here returns an IPv4 address in the form ::ffff:a.b.c.d; it is converted to IPv4. */
struct net_address {
    enum net_family family;
    uint8_t bytes[16];
};

/* The addresses whose first `prefix` bits are those of `base`; the other bits of `base` are
 * zero. */
struct net_range {
    struct net_address base;
    unsigned prefix;
};

#define NET_ADDRESS_TEXT_MAX 46 /* including the NUL */
#define NET_RANGE_TEXT_MAX (NET_ADDRESS_TEXT_MAX + 4)

/* The class of an address. All but NET_PUBLIC must be granted explicitly. */
enum net_class {
    NET_PUBLIC,
    NET_UNSPECIFIED,   /* 0.0.0.0/8, :: */
    NET_LOOPBACK,      /* 127.0.0.0/8, ::1 */
    NET_PRIVATE,       /* RFC 1918, shared (CGNAT), ULA, site-local, local NAT64 */
    NET_LINK_LOCAL,    /* 169.254.0.0/16, fe80::/10 */
    NET_METADATA,      /* cloud metadata services, which hand out credentials */
    NET_MULTICAST,     /* 224.0.0.0/4, ff00::/8 */
    NET_DOCUMENTATION, /* examples and benchmarks; includes 198.18.0.0/15, which the door uses */
    NET_RESERVED,      /* everything else that is not global unicast */
};

/* From 4 or 16 bytes in network order. */
struct net_address net_address_v4(const uint8_t bytes[4]);
struct net_address net_address_v6(const uint8_t bytes[16]);

/* Parses "10.1.2.3", "2001:db8::1": no zone, no brackets, no leading zeros. False if it is not an
 * address. */
bool net_address_read(const char *text, size_t length, struct net_address *ret_address);
void net_address_print(const struct net_address *address, char text[NET_ADDRESS_TEXT_MAX]);
bool net_address_equal(const struct net_address *a, const struct net_address *b);

/* The address embedded in another one: NAT64 (64:ff9b::/96), 6to4 (2002::/16), Teredo (2001::/32,
 * the client's). False if there is none. */
bool net_address_inner(const struct net_address *address, struct net_address *ret_inner);

/* An address with an embedded one is public only if both are. */
enum net_class net_address_class(const struct net_address *address);
const char *net_class_name(enum net_class class); /* "public", "link-local", … */

/* Parses "10.0.0.0/8", or a single address. Refuses bits after the prefix and suggests the correct
 * range. */
int net_range_parse(const char *text, size_t length, struct net_range *ret_range,
                    struct brig_error *err);
/* A single address is printed without a prefix. */
void net_range_print(const struct net_range *range, char text[NET_RANGE_TEXT_MAX]);
bool net_range_contains(const struct net_range *range, const struct net_address *address);
bool net_range_overlaps(const struct net_range *a, const struct net_range *b);
/* Whether the range is a single address. */
bool net_range_is_single(const struct net_range *range);

/* ---- Host names, in the canonical form for comparisons: lower case, no trailing dot ---- */

struct brig_error;

#define NET_NAME_MAX 253 /* bytes of a name, as in DNS */
#define NET_LABEL_MAX 63

/* Parses a name: letters, digits, '-' and '_' in labels of 1 to 63 characters that do not begin or
 * end with '-'. The last label must not be a number (also not 0x7f), so a name is never an address.
 * One trailing dot is removed. False if it is not a name; ret_name is then untouched. */
bool net_name_read(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1]);

/* The same, with an error message that says what is wrong and what to write instead. */
int net_name_parse(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1],
                   struct brig_error *err);

/* Whether the name is below the domain: a.example.com is below example.com, but example.com is not
 * below itself. Both in the form of net_name_read(). */
bool net_name_below(const char *name, const char *domain);

/* Whether the name means the local machine (RFC 6761). */
bool net_name_is_localhost(const char *name);
