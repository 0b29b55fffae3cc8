/* SPDX-License-Identifier: MIT */
/* Messages of DNS. Questions are made, and answers read, by the system's own resolver library. */
#include "net/dns.h"

#include <arpa/nameser.h>
#include <resolv.h>

#include "base/cleanup.h"
#include "policy/net_address.h"
#include "tap.h"

#define MESSAGE_MAX (DNS_QUERY_MAX + 100)

struct message {
    uint8_t bytes[MESSAGE_MAX];
    size_t length;
};

static struct message question(const char *name, int type)
{
    struct message message;
    int length = res_mkquery(ns_o_query, name, ns_c_in, type, NULL, 0, NULL, message.bytes,
                             sizeof message.bytes);
    if (length < 0)
        tap_bail("no question can be made for '%s'", name);
    message.length = (size_t)length;
    return message;
}

static void append(struct message *message, const void *bytes, size_t length)
{
    memcpy(message->bytes + message->length, bytes, length);
    message->length += length;
}

/* An OPT record of this version. */
static void append_opt(struct message *message, uint8_t version)
{
    const uint8_t opt[] = {0, 0, 41, 0x10, 0, 0, version, 0x80, 0, 0, 0};
    append(message, opt, sizeof opt);
    message->bytes[11]++;
}

/* From a copy of just these bytes, whose end a sanitizer sees. */
static enum dns_code look(const void *bytes, size_t length, struct dns_query *query)
{
    autofree uint8_t *copy = malloc(length ? length : 1);
    if (!copy)
        tap_bail("out of memory");
    memcpy(copy, bytes, length);
    return dns_query_read(copy, length, query);
}

static void test_questions(void)
{
    struct dns_query query;
    struct message message = question("wWw.eXample.COM", ns_t_a);
    tap_is_int(look(message.bytes, message.length, &query), DNS_NOERROR, "a question is one");
    tap_is_int(query.id, message.bytes[0] << 8 | message.bytes[1], "with its number");
    tap_is_int(query.type, DNS_TYPE_A, "and its type");
    tap_ok(query.has_name, "and a host's name");
    tap_is_str(query.name, "www.example.com", "which is in lower case");
    tap_ok(query.recursion_desired && !query.edns, "and what else it says");
    tap_ok(query.question_length == message.length - 12 &&
               memcmp(query.question, message.bytes + 12, query.question_length) == 0,
           "the question is kept as it came");
    append_opt(&message, 0);
    tap_is_int(look(message.bytes, message.length, &query), DNS_NOERROR, "EDNS is known");
    tap_ok(query.edns, "and noted");
    message.bytes[3] |= 0x10;
    uint8_t answer[DNS_ANSWER_MAX];
    tap_ok(look(message.bytes, message.length, &query) == DNS_NOERROR && query.checking_disabled,
           "and so is what it says of checking");
    (void)dns_answer(&query, DNS_NOERROR, NULL, 0, 0, answer);
    tap_ok(answer[3] & 0x10, "which the answer repeats");
    message = question("_http._tcp.example.com", ns_t_srv);
    tap_is_int(look(message.bytes, message.length, &query), DNS_NOERROR, "any type is a question");
    tap_is_int(query.type, ns_t_srv, "with that type");
    message = question(".", ns_t_ns);
    tap_is_int(look(message.bytes, message.length, &query), DNS_NOERROR, "and so is the root");
    tap_ok(!query.has_name, "which is no host");
}

/* Names that are no host's: a question all the same. */
static void test_strange_names(void)
{
    static const struct {
        const char *what, *wire;
        size_t length;
    } rows[] = {
        {"a dot in a part",
         "\x0b"
         "example.com\0",
         13},
        {"a NUL",
         "\x03"
         "a\0b\x03"
         "com\0",
         9},
        {"a blank",
         "\x03"
         "a b\x03"
         "com\0",
         9},
        {"another alphabet",
         "\x03"
         "b\xc3\xbc\x03"
         "com\0",
         9},
        {"an address",
         "\x02"
         "10\x01"
         "0\x01"
         "0\x01"
         "1\0",
         10},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct message message = {.length = 0};
        struct dns_query query;
        append(&message, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
        append(&message, rows[i].wire, rows[i].length);
        append(&message, "\x00\x01\x00\x01", 4);
        tap_is_int(look(message.bytes, message.length, &query), DNS_NOERROR, "%s: a question",
                   rows[i].what);
        tap_ok(!query.has_name, "but not a host's name");
    }
}

static void test_malformed(void)
{
    static const struct {
        const char *what, *bytes;
        size_t length;
        enum dns_code code;
    } rows[] = {
        {"nothing", "", 0, DNS_DROP},
        {"half a header", "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00", 11, DNS_DROP},
        {"an answer",
         "\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
         "a\0\0\x01\0\x01",
         19, DNS_DROP},
        {"another operation", "\x12\x34\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12, DNS_NOTIMP},
        {"no question", "\x12\x34\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", 12, DNS_FORMERR},
        {"a question that is not there", "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12,
         DNS_FORMERR},
        {"two questions",
         "\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00\x01"
         "a\0\0\x01\0\x01\x01"
         "b\0\0\x01\0\x01",
         26, DNS_FORMERR},
        {"with an answer in it",
         "\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00\x01"
         "a\0\0\x01\0\x01",
         19, DNS_FORMERR},
        {"a pointer to itself",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\0\x01\0\x01", 18, DNS_FORMERR},
        {"a pointer behind a part",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
         "a\xc0\x0c\0\x01\0\x01",
         20, DNS_FORMERR},
        {"a part of a type that never came",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x41"
         "a\0\0\x01\0\x01",
         19, DNS_FORMERR},
        {"a part longer than the rest",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x3f"
         "a\0\0\x01\0\x01",
         19, DNS_FORMERR},
        {"a name without an end",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
         "a",
         14, DNS_FORMERR},
        {"a type cut short",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
         "a\0\0\x01\0",
         18, DNS_FORMERR},
        {"something behind it",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
         "a\0\0\x01\0\x01x",
         20, DNS_FORMERR},
        {"a record that is not there",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01"
         "a\0\0\x01\0\x01",
         19, DNS_FORMERR},
        {"a record longer than the rest",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01"
         "a\0\0\x01\0\x01\0\0\x29\x10\0\0\0\0\0\0\x01",
         30, DNS_FORMERR},
        {"another class",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
         "a\0\0\x01\0\x03",
         19, DNS_REFUSED},
        {"the same of ours",
         "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
         "a\0\0\x01\0\x01",
         19, DNS_NOERROR},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct dns_query query = {.id = 0};
        enum dns_code code = look(rows[i].bytes, rows[i].length, &query);
        tap_is_int(code, rows[i].code, "%s: code %d", rows[i].what, rows[i].code);
        if (code == DNS_DROP)
            continue;
        uint8_t answer[DNS_ANSWER_MAX];
        ns_msg read;
        size_t length = dns_answer(&query, code, NULL, 0, 0, answer);
        tap_ok(ns_initparse(answer, (int)length, &read) == 0 && ns_msg_id(read) == 0x1234 &&
                   (enum dns_code)ns_msg_getflag(read, ns_f_rcode) == code,
               "and is answered so");
    }
}

static void test_edns(void)
{
    struct dns_query query;
    struct message message = question("example.com", ns_t_a);
    append_opt(&message, 1);
    tap_is_int(look(message.bytes, message.length, &query), DNS_BADVERS, "EDNS 1 is not known");
    uint8_t answer[DNS_ANSWER_MAX];
    size_t length = dns_answer(&query, DNS_BADVERS, NULL, 0, 0, answer);
    tap_ok(length > 11 && (answer[3] & 0xf) == 0 && answer[length - 6] == 1,
           "and the answer says so in its OPT record");
    message = question("example.com", ns_t_a);
    append_opt(&message, 0);
    append_opt(&message, 0);
    tap_is_int(look(message.bytes, message.length, &query), DNS_FORMERR,
               "one OPT record is enough");
    message = question("example.com", ns_t_a);
    static const uint8_t named[] = {1, 'a', 0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0};
    append(&message, named, sizeof named);
    message.bytes[11] = 1;
    tap_is_int(look(message.bytes, message.length, &query), DNS_FORMERR, "and it is the root's");
    message = question("example.com", ns_t_a);
    static const uint8_t other[] = {0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 1, 'x'};
    for (int i = 0; i < 8; i++)
        append(&message, other, sizeof other);
    message.bytes[11] = 8;
    tap_is_int(look(message.bytes, message.length, &query), DNS_NOERROR,
               "other records are passed over");
    append(&message, other, sizeof other);
    message.bytes[11] = 9;
    tap_is_int(look(message.bytes, message.length, &query), DNS_FORMERR, "up to eight");
}

static void test_limits(void)
{
    struct message message = question("example.com", ns_t_a);
    struct dns_query query;
    const size_t rest = DNS_QUERY_MAX - message.length - 11;
    const uint8_t opt[] = {0, 0, 41, 0x10, 0, 0, 0, 0, 0, (uint8_t)(rest >> 8), (uint8_t)rest};
    append(&message, opt, sizeof opt);
    memset(message.bytes + message.length, 0, rest + 1);
    message.length += rest;
    message.bytes[11] = 1;
    tap_is_int(look(message.bytes, message.length, &query), DNS_NOERROR, "4096 bytes are read");
    tap_is_int(look(message.bytes, message.length + 1, &query), DNS_FORMERR, "and not 4097");

    uint8_t longest[12 + 255 + 4] = {0x12, 0x34, 1, 0, 0, 1};
    for (size_t part = 0; part < 4; part++) {
        longest[12 + part * 64] = part < 3 ? 63 : 61;
        memset(longest + 13 + part * 64, 'a', 63);
    }
    memset(longest + 12 + 3 * 64 + 1 + 61, 0, 5);
    longest[12 + 254 + 2] = 28;
    longest[12 + 254 + 4] = 1;
    tap_is_int(look(longest, sizeof longest, &query), DNS_NOERROR, "the longest name is read");
    tap_is_int(strlen(query.name), NET_NAME_MAX, "whole");
    struct net_address addresses[DNS_ADDRESSES_MAX + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++)
        (void)net_address_read("2001:db8::1", 11, &addresses[i]);
    uint8_t answer[DNS_ANSWER_MAX];
    ns_msg read;
    query.edns = true;
    size_t length = dns_answer(&query, DNS_NOERROR, addresses, ARRAY_LENGTH(addresses), 1, answer);
    tap_ok(length <= DNS_ANSWER_MAX, "the longest answer fits");
    tap_ok(ns_initparse(answer, (int)length, &read) == 0 && ns_msg_count(read, ns_s_an) == 4,
           "with four addresses");
    longest[12 + 3 * 64]++;
    memmove(longest + 12 + 3 * 64 + 2, longest + 12 + 3 * 64 + 1, 61);
    tap_is_int(look(longest, sizeof longest, &query), DNS_FORMERR, "a longer one is not");
}

/* The answer of this type and code, as the system's library reads it. */
static void check_answer(const char *name, int type, enum dns_code code, int wanted)
{
    static const uint8_t v4[] = {198, 18, 0, 16};
    static const uint8_t v6[] = {0xfd, 0x62, [15] = 0x10};
    const struct net_address addresses[] = {net_address_v4(v4), net_address_v6(v6)};
    struct message message = question(name, type);
    struct dns_query query;
    uint8_t answer[DNS_ANSWER_MAX];
    ns_msg read;
    ns_rr record;
    append_opt(&message, 0);
    (void)look(message.bytes, message.length, &query);
    size_t length = dns_answer(&query, code, addresses, 2, 70000, answer);
    if (!tap_is_int(ns_initparse(answer, (int)length, &read), 0, "%s, type %d: an answer", name,
                    type))
        return;
    tap_ok(ns_msg_getflag(read, ns_f_qr) && ns_msg_getflag(read, ns_f_ra) &&
               ns_msg_getflag(read, ns_f_rd) && !ns_msg_getflag(read, ns_f_tc),
           "with its flags");
    tap_is_int(ns_msg_getflag(read, ns_f_rcode), code, "and code");
    tap_is_int(ns_msg_count(read, ns_s_an), wanted, "of %d addresses", wanted);
    tap_ok(ns_parserr(&read, ns_s_qd, 0, &record) == 0 && strcmp(ns_rr_name(record), name) == 0,
           "the question is repeated, letter for letter");
    tap_ok(ns_parserr(&read, ns_s_ar, 0, &record) == 0 && ns_rr_type(record) == ns_t_opt,
           "EDNS is answered with EDNS");
    if (wanted == 0)
        return;
    bool is_v6 = type == ns_t_aaaa;
    tap_ok(ns_parserr(&read, ns_s_an, 0, &record) == 0 && (int)ns_rr_type(record) == type &&
               ns_rr_ttl(record) == 70000 && strcmp(ns_rr_name(record), name) == 0,
           "the address is for the name");
    tap_ok(ns_rr_rdlen(record) == (is_v6 ? 16 : 4) &&
               memcmp(ns_rr_rdata(record), is_v6 ? v6 : v4, ns_rr_rdlen(record)) == 0,
           "and is the one that was given");
}

static void test_answers(void)
{
    check_answer("wWw.eXample.com", ns_t_a, DNS_NOERROR, 1);
    check_answer("www.example.com", ns_t_aaaa, DNS_NOERROR, 1);
    check_answer("www.example.com", ns_t_mx, DNS_NOERROR, 0);
    check_answer("www.example.com", 65, DNS_NOERROR, 0);
    check_answer("www.example.com", ns_t_a, DNS_NXDOMAIN, 0);
    check_answer("www.example.com", ns_t_aaaa, DNS_SERVFAIL, 0);
    check_answer("www.example.com", ns_t_aaaa, DNS_REFUSED, 0);
}

static void test_frames(void)
{
    const uint8_t *message;
    size_t length;
    uint8_t bytes[DNS_QUERY_MAX + 2] = {0, 3, 'a', 'b', 'c', 0, 1};
    tap_is_int(dns_frame_read(bytes, 0, &message, &length), 0, "no byte: not all there");
    tap_is_int(dns_frame_read(bytes, 1, &message, &length), 0, "half a prefix: neither");
    tap_is_int(dns_frame_read(bytes, 4, &message, &length), 0, "part of a message: neither");
    tap_is_int(dns_frame_read(bytes, 7, &message, &length), 5, "a whole one is taken");
    tap_ok(message == bytes + 2 && length == 3, "without its prefix");
    tap_is_int(dns_frame_read(bytes + 5, 2, &message, &length), 0, "the next is not all there");
    dns_frame_prefix(DNS_QUERY_MAX, bytes);
    tap_is_int(dns_frame_read(bytes, sizeof bytes, &message, &length), sizeof bytes,
               "4096 bytes may come");
    dns_frame_prefix(DNS_QUERY_MAX + 1, bytes);
    tap_is_int(dns_frame_read(bytes, sizeof bytes, &message, &length), -1, "and not 4097");
    bytes[0] = bytes[1] = 0;
    tap_is_int(dns_frame_read(bytes, 2, &message, &length), 2, "an empty one is one");
}

int main(void)
{
    test_questions();
    test_strange_names();
    test_malformed();
    test_edns();
    test_limits();
    test_answers();
    test_frames();
    return tap_done();
}
