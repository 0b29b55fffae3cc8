/* SPDX-License-Identifier: MIT */
/* Bodies of multipart/form-data; the first line is the Content-Type. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/api/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    size_t head = end ? (size_t)(end - data) : size;
    autofree char *type = strndup((const char *)data, head);
    char boundary[MULTIPART_BOUNDARY_MAX + 1];
    struct arena arena = {0};
    struct multipart *parts = NULL;
    size_t count = 0, length = end ? size - head - 1 : 0;
    /* A copy of its own, so that reading beyond it is noticed. */
    autofree char *body = malloc(length + 1);
    if (!type || !body)
        return 0;
    memcpy(body, data + size - length, length);
    if (multipart_boundary(type, boundary) &&
        multipart_read(body, length, boundary, &arena, &parts, &count))
        for (size_t i = 0; i < count; i++) {
            if (parts[i].bytes < body || parts[i].length > length ||
                parts[i].bytes + parts[i].length > body + length ||
                strlen(parts[i].name) > length || strlen(parts[i].file_name) > length)
                abort();
        }
    arena_done(&arena);
    return 0;
}
