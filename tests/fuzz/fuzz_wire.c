/* SPDX-License-Identifier: MIT */
/* The format between processes, read in any order from any bytes: nothing outside of them is read, no limit is
 * passed, and what was read is written as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/wire.h"

#define ARRAY_MAX 64

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void check_text(const char *text, size_t max)
{
    expect(strlen(text) <= max);
}

static void fuzz_one(struct wire_reader *in, struct arena *arena, uint8_t order, struct str *again)
{
    const size_t max = (size_t)1 << (order >> 4);
    size_t length = 0;
    const char *text;
    switch (order % 6) {
    case 0:
        wire_put_u64(again, wire_get_u64(in, max));
        break;
    case 1:
        wire_put_i64(again, wire_get_i64(in, -(int64_t)max, (int64_t)max));
        break;
    case 2:
        wire_put_bool(again, wire_get_bool(in));
        break;
    case 3:
        text = wire_get_bytes(in, max, &length);
        expect(length <= max && text[length] == '\0');
        wire_put_bytes(again, text, length);
        break;
    case 4:
        text = wire_get_text_or_null(in, max);
        if (text)
            check_text(text, max);
        wire_put_text(again, text);
        break;
    default:
        expect((wire_get_array(in, arena, ARRAY_MAX, max, &length) != NULL) == (length > 0));
        expect(length <= ARRAY_MAX);
        wire_put_u64(again, length);
    }
}

/* The first bytes say what is read, the others are the message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autostr struct str again = {0};
    struct arena arena = {0};
    size_t orders = size > 0 ? data[0] % 16 : 0;
    if (size <= orders)
        return 0;
    const uint8_t *message = data + 1 + orders;
    size_t length = size - 1 - orders;
    struct wire_reader in = wire_open(message, length, 0);
    wire_put_version(&again, 0);
    for (size_t i = 0; i < orders; i++)
        fuzz_one(&in, &arena, data[1 + i], &again);
    if (wire_done(&in))
        expect(again.length == length && memcmp(again.data, message, length) == 0);
    arena_done(&arena);
    return 0;
}
