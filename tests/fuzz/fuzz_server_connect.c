/* SPDX-License-Identifier: MIT */
/* Connect frames from any bytes, one after the other. */
#include <stdint.h>
#include <stdlib.h>

#include "server/api/connect.h"

#define MOST 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    long used = 1;
    for (size_t at = 0; at < size && used > 0; at += (size_t)used) {
        unsigned flags = 0;
        const char *payload = NULL;
        size_t length = 0;
        used = connect_read((const char *)data + at, size - at, MOST, &flags, &payload, &length);
        if (used < 0)
            break;
        if (used > 0 && (length > MOST || (size_t)used != length + CONNECT_HEAD_BYTES ||
                         at + (size_t)used > size || flags > 255))
            abort();
        for (size_t i = 0; used > 0 && i < length; i++)
            (void)*(volatile const char *)(payload + i);
    }
    return 0;
}
