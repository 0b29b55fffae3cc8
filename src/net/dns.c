/* SPDX-License-Identifier: MIT */
/* DNS messages (RFC 1035, RFC 6891 for EDNS): parses a query with one question, and builds the
 * answer. */
#include "net/dns.h"

#include <string.h>

#include "policy/net_address.h"

#define HEADER_SIZE 12
#define LABEL_TYPE 0xc0 /* these bits of a length are set in pointers and in unused types */
#define WIRE_NAME_MAX 255
#define CLASS_IN 1
#define TYPE_OPT 41
#define RECORD_FIXED 10 /* type, class, time to live, length of the data */
#define RECORDS_MAX 8   /* after the question; clients send at most two */
#define OPT_SIZE (1 + RECORD_FIXED)
#define ADDRESS_RECORD_MAX (2 + RECORD_FIXED + 16)
#define UDP_SIZE 1232 /* our advertised size: fits into every packet */

_Static_assert(HEADER_SIZE + DNS_QUESTION_MAX + DNS_ADDRESSES_MAX * ADDRESS_RECORD_MAX + OPT_SIZE <=
                   DNS_ANSWER_MAX,
               "no answer is longer than it may be");

#define FLAG_ANSWER 0x8000
#define FLAG_AUTHORITATIVE 0x0400
#define FLAG_RECURSION_DESIRED 0x0100
#define FLAG_RECURSION_AVAILABLE 0x0080
#define FLAG_CHECKING_DISABLED 0x0010
#define OPCODE(flags) ((flags) >> 11 & 0xf)

/* ---- Reading ------------------------------------------------------------------------------ */

struct reader {
    const uint8_t *bytes;
    size_t length;
    size_t at;
};

static uint16_t get16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static size_t left(const struct reader *reader)
{
    return reader->length - reader->at;
}

/* Skips a name that is not compressed. Names after the question need no compression either: the
 * name of an OPT record is the root. */
static bool skip_name(struct reader *reader)
{
    size_t start = reader->at;
    while (left(reader) > 0) {
        uint8_t label = reader->bytes[reader->at];
        if (label & LABEL_TYPE || reader->at + 1 + label - start > WIRE_NAME_MAX)
            return false;
        if (label >= left(reader))
            return false;
        reader->at += 1U + label;
        if (label == 0)
            return true;
    }
    return false;
}

/* Converts the name to text. A dot inside a label would make two names look the same, and other
 * special bytes are not in host names. */
static bool name_text(const uint8_t *wire, char ret_name[NET_NAME_MAX + 1])
{
    char text[WIRE_NAME_MAX + 1];
    size_t length = 0;
    for (uint8_t label = *wire; label > 0; label = *wire) {
        if (memchr(wire + 1, '.', label))
            return false;
        memcpy(text + length, wire + 1, label);
        length += label;
        text[length++] = '.';
        wire += 1 + label;
    }
    return length > 0 && net_name_read(text, length, ret_name);
}

static bool read_question(struct reader *reader, struct dns_query *query, uint16_t *ret_class)
{
    size_t start = reader->at;
    if (!skip_name(reader) || left(reader) < 4)
        return false;
    query->type = get16(reader->bytes + reader->at);
    *ret_class = get16(reader->bytes + reader->at + 2);
    reader->at += 4;
    query->question_length = reader->at - start;
    memcpy(query->question, reader->bytes + start, query->question_length);
    query->has_name = name_text(query->question, query->name);
    return true;
}

/* Skips a record after the question, and reads OPT records. */
static enum dns_code read_record(struct reader *reader, struct dns_query *query)
{
    size_t start = reader->at;
    if (!skip_name(reader) || left(reader) < RECORD_FIXED)
        return DNS_FORMERR;
    bool root = reader->at == start + 1;
    const uint8_t *fixed = reader->bytes + reader->at;
    size_t data = get16(fixed + 8);
    reader->at += RECORD_FIXED;
    if (data > left(reader))
        return DNS_FORMERR;
    reader->at += data;
    if (get16(fixed) != TYPE_OPT)
        return DNS_NOERROR;
    if (!root || query->edns)
        return DNS_FORMERR;
    query->edns = true;
    return fixed[5] == 0 ? DNS_NOERROR : DNS_BADVERS;
}

static enum dns_code read_body(struct reader *reader, struct dns_query *query)
{
    const uint8_t *header = reader->bytes;
    uint16_t class, records = get16(header + 10);
    bool one_question = get16(header + 4) == 1 && get16(header + 6) == 0 && get16(header + 8) == 0;
    if (!one_question || records > RECORDS_MAX || !read_question(reader, query, &class))
        return DNS_FORMERR;
    enum dns_code code = DNS_NOERROR;
    for (unsigned i = 0; i < records; i++) {
        enum dns_code found = read_record(reader, query);
        if (found == DNS_FORMERR)
            return found;
        if (found != DNS_NOERROR)
            code = found;
    }
    if (left(reader) > 0)
        return DNS_FORMERR;
    if (code == DNS_NOERROR && class != CLASS_IN)
        return DNS_REFUSED;
    return code;
}

enum dns_code dns_query_read(const uint8_t *bytes, size_t length, struct dns_query *ret_query)
{
    if (length < HEADER_SIZE || get16(bytes + 2) & FLAG_ANSWER)
        return DNS_DROP;
    uint16_t flags = get16(bytes + 2);
    struct dns_query query = {
        .id = get16(bytes),
        .recursion_desired = flags & FLAG_RECURSION_DESIRED,
        .checking_disabled = flags & FLAG_CHECKING_DISABLED,
    };
    struct reader reader = {.bytes = bytes, .length = length, .at = HEADER_SIZE};
    enum dns_code code = DNS_NOTIMP;
    if (OPCODE(flags) == 0)
        code = length > DNS_QUERY_MAX ? DNS_FORMERR : read_body(&reader, &query);
    *ret_query = query;
    return code;
}

/* ---- Answering ---------------------------------------------------------------------------- */

struct writer {
    uint8_t *bytes;
    size_t length;
};

static void put16(struct writer *writer, unsigned value)
{
    writer->bytes[writer->length++] = (uint8_t)(value >> 8);
    writer->bytes[writer->length++] = (uint8_t)value;
}

static void put_bytes(struct writer *writer, const uint8_t *bytes, size_t length)
{
    memcpy(writer->bytes + writer->length, bytes, length);
    writer->length += length;
}

static void put_address(struct writer *writer, const struct net_address *address,
                        uint32_t ttl_seconds)
{
    bool v6 = address->family == NET_V6;
    put16(writer, LABEL_TYPE << 8 | HEADER_SIZE); /* a pointer to the name in the question */
    put16(writer, v6 ? DNS_TYPE_AAAA : DNS_TYPE_A);
    put16(writer, CLASS_IN);
    put16(writer, ttl_seconds >> 16);
    put16(writer, ttl_seconds & 0xffff);
    put16(writer, v6 ? 16 : 4);
    put_bytes(writer, address->bytes, v6 ? 16 : 4);
}

static void put_opt(struct writer *writer, enum dns_code code)
{
    writer->bytes[writer->length++] = 0;
    put16(writer, TYPE_OPT);
    put16(writer, UDP_SIZE);
    put16(writer, ((unsigned)code >> 4 & 0xff) << 8); /* the upper bits of the code; version 0 */
    put16(writer, 0);
    put16(writer, 0);
}

static bool is_asked_for(const struct dns_query *query, const struct net_address *address)
{
    return query->question_length > 0 &&
           query->type == (address->family == NET_V6 ? DNS_TYPE_AAAA : DNS_TYPE_A);
}

static unsigned flags_of(const struct dns_query *query, enum dns_code code)
{
    /* Without "recursion available", glibc takes an answer without data for a referral. */
    unsigned flags = FLAG_ANSWER | FLAG_AUTHORITATIVE | FLAG_RECURSION_AVAILABLE;
    if (query->recursion_desired)
        flags |= FLAG_RECURSION_DESIRED;
    if (query->checking_disabled)
        flags |= FLAG_CHECKING_DISABLED;
    return flags | ((unsigned)code & 0xf);
}

size_t dns_answer(const struct dns_query *query, enum dns_code code,
                  const struct net_address *addresses, size_t count, uint32_t ttl_seconds,
                  uint8_t answer[DNS_ANSWER_MAX])
{
    struct writer writer = {.bytes = answer, .length = HEADER_SIZE};
    unsigned answers = 0;
    put_bytes(&writer, query->question, query->question_length);
    for (size_t i = 0; code == DNS_NOERROR && i < count && answers < DNS_ADDRESSES_MAX; i++) {
        if (!is_asked_for(query, &addresses[i]))
            continue;
        put_address(&writer, &addresses[i], ttl_seconds);
        answers++;
    }
    if (query->edns)
        put_opt(&writer, code);
    struct writer header = {.bytes = answer};
    put16(&header, query->id);
    put16(&header, flags_of(query, code));
    put16(&header, query->question_length > 0 ? 1 : 0);
    put16(&header, answers);
    put16(&header, 0);
    put16(&header, query->edns ? 1 : 0);
    return writer.length;
}

/* ---- TCP ---------------------------------------------------------------------------------- */

int dns_frame_read(const uint8_t *bytes, size_t length, const uint8_t **ret_message,
                   size_t *ret_length)
{
    if (length < DNS_FRAME_PREFIX)
        return 0;
    size_t message = get16(bytes);
    if (message > DNS_QUERY_MAX)
        return -1;
    if (length - DNS_FRAME_PREFIX < message)
        return 0;
    *ret_message = bytes + DNS_FRAME_PREFIX;
    *ret_length = message;
    return (int)(DNS_FRAME_PREFIX + message);
}

void dns_frame_prefix(size_t message_length, uint8_t prefix[DNS_FRAME_PREFIX])
{
    struct writer writer = {.bytes = prefix};
    put16(&writer, (unsigned)message_length);
}
