/* SPDX-License-Identifier: MIT */
/* What a function leaves of its failure, from any bytes: a head, and texts behind it. */
#include <stdlib.h>
#include <string.h>

#include "call/memory.h"

static void expect(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_head head = {0};
    struct memory_failure failure = {0};
    if (size < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    size_t length = size - sizeof head, total = 0;
    /* Of its own, so that the sanitizer sees where it ends. */
    char *bytes = malloc(length + 1);
    if (!bytes)
        abort();
    memcpy(bytes, data + sizeof head, length);
    expect(memory_parse_failure(&head, bytes, length, &failure, NULL) == 0);
    for (size_t i = 0; i < MEMORY_TEXTS; i++)
        total += failure.texts[i] ? head.text_lengths[i] : 0;
    expect(total <= length && total <= BRIG_CALL_TEXT_MAX);
    for (size_t i = 0; i < MEMORY_TEXTS; i++)
        if (failure.texts[i])
            expect(strlen(failure.texts[i]) <= head.text_lengths[i]);
    expect(failure.sys_errno >= 0 && failure.sys_errno < 4096);
    expect(failure.access >= BRIG_CALL_ACCESS_UNKNOWN && failure.access <= BRIG_CALL_ACCESS_BIND);
    memory_failure_done(&failure);
    free(bytes);
    return 0;
}
