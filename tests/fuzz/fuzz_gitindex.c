/* SPDX-License-Identifier: MIT */
/* The index of a git repository, which a jail writes: the input is one, read with either hash. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/gitindex.h"

static void read_all(const void *bytes, size_t size, size_t hash_size)
{
    struct gitindex index;
    const char *name = NULL;
    if (!gitindex_begin(&index, bytes, size, hash_size))
        return;
    size_t count = 0;
    while (gitindex_next(&index, &name) > 0) {
        if (strlen(name) != index.name_length || !name[0] || ++count > size)
            abort();
    }
    if (index.at > index.end && index.left > 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size ? size : 1); /* of exactly this size: a byte too far is noticed */
    if (!bytes)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    read_all(bytes, size, GITINDEX_SHA1);
    read_all(bytes, size, GITINDEX_SHA256);
    free(bytes);
    return 0;
}
