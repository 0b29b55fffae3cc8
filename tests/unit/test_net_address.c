/* SPDX-License-Identifier: MIT */
/* Names and addresses of the network, and what kind of place they lead to. */
#include <arpa/inet.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "policy/net_address.h"
#include "tap.h"

static struct net_address address(const char *text)
{
    struct net_address result;
    if (!net_address_read(text, strlen(text), &result))
        tap_bail("'%s' is no address", text);
    return result;
}

static struct net_range range(const char *text)
{
    struct net_range result;
    struct brig_error err = {0};
    if (net_range_parse(text, strlen(text), &result, &err) < 0)
        tap_bail("%s", err.message);
    return result;
}

/* ---- Names ---- */

static void test_names(void)
{
    static const struct {
        const char *text, *name; /* NULL: refused */
    } rows[] = {
        {"example.com", "example.com"},
        {"EXAMPLE.Com", "example.com"},
        {"example.com.", "example.com"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"_dmarc.example.com", "_dmarc.example.com"},
        {"r1---sn-a.example", "r1---sn-a.example"},
        {"1e100.net", "1e100.net"},
        {"a", "a"},
        {"0xg", "0xg"},
        {"", NULL},
        {".", NULL},
        {"example.com..", NULL},
        {".example.com", NULL},
        {"a..b", NULL},
        {"a b", NULL},
        {"a\tb", NULL},
        {"-a.example", NULL},
        {"a-.example", NULL},
        {"b\xc3\xbc"
         "cher.example",
         NULL},
        {"a.b/c", NULL},
        {"a:b", NULL},
        {"*.example.com", NULL},
        {"10.0.0.1", NULL},
        {"127.1", NULL},
        {"2130706433", NULL},
        {"0x7f000001", NULL},
        {"127.0.0.0X1", NULL},
        {"example.0x", NULL},
        {"example.123", NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char name[NET_NAME_MAX + 1] = "untouched";
        bool good = net_name_read(rows[i].text, strlen(rows[i].text), name);
        tap_is_int(good, rows[i].name != NULL, "name '%s' is %s", rows[i].text,
                   rows[i].name ? "taken" : "refused");
        tap_is_str(name, rows[i].name ? rows[i].name : "untouched", "and read as it should be");
    }
    char name[NET_NAME_MAX + 1];
    tap_ok(!net_name_read("a\0b", 3, name), "a NUL is in no name");
}

static void test_name_limits(void)
{
    char name[NET_NAME_MAX + 1], text[300];
    memset(text, 'a', sizeof text);
    tap_ok(net_name_read(text, NET_LABEL_MAX, name), "a part has 63 characters");
    tap_ok(!net_name_read(text, NET_LABEL_MAX + 1, name), "and not 64");
    for (size_t i = 63; i < sizeof text; i += 64)
        text[i] = '.';
    tap_ok(net_name_read(text, 253, name), "a name has 253 characters");
    tap_ok(!net_name_read(text, 254, name), "and not 254");
    text[253] = '.';
    tap_ok(net_name_read(text, 254, name), "but for a trailing dot");
}

static void test_name_errors(void)
{
    static const struct {
        const char *text, *remedy;
    } rows[] = {
        {"", "write a name such as"}, {"a..b", "two dots"},     {"b\xc3\xbc.example", "xn--"},
        {"a b", "letters, digits"},   {"-a", "begins or ends"}, {"300.1.2.3", "ends in a number"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct brig_error err = {0};
        char name[NET_NAME_MAX + 1];
        tap_is_int(net_name_parse(rows[i].text, strlen(rows[i].text), name, &err), BRIG_E_INVALID,
                   "name '%s' is refused", rows[i].text);
        tap_has_str(err.message, rows[i].remedy, "with the remedy");
    }
}

static void test_name_below(void)
{
    tap_ok(net_name_below("a.example.com", "example.com"), "a.example.com is below example.com");
    tap_ok(net_name_below("b.a.example.com", "example.com"), "and so is b.a.example.com");
    tap_ok(!net_name_below("example.com", "example.com"), "but not the name itself");
    tap_ok(!net_name_below("badexample.com", "example.com"), "nor one that only ends alike");
    tap_ok(!net_name_below(".example.com", "example.com"), "nor what has nothing before the dot");
    tap_ok(net_name_is_localhost("localhost") && net_name_is_localhost("a.localhost"),
           "localhost and what is below it is whoever asks");
    tap_ok(!net_name_is_localhost("localhost.example.com") && !net_name_is_localhost("xlocalhost"),
           "and nothing else");
    tap_ok(!net_name_below("com", "example.com"), "nor what is above");
    tap_ok(!net_name_below("a.example.com", ""), "and nothing is below nothing");
}

/* ---- Addresses ---- */

static void test_addresses(void)
{
    static const struct {
        const char *text, *printed; /* NULL: refused */
    } rows[] = {
        {"10.1.2.3", "10.1.2.3"},
        {"255.255.255.255", "255.255.255.255"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"::", "::"},
        {"::ffff:10.1.2.3", "10.1.2.3"},
        {"::ffff:a01:203", "10.1.2.3"},
        {"0:0:0:0:0:FFFF:0a01:0203", "10.1.2.3"},
        {"", NULL},
        {"10.1.2", NULL},
        {"10.1.2.3.4", NULL},
        {"10.1.2.256", NULL},
        {"010.1.2.3", NULL},
        {"10.1.2.03", NULL},
        {"0x0a.1.2.3", NULL},
        {"167838211", NULL},
        {" 10.1.2.3", NULL},
        {"10.1.2.3 ", NULL},
        {"[::1]", NULL},
        {"fe80::1%eth0", NULL},
        {"1::2::3", NULL},
        {"2001:db8::12345", NULL},
        {"::ffff:10.1.2.256", NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct net_address read;
        char text[NET_ADDRESS_TEXT_MAX] = "";
        bool good = net_address_read(rows[i].text, strlen(rows[i].text), &read);
        tap_is_int(good, rows[i].printed != NULL, "address '%s' is %s", rows[i].text,
                   rows[i].printed ? "taken" : "refused");
        if (good)
            net_address_print(&read, text);
        tap_is_str(text, rows[i].printed ? rows[i].printed : "", "and printed as it should be");
    }
    struct net_address read;
    tap_ok(!net_address_read("1.2.3.4\0", 8, &read), "a NUL behind it is not cut away");
}

static void test_classes(void)
{
    static const struct {
        const char *text;
        enum net_class class;
    } rows[] = {
        {"1.1.1.1", NET_PUBLIC},
        {"9.255.255.255", NET_PUBLIC},
        {"11.0.0.0", NET_PUBLIC},
        {"100.63.255.255", NET_PUBLIC},
        {"100.128.0.0", NET_PUBLIC},
        {"126.255.255.255", NET_PUBLIC},
        {"128.0.0.0", NET_PUBLIC},
        {"172.15.255.255", NET_PUBLIC},
        {"172.32.0.0", NET_PUBLIC},
        {"192.167.255.255", NET_PUBLIC},
        {"192.169.0.0", NET_PUBLIC},
        {"198.17.255.255", NET_PUBLIC},
        {"198.20.0.0", NET_PUBLIC},
        {"223.255.255.255", NET_PUBLIC},
        {"168.63.129.17", NET_PUBLIC},
        {"0.0.0.0", NET_UNSPECIFIED},
        {"0.1.2.3", NET_UNSPECIFIED},
        {"::", NET_UNSPECIFIED},
        {"127.0.0.1", NET_LOOPBACK},
        {"127.255.255.255", NET_LOOPBACK},
        {"::1", NET_LOOPBACK},
        {"10.0.0.0", NET_PRIVATE},
        {"10.255.255.255", NET_PRIVATE},
        {"172.16.0.0", NET_PRIVATE},
        {"172.31.255.255", NET_PRIVATE},
        {"192.168.1.1", NET_PRIVATE},
        {"100.64.0.0", NET_PRIVATE},
        {"100.127.255.255", NET_PRIVATE},
        {"fc00::1", NET_PRIVATE},
        {"fd12:3456::1", NET_PRIVATE},
        {"fec0::1", NET_PRIVATE},
        {"64:ff9b:1::8.8.8.8", NET_PRIVATE},
        {"169.254.1.1", NET_LINK_LOCAL},
        {"fe80::1", NET_LINK_LOCAL},
        {"febf::1", NET_LINK_LOCAL},
        {"169.254.169.254", NET_METADATA},
        {"169.254.170.2", NET_METADATA},
        {"169.254.170.23", NET_METADATA},
        {"100.100.100.200", NET_METADATA},
        {"168.63.129.16", NET_METADATA},
        {"192.0.0.192", NET_METADATA},
        {"fd00:ec2::254", NET_METADATA},
        {"fd00:ec2::23", NET_METADATA},
        {"fd20:ce::254", NET_METADATA},
        {"fd00:c1::a9fe:a9fe", NET_METADATA},
        {"fd00:42::42", NET_METADATA},
        {"fe80::a9fe:a9fe", NET_METADATA},
        {"224.0.0.1", NET_MULTICAST},
        {"239.255.255.255", NET_MULTICAST},
        {"ff02::1", NET_MULTICAST},
        {"192.0.2.1", NET_DOCUMENTATION},
        {"198.51.100.1", NET_DOCUMENTATION},
        {"203.0.113.1", NET_DOCUMENTATION},
        {"198.18.0.0", NET_DOCUMENTATION},
        {"198.19.255.255", NET_DOCUMENTATION},
        {"2001:db8::1", NET_DOCUMENTATION},
        {"2001:2::1", NET_DOCUMENTATION},
        {"3fff::1", NET_DOCUMENTATION},
        {"192.0.0.1", NET_RESERVED},
        {"192.88.99.1", NET_RESERVED},
        {"240.0.0.1", NET_RESERVED},
        {"255.255.255.255", NET_RESERVED},
        {"100::1", NET_RESERVED},
        {"2001:10::1", NET_RESERVED},
        {"2001:2f::1", NET_RESERVED},
        {"4000::1", NET_RESERVED},
        {"5f00::1", NET_RESERVED},
        {"::10.0.0.1", NET_RESERVED},
        {"::8.8.8.8", NET_RESERVED},
        {"::ffff:0:8.8.8.8", NET_RESERVED},
        {"2606:4700::1111", NET_PUBLIC},
        {"2001:4860:4860::8888", NET_PUBLIC},
        {"3ffe::1", NET_PUBLIC},
        /* One inside another. */
        {"::ffff:127.0.0.1", NET_LOOPBACK},
        {"::ffff:169.254.169.254", NET_METADATA},
        {"::ffff:8.8.8.8", NET_PUBLIC},
        {"64:ff9b::8.8.8.8", NET_PUBLIC},
        {"64:ff9b::127.0.0.1", NET_LOOPBACK},
        {"64:ff9b::10.0.0.1", NET_PRIVATE},
        {"64:ff9b::a9fe:a9fe", NET_METADATA},
        {"64:ff9b::1:0:0", NET_RESERVED},
        {"2002:808:808::1", NET_PUBLIC},
        {"2002:7f00:1::1", NET_LOOPBACK},
        {"2002:c0a8:101::", NET_PRIVATE},
        {"2002:a9fe:a9fe::", NET_METADATA},
        {"2001:0:102:304::f7f7:f7f7", NET_PUBLIC},   /* Teredo of 8.8.8.8 */
        {"2001:0:102:304::80ff:fffe", NET_LOOPBACK}, /* of 127.0.0.1 */
        {"2001:0:102:304::f5ff:fffe", NET_PRIVATE},  /* of 10.0.0.1 */
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct net_address read = address(rows[i].text);
        tap_is_str(net_class_name(net_address_class(&read)), net_class_name(rows[i].class),
                   "%s is %s", rows[i].text, net_class_name(rows[i].class));
    }
}

/* ---- Ranges ---- */

static void test_ranges(void)
{
    static const struct {
        const char *text, *printed, *remedy;
    } rows[] = {
        {"10.0.0.0/8", "10.0.0.0/8", NULL},
        {"10.1.2.3", "10.1.2.3", NULL},
        {"10.1.2.3/32", "10.1.2.3", NULL},
        {"0.0.0.0/0", "0.0.0.0/0", NULL},
        {"2001:db8::/33", "2001:db8::/33", NULL},
        {"::/0", "::/0", NULL},
        {"2001:db8::1/128", "2001:db8::1", NULL},
        {"::ffff:10.0.0.0/104", "10.0.0.0/8", NULL},
        {"::ffff:10.0.0.1", "10.0.0.1", NULL},
        {"10.1.2.3/8", NULL, "write 10.0.0.0/8"},
        {"10.0.0.1/31", NULL, "write 10.0.0.0/31"},
        {"2001:db8::1/64", NULL, "write 2001:db8::/64"},
        {"10.0.0.0/33", NULL, "up to 32"},
        {"10.0.0.0/", NULL, "up to 32"},
        {"10.0.0.0/08", NULL, "up to 32"},
        {"10.0.0.0/-1", NULL, "up to 32"},
        {"10.0.0.0/8/8", NULL, "up to 32"},
        {"2001:db8::/129", NULL, "up to 128"},
        {"2001:db8::/9999999999", NULL, "up to 128"},
        {"::ffff:10.0.0.0/90", NULL, "IPv4 itself"},
        {"10.0/8", NULL, "write it as"},
        {"/8", NULL, "write it as"},
        {"", NULL, "write it as"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct net_range read;
        struct brig_error err = {0};
        char text[NET_RANGE_TEXT_MAX] = "";
        int result = net_range_parse(rows[i].text, strlen(rows[i].text), &read, &err);
        tap_is_int(result, rows[i].printed ? 0 : BRIG_E_INVALID, "range '%s' is %s", rows[i].text,
                   rows[i].printed ? "taken" : "refused");
        if (result == 0)
            net_range_print(&read, text);
        if (rows[i].printed)
            tap_is_str(text, rows[i].printed, "and printed as it should be");
        else
            tap_has_str(err.message, rows[i].remedy, "with the remedy");
    }
}

static void test_contains(void)
{
    static const struct {
        const char *range, *address;
        bool inside;
    } rows[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"172.16.0.0/12", "172.31.1.1", true},
        {"172.16.0.0/12", "172.32.0.0", false},
        {"0.0.0.0/0", "255.1.2.3", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "1.2.3.4", false},
        {"10.1.2.3", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.2", false},
        {"10.1.2.2/31", "10.1.2.3", true},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct net_range one = range(rows[i].range);
        struct net_address other = address(rows[i].address);
        tap_is_int(net_range_contains(&one, &other), rows[i].inside, "%s is %s %s", rows[i].address,
                   rows[i].inside ? "in" : "not in", rows[i].range);
    }
    struct net_range wide = range("64.0.0.0/2"), narrow = range("127.0.0.0/8");
    struct net_range apart = range("128.0.0.0/8"), v6 = range("::/0");
    tap_ok(net_range_overlaps(&wide, &narrow), "a range overlaps one inside it");
    tap_ok(net_range_overlaps(&narrow, &wide), "and the other way round");
    tap_ok(!net_range_overlaps(&wide, &apart), "but not one beside it");
    tap_ok(!net_range_overlaps(&wide, &v6), "nor one of the other family");
}

int main(void)
{
    test_names();
    test_name_limits();
    test_name_errors();
    test_name_below();
    test_addresses();
    test_classes();
    test_ranges();
    test_contains();
    return tap_done();
}
