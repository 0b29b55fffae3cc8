/* SPDX-License-Identifier: MIT */
/* Numbers, texts and bytes one after the other. */
#include "server/pack.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"

#define PACK_NULL UINT64_MAX /* the length of a text that is not there */

void pack_u64(struct str *out, uint64_t value)
{
    str_append_bytes(out, &value, sizeof value);
}

void pack_bytes(struct str *out, const void *bytes, size_t length)
{
    pack_u64(out, length);
    if (length > 0)
        str_append_bytes(out, bytes, length);
}

void pack_text(struct str *out, const char *text)
{
    if (text)
        pack_bytes(out, text, strlen(text));
    else
        pack_u64(out, PACK_NULL);
}

static const unsigned char *take(struct unpack *in, size_t length)
{
    if (in->failed || in->left < length) {
        in->failed = true;
        return NULL;
    }
    const unsigned char *taken = in->at;
    in->at += length;
    in->left -= length;
    return taken;
}

static uint64_t take_number(struct unpack *in)
{
    uint64_t value = 0;
    const unsigned char *taken = take(in, sizeof value);
    if (taken)
        memcpy(&value, taken, sizeof value);
    return value;
}

uint64_t unpack_u64(struct unpack *in, uint64_t max)
{
    uint64_t value = take_number(in);
    if (value <= max)
        return value;
    in->failed = true;
    return 0;
}

static struct execution_bytes take_bytes(struct unpack *in, uint64_t length, size_t max)
{
    const struct execution_bytes nothing = {.data = "", .length = 0};
    if (length > max)
        in->failed = true;
    const unsigned char *taken = take(in, in->failed ? 0 : (size_t)length);
    if (!taken)
        return nothing;
    char *copy = arena_alloc_raw(in->arena, (size_t)length + 1);
    if (!copy) {
        in->failed = true;
        return nothing;
    }
    memcpy(copy, taken, (size_t)length);
    copy[length] = 0;
    return (struct execution_bytes){.data = copy, .length = (size_t)length};
}

struct execution_bytes unpack_bytes(struct unpack *in, size_t max)
{
    return take_bytes(in, take_number(in), max);
}

const char *unpack_text(struct unpack *in, size_t max)
{
    uint64_t length = take_number(in);
    if (in->failed || length == PACK_NULL)
        return NULL;
    struct execution_bytes text = take_bytes(in, length, max);
    if (!in->failed && strlen(text.data) == text.length)
        return text.data;
    in->failed = true;
    return NULL;
}

const char *unpack_needed_text(struct unpack *in, size_t max)
{
    const char *text = unpack_text(in, max);
    if (text)
        return text;
    in->failed = true;
    return "";
}

void *unpack_array(struct unpack *in, size_t max, size_t size, size_t *ret_count)
{
    size_t count = (size_t)unpack_u64(in, max);
    void *array = in->failed || count == 0 ? NULL : arena_alloc(in->arena, count * size);
    if (count > 0 && !array)
        in->failed = true;
    *ret_count = array ? count : 0;
    return array;
}
