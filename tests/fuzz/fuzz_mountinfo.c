/* SPDX-License-Identifier: MIT */
/* A table of mounts: names in it are whatever somebody called a directory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *table = malloc(size + 1); /* of exactly this size: a byte too far is noticed */
    if (!table)
        return 0;
    memcpy(table, data, size);
    table[size] = 0;
    char *rest = table;
    struct mountinfo mount;
    while (mountinfo_next(&rest, &mount))
        if (mount.root[0] != '/' || mount.point[0] != '/' || rest < table || rest > table + size ||
            mount.root + strlen(mount.root) > table + size ||
            mount.point + strlen(mount.point) > table + size ||
            (*mount.type && mount.type + strlen(mount.type) > table + size))
            abort();
    free(table);
    return 0;
}
