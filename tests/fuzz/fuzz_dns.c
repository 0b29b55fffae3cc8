/* SPDX-License-Identifier: MIT */
/* Messages of DNS from any bytes, and the answers to them. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/dns.h"
#include "policy/net_address.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_query(const struct dns_query *query, const uint8_t *data, size_t size)
{
    char same[NET_NAME_MAX + 1];
    expect(query->question_length <= DNS_QUESTION_MAX);
    /* What is repeated was there. */
    expect(query->question_length == 0 ||
           memcmp(query->question, data + 12, query->question_length) == 0);
    expect(query->question_length <= size);
    if (!query->has_name)
        return;
    expect(net_name_read(query->name, strlen(query->name), same));
    expect(strcmp(query->name, same) == 0);
}

static void check_answer(const struct dns_query *query, enum dns_code code)
{
    static const uint8_t bytes[16] = {0xfd, 1};
    struct net_address addresses[DNS_ADDRESSES_MAX + 2];
    for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++)
        addresses[i] = i % 2 ? net_address_v4(bytes) : net_address_v6(bytes);
    uint8_t answer[DNS_ANSWER_MAX];
    size_t length = dns_answer(query, code, addresses, ARRAY_LENGTH(addresses), UINT32_MAX, answer);
    expect(length >= 12 && length <= sizeof answer);
    expect((answer[2] & 0x80) && (answer[3] & 0xf) == (code & 0xf));
    /* An answer is never answered. */
    struct dns_query read;
    expect(dns_query_read(answer, length, &read) == DNS_DROP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dns_query query;
    enum dns_code code = dns_query_read(data, size, &query);
    if (code != DNS_DROP) {
        check_query(&query, data, size);
        check_answer(&query, code);
        check_answer(&query, DNS_NXDOMAIN);
    }
    const uint8_t *message;
    size_t length;
    int taken = dns_frame_read(data, size, &message, &length);
    if (taken > 0)
        expect((size_t)taken <= size && message + length == data + taken);
    return 0;
}
