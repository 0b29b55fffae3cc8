/* SPDX-License-Identifier: MIT */
/* Network addresses, their classes, and host names. */
#include "policy/net_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

#define V4_BITS 32U
#define V6_BITS 128U
#define MAPPED_BITS 96U /* the prefix of an IPv4 address in ::ffff:a.b.c.d */

/* Formats a text that is not NUL-terminated, for a message. */
static struct str_shown show(const char *text, size_t length)
{
    char copy[STR_SHOWN_MAX] = "";
    memcpy(copy, text, length < sizeof copy ? length : sizeof copy - 1);
    return str_shown(copy);
}

/* ---- Classes ------------------------------------------------------------------------------ */

struct class_row {
    struct net_range range;
    enum net_class class;
};

#define V4(prefix_, class_, ...)                                                                   \
    {                                                                                              \
        .range = {.base = {NET_V4, {__VA_ARGS__}}, .prefix = (prefix_)}, .class = (class_)         \
    }
#define V6(prefix_, class_, ...)                                                                   \
    {                                                                                              \
        .range = {.base = {NET_V6, {__VA_ARGS__}}, .prefix = (prefix_)}, .class = (class_)         \
    }

/* IANA's registries of special addresses, and the metadata addresses of clouds; the first match
 * counts. Without a match an address is public in IPv4, and reserved in IPv6. */
static const struct class_row class_rows[] = {
    V4(32, NET_METADATA, 169, 254, 169, 254), /* most clouds */
    V4(32, NET_METADATA, 169, 254, 170, 2),   /* AWS, containers */
    V4(32, NET_METADATA, 169, 254, 170, 23),  /* AWS, pods */
    V4(32, NET_METADATA, 169, 254, 42, 42),   /* Scaleway */
    V4(32, NET_METADATA, 100, 100, 100, 200), /* Alibaba */
    V4(32, NET_METADATA, 168, 63, 129, 16),   /* Azure; a public address otherwise */
    V4(32, NET_METADATA, 192, 0, 0, 192),     /* Oracle */
    V4(8, NET_UNSPECIFIED, 0),
    V4(8, NET_PRIVATE, 10),
    V4(10, NET_PRIVATE, 100, 64),
    V4(8, NET_LOOPBACK, 127),
    V4(16, NET_LINK_LOCAL, 169, 254),
    V4(12, NET_PRIVATE, 172, 16),
    V4(24, NET_RESERVED, 192, 0, 0),
    V4(24, NET_DOCUMENTATION, 192, 0, 2),
    V4(24, NET_RESERVED, 192, 88, 99), /* 6to4 relays, deprecated */
    V4(16, NET_PRIVATE, 192, 168),
    V4(15, NET_DOCUMENTATION, 198, 18),
    V4(24, NET_DOCUMENTATION, 198, 51, 100),
    V4(24, NET_DOCUMENTATION, 203, 0, 113),
    V4(4, NET_MULTICAST, 224),
    V4(4, NET_RESERVED, 240),
    V4(0, NET_PUBLIC, 0),
    V6(128, NET_METADATA, 0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54), /* AWS */
    V6(128, NET_METADATA, 0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23),    /* pods */
    V6(128, NET_METADATA, 0xfd, 0x20, 0, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02,
       0x54), /* Google */
    V6(128, NET_METADATA, 0xfd, 0, 0, 0xc1, 0, 0, 0, 0, 0, 0, 0, 0, 0xa9, 0xfe, 0xa9,
       0xfe),                                                                       /* Oracle */
    V6(128, NET_METADATA, 0xfd, 0, 0, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42), /* Scaleway */
    V6(128, NET_METADATA, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa9, 0xfe, 0xa9,
       0xfe), /* OpenStack */
    V6(128, NET_UNSPECIFIED, 0),
    V6(128, NET_LOOPBACK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
    V6(96, NET_PUBLIC, 0, 0x64, 0xff, 0x9b),        /* NAT64: decided by the embedded address */
    V6(48, NET_PRIVATE, 0, 0x64, 0xff, 0x9b, 0, 1), /* local-use NAT64, of any layout */
    V6(32, NET_PUBLIC, 0x20, 0x01),                 /* Teredo: decided by the embedded address */
    V6(48, NET_DOCUMENTATION, 0x20, 0x01, 0, 2),    /* benchmarks */
    V6(28, NET_RESERVED, 0x20, 0x01, 0, 0x10),      /* ORCHID */
    V6(28, NET_RESERVED, 0x20, 0x01, 0, 0x20),
    V6(32, NET_DOCUMENTATION, 0x20, 0x01, 0x0d, 0xb8),
    V6(20, NET_DOCUMENTATION, 0x3f, 0xff),
    V6(3, NET_PUBLIC, 0x20), /* global unicast; 6to4 is decided by the embedded address */
    V6(7, NET_PRIVATE, 0xfc),
    V6(10, NET_LINK_LOCAL, 0xfe, 0x80),
    V6(10, NET_PRIVATE, 0xfe, 0xc0), /* site-local */
    V6(8, NET_MULTICAST, 0xff),
    V6(0, NET_RESERVED, 0),
};

static enum net_class outer_class(const struct net_address *address)
{
    for (size_t i = 0; i < ARRAY_LENGTH(class_rows); i++)
        if (net_range_contains(&class_rows[i].range, address))
            return class_rows[i].class;
    return NET_RESERVED;
}

enum net_class net_address_class(const struct net_address *address)
{
    enum net_class class = outer_class(address);
    struct net_address inner;
    if (class == NET_PUBLIC && net_address_inner(address, &inner))
        return outer_class(&inner);
    return class;
}

const char *net_class_name(enum net_class class)
{
    static const char *const names[] = {
        [NET_PUBLIC] = "public",         [NET_UNSPECIFIED] = "unspecified",
        [NET_LOOPBACK] = "loopback",     [NET_PRIVATE] = "private",
        [NET_LINK_LOCAL] = "link-local", [NET_METADATA] = "metadata",
        [NET_MULTICAST] = "multicast",   [NET_DOCUMENTATION] = "documentation",
        [NET_RESERVED] = "reserved",
    };
    return (size_t) class < ARRAY_LENGTH(names) ? names[class] : "?";
}

/* ---- Addresses ---------------------------------------------------------------------------- */

static bool is_mapped(const uint8_t bytes[16])
{
    static const uint8_t before[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(bytes, before, sizeof before) == 0;
}

struct net_address net_address_v4(const uint8_t bytes[4])
{
    struct net_address address = {.family = NET_V4};
    memcpy(address.bytes, bytes, 4);
    return address;
}

struct net_address net_address_v6(const uint8_t bytes[16])
{
    if (is_mapped(bytes))
        return net_address_v4(bytes + 12);
    struct net_address address = {.family = NET_V6};
    memcpy(address.bytes, bytes, 16);
    return address;
}

/* Parses the address as written: ::ffff:a.b.c.d stays IPv6. */
static bool read_as_written(const char *text, size_t length, struct net_address *ret_address)
{
    char copy[NET_ADDRESS_TEXT_MAX];
    if (length >= sizeof copy || memchr(text, '\0', length))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    struct net_address address = {.family = strchr(copy, ':') ? NET_V6 : NET_V4};
    int family = address.family == NET_V6 ? AF_INET6 : AF_INET;
    if (inet_pton(family, copy, address.bytes) != 1)
        return false;
    *ret_address = address;
    return true;
}

bool net_address_read(const char *text, size_t length, struct net_address *ret_address)
{
    struct net_address address;
    if (!read_as_written(text, length, &address))
        return false;
    *ret_address = address.family == NET_V6 ? net_address_v6(address.bytes) : address;
    return true;
}

void net_address_print(const struct net_address *address, char text[NET_ADDRESS_TEXT_MAX])
{
    int family = address->family == NET_V6 ? AF_INET6 : AF_INET;
    if (!inet_ntop(family, address->bytes, text, NET_ADDRESS_TEXT_MAX))
        text[0] = '\0';
}

bool net_address_equal(const struct net_address *a, const struct net_address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool net_address_inner(const struct net_address *address, struct net_address *ret_inner)
{
    static const uint8_t nat64[] = {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t teredo[] = {0x20, 0x01, 0, 0};
    static const uint8_t six_to_four[] = {0x20, 0x02};
    const uint8_t *bytes = address->bytes;
    if (address->family != NET_V6)
        return false;
    if (memcmp(bytes, nat64, sizeof nat64) == 0) {
        *ret_inner = net_address_v4(bytes + 12);
        return true;
    }
    if (memcmp(bytes, six_to_four, sizeof six_to_four) == 0) {
        *ret_inner = net_address_v4(bytes + 2);
        return true;
    }
    if (memcmp(bytes, teredo, sizeof teredo) == 0) {
        const uint8_t client[4] = {(uint8_t)~bytes[12], (uint8_t)~bytes[13], (uint8_t)~bytes[14],
                                   (uint8_t)~bytes[15]};
        *ret_inner = net_address_v4(client);
        return true;
    }
    return false;
}

/* ---- Ranges ------------------------------------------------------------------------------- */

static unsigned bits_of(enum net_family family)
{
    return family == NET_V6 ? V6_BITS : V4_BITS;
}

static bool same_prefix(const uint8_t a[16], const uint8_t b[16], unsigned prefix)
{
    unsigned whole = prefix / 8, rest = prefix % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

bool net_range_contains(const struct net_range *range, const struct net_address *address)
{
    return range->base.family == address->family &&
           same_prefix(range->base.bytes, address->bytes, range->prefix);
}

bool net_range_overlaps(const struct net_range *a, const struct net_range *b)
{
    unsigned prefix = a->prefix < b->prefix ? a->prefix : b->prefix;
    return a->base.family == b->base.family && same_prefix(a->base.bytes, b->base.bytes, prefix);
}

bool net_range_is_single(const struct net_range *range)
{
    return range->prefix == bits_of(range->base.family);
}

void net_range_print(const struct net_range *range, char text[NET_RANGE_TEXT_MAX])
{
    net_address_print(&range->base, text);
    if (net_range_is_single(range))
        return;
    size_t length = strlen(text);
    (void)snprintf(text + length, NET_RANGE_TEXT_MAX - length, "/%u", range->prefix);
}

/* One to three digits, without leading zeros, at most max. */
static bool read_prefix(const char *text, size_t length, unsigned max, unsigned *ret_prefix)
{
    unsigned value = 0;
    if (length == 0 || length > 3 || (length > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *ret_prefix = value;
    return value <= max;
}

/* Clears the bits after the prefix. */
static void cut(struct net_range *range)
{
    for (unsigned bit = range->prefix; bit < V6_BITS; bit++)
        range->base.bytes[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
}

/* Converts a range of ::ffff:a.b.c.d to IPv4. */
static bool unmap(struct net_range *range)
{
    if (range->base.family != NET_V6 || !is_mapped(range->base.bytes))
        return true;
    if (range->prefix < MAPPED_BITS)
        return false;
    range->base = net_address_v6(range->base.bytes);
    range->prefix -= MAPPED_BITS;
    return true;
}

int net_range_parse(const char *text, size_t length, struct net_range *ret_range,
                    struct brig_error *err)
{
    const struct str_shown shown = show(text, length);
    const char *slash = memchr(text, '/', length);
    size_t address_length = slash ? (size_t)(slash - text) : length;
    struct net_range range;
    if (!read_as_written(text, address_length, &range.base))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad address '%s': write it as 192.0.2.1, 2001:db8::1 or 10.0.0.0/8",
                         shown.text);
    unsigned max = bits_of(range.base.family);
    range.prefix = max;
    if (slash && !read_prefix(slash + 1, length - address_length - 1, max, &range.prefix))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad range '%s': a number up to %u follows the '/'", shown.text, max);
    if (!unmap(&range))
        return brig_fail(err, BRIG_E_INVALID, 0, "bad range '%s': write the range of IPv4 itself",
                         shown.text);
    struct net_range whole = range;
    cut(&whole);
    if (!net_address_equal(&whole.base, &range.base)) {
        char meant[NET_RANGE_TEXT_MAX];
        net_range_print(&whole, meant);
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "bad range '%s': it has bits after its prefix; write %s", shown.text,
                         meant);
    }
    *ret_range = range;
    return 0;
}

/* ---- Names -------------------------------------------------------------------------------- */

/* The functions of <ctype.h> depend on the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_name_character(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static size_t label_length(const char *text, size_t length)
{
    const char *dot = memchr(text, '.', length);
    return dot ? (size_t)(dot - text) : length;
}

static const char *fault_in_label(const char *label, size_t length)
{
    if (length == 0)
        return "it has two dots in a row, or begins with one; write it without";
    for (size_t i = 0; i < length; i++) {
        if (label[i] & 0x80)
            return "only ASCII is taken; write its ASCII form, which has xn-- in it";
        if (!is_name_character(label[i]))
            return "a name has letters, digits, '-', '_' and dots, such as example.com";
    }
    if (length > NET_LABEL_MAX)
        return "no part between dots has more than 63 characters";
    if (label[0] == '-' || label[length - 1] == '-')
        return "no part between dots begins or ends with '-'";
    return NULL;
}

/* As in URL parsers: a name whose last label is a number is an address in some notation. */
static bool is_number(const char *label, size_t length)
{
    if (length >= 2 && label[0] == '0' && lower(label[1]) == 'x') {
        for (size_t i = 2; i < length; i++)
            if (!is_digit(label[i]) && !(lower(label[i]) >= 'a' && lower(label[i]) <= 'f'))
                return false;
        return true;
    }
    for (size_t i = 0; i < length; i++)
        if (!is_digit(label[i]))
            return false;
    return true;
}

static size_t without_trailing_dot(const char *text, size_t length)
{
    return length > 1 && text[length - 1] == '.' ? length - 1 : length;
}

/* Says what is wrong with a name, and the remedy; NULL if it is valid. */
static const char *fault_in(const char *text, size_t length)
{
    if (length == 0)
        return "it is empty; write a name such as example.com";
    length = without_trailing_dot(text, length);
    if (length > NET_NAME_MAX)
        return "a name has at most 253 characters";
    for (size_t at = 0;;) {
        size_t label = label_length(text + at, length - at);
        const char *fault = fault_in_label(text + at, label);
        if (fault)
            return fault;
        if (at + label == length)
            return is_number(text + at, label)
                       ? "it ends in a number, but is not an address such as 192.0.2.1"
                       : NULL;
        at += label + 1;
    }
}

int net_name_parse(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1],
                   struct brig_error *err)
{
    const char *fault = fault_in(text, length);
    if (fault)
        return brig_fail(err, BRIG_E_INVALID, 0, "bad host name '%s': %s", show(text, length).text,
                         fault);
    length = without_trailing_dot(text, length);
    for (size_t i = 0; i < length; i++)
        ret_name[i] = lower(text[i]);
    ret_name[length] = '\0';
    return 0;
}

bool net_name_read(const char *text, size_t length, char ret_name[NET_NAME_MAX + 1])
{
    return net_name_parse(text, length, ret_name, NULL) == 0;
}

bool net_name_below(const char *name, const char *domain)
{
    size_t length = strlen(name), tail = strlen(domain);
    return tail > 0 && length > tail + 1 && name[length - tail - 1] == '.' &&
           strcmp(name + length - tail, domain) == 0;
}

bool net_name_is_localhost(const char *name)
{
    return strcmp(name, "localhost") == 0 || net_name_below(name, "localhost");
}
