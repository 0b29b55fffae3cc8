/* SPDX-License-Identifier: MIT */
/* One record of the spool as bytes. Pure. */
#include <string.h>

#include "server/history/spool.h"

#define MAGIC 0x72676962u /* "bigr" */

struct head {
    uint32_t magic, length, checksum, unused;
};
_Static_assert(sizeof(struct head) == SPOOL_HEAD_BYTES, "the head has no holes");

/* CRC-32 (IEEE 802.3), four bits at a time. */
static uint32_t checksum(const unsigned char *bytes, size_t length)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t sum = ~0u;
    for (size_t i = 0; i < length; i++) {
        sum = table[(sum ^ bytes[i]) & 15] ^ (sum >> 4);
        sum = table[(sum ^ (bytes[i] >> 4)) & 15] ^ (sum >> 4);
    }
    return ~sum;
}

void spool_record_head(const void *bytes, size_t length, unsigned char ret_head[SPOOL_HEAD_BYTES])
{
    const struct head head = {
        .magic = MAGIC, .length = (uint32_t)length, .checksum = checksum(bytes, length)};
    memcpy(ret_head, &head, sizeof head);
}

long spool_record_parse(const void *bytes, size_t length, struct spool_record *ret_record)
{
    struct head head;
    if (length < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    if (head.magic != MAGIC || head.length > SPOOL_RECORD_MAX || head.unused != 0)
        return -1;
    if (length - sizeof head < head.length)
        return 0;
    const char *content = (const char *)bytes + sizeof head;
    if (checksum((const unsigned char *)content, head.length) != head.checksum)
        return -1;
    *ret_record = (struct spool_record){content, head.length};
    return (long)(sizeof head + head.length);
}
