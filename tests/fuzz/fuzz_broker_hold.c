/* SPDX-License-Identifier: MIT */
/* Messages of the kernel's queue of packets, from any bytes. */
#include <stdlib.h>

#include "net/broker_connection.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hold_message message;
    size_t at = 0, used;
    while ((used = hold_read_message(data + at, size - at, &message)) > 0) {
        expect(used <= size - at);
        expect(message.hold.waiting);
        at += used;
    }
    struct hold hold = {0};
    if (hold_read_packet(data, size, &hold))
        expect(size >= 40);
    return 0;
}
