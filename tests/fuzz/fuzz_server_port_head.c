/* SPDX-License-Identifier: MIT */
/* The head of an answer of a program in a sandbox, whole and cut off. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "server/api/port_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autostr struct str headers = {0};
    unsigned status = 0;
    long used = port_head_read((const char *)data, size, &status, &headers);
    if (used > (long)size || used > PORT_HEAD_MAX || (used > 0 && (status < 100 || status > 599)))
        abort();
    size_t count = 0;
    for (const char *at = NULL; used > 0 && (at = str_list_next(&headers, at)); count++)
        if (!*at || strpbrk(at, "\r\n"))
            abort();
    if (count % 2)
        abort();
    return 0;
}
