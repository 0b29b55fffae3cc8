/* SPDX-License-Identifier: MIT */
/* DNS messages: parses a query with one question, and builds the answer. The bytes come from a jail
 * and are untrusted. Pure, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net_address.h"

struct net_address;

#define DNS_QUERY_MAX 4096  /* a longer message is malformed */
#define DNS_ANSWER_MAX 512  /* no answer is longer, so none is truncated */
#define DNS_ADDRESSES_MAX 4 /* in one answer */
#define DNS_QUESTION_MAX (255 + 4)
#define DNS_FRAME_PREFIX 2 /* bytes of the length before each message over TCP */

enum dns_type {
    DNS_TYPE_A = 1,
    DNS_TYPE_AAAA = 28,
};

enum dns_code {
    DNS_DROP = -1, /* not a query: an answer could start an endless exchange of two servers */
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
    bool edns;                          /* the query has an OPT record, so the answer gets one */
    bool has_name;                      /* false: not a valid host name; it does not exist */
    char name[NET_NAME_MAX + 1];        /* in the form of net_name_read() */
    uint8_t question[DNS_QUESTION_MAX]; /* as received: the case of letters is preserved (0x20) */
    size_t question_length;             /* 0 if there is no question that can be repeated */
};

/* Parses a query. Returns DNS_NOERROR or the code to answer with; *ret_query is then valid for
 * dns_answer() too. *ret_query is untouched with DNS_DROP. */
enum dns_code dns_query_read(const uint8_t *bytes, size_t length, struct dns_query *ret_query);

/* Builds the answer with the addresses of the requested type, at most DNS_ADDRESSES_MAX; without
 * any it is "no data". Codes other than DNS_NOERROR have no addresses. Returns the length. */
size_t dns_answer(const struct dns_query *query, enum dns_code code,
                  const struct net_address *addresses, size_t count, uint32_t ttl_seconds,
                  uint8_t answer[DNS_ANSWER_MAX]);

/* For TCP: finds the message after the length prefix at `bytes`. Returns the bytes of prefix and
 * message, 0 if it is incomplete, -1 if it is longer than DNS_QUERY_MAX. */
int dns_frame_read(const uint8_t *bytes, size_t length, const uint8_t **ret_message,
                   size_t *ret_length);
void dns_frame_prefix(size_t message_length, uint8_t prefix[DNS_FRAME_PREFIX]);
