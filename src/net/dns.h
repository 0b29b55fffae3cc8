/* SPDX-License-Identifier: MIT */
/* Messages of DNS: one question taken apart, and the answer to it. The bytes come from a jail and
 * may be anything. Pure, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

struct net_address;

#define DNS_QUERY_MAX 4096  /* a longer message is malformed */
#define DNS_ANSWER_MAX 512  /* no answer is longer, so none is ever truncated */
#define DNS_ADDRESSES_MAX 4 /* of one answer */
#define DNS_QUESTION_MAX (255 + 4)
#define DNS_FRAME_PREFIX 2 /* bytes of length before each message on TCP */

enum dns_type {
    DNS_TYPE_A = 1,
    DNS_TYPE_AAAA = 28,
};

enum dns_code {
    DNS_DROP = -1, /* not a question: nothing may be answered, or two servers would talk for ever */
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16,
};

struct dns_query {
    uint16_t id;
    uint16_t type; /* enum dns_type, or any other */
    bool recursion_desired, checking_disabled;
    bool edns;                          /* the question has an OPT record, so has the answer */
    bool has_name;                      /* false: the name is that of no host; it does not exist */
    char name[NET_NAME_MAX + 1];        /* as net_name_read() gives it */
    uint8_t question[DNS_QUESTION_MAX]; /* as it came: upper and lower case are kept (0x20) */
    size_t question_length;             /* 0 if there is none that can be repeated */
};

/* DNS_NOERROR, or what to answer instead; *ret_query is then fit for dns_answer() too. Untouched
 * with DNS_DROP. */
enum dns_code dns_query_read(const uint8_t *bytes, size_t length, struct dns_query *ret_query);

/* Builds the answer: those of the addresses that are of the type asked for, none for any other code
 * than DNS_NOERROR; without any it is "no data". At most DNS_ADDRESSES_MAX are taken. Returns its
 * length. */
size_t dns_answer(const struct dns_query *query, enum dns_code code,
                  const struct net_address *addresses, size_t count, uint32_t ttl_seconds,
                  uint8_t answer[DNS_ANSWER_MAX]);

/* On TCP. The message that begins at bytes, after its prefix. Returns how many bytes it takes with
 * its prefix, 0 if it is not all there, -1 if it is longer than DNS_QUERY_MAX. */
int dns_frame_read(const uint8_t *bytes, size_t length, const uint8_t **ret_message,
                   size_t *ret_length);
void dns_frame_prefix(size_t message_length, uint8_t prefix[DNS_FRAME_PREFIX]);
