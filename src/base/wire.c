/* SPDX-License-Identifier: MIT */
/* Encodes and decodes numbers, texts and bytes for messages between processes. */
#include "base/wire.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"

#define LENGTH_NULL UINT64_MAX /* the length of a NULL text */

/* ---- Writing ---- */

void wire_put_version(struct str *out, uint64_t version)
{
    wire_put_u64(out, version);
}

void wire_put_u64(struct str *out, uint64_t value)
{
    str_append_bytes(out, &value, sizeof value);
}

void wire_put_i64(struct str *out, int64_t value)
{
    wire_put_u64(out, (uint64_t)value);
}

void wire_put_bool(struct str *out, bool value)
{
    wire_put_u64(out, value);
}

void wire_put_bytes(struct str *out, const void *bytes, size_t length)
{
    wire_put_u64(out, length);
    if (length > 0)
        str_append_bytes(out, bytes, length);
    str_append_char(out, '\0');
}

void wire_put_text(struct str *out, const char *text)
{
    if (text)
        wire_put_bytes(out, text, strlen(text));
    else
        wire_put_u64(out, LENGTH_NULL);
}

/* ---- Reading ---- */

static const unsigned char *take(struct wire_reader *in, size_t length)
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

uint64_t wire_get_u64(struct wire_reader *in, uint64_t max)
{
    uint64_t value = 0;
    const unsigned char *taken = take(in, sizeof value);
    if (taken)
        memcpy(&value, taken, sizeof value);
    if (value <= max)
        return value;
    in->failed = true;
    return 0;
}

int64_t wire_get_i64(struct wire_reader *in, int64_t min, int64_t max)
{
    int64_t value = (int64_t)wire_get_u64(in, UINT64_MAX);
    if (!in->failed && value >= min && value <= max)
        return value;
    in->failed = true;
    return 0;
}

bool wire_get_bool(struct wire_reader *in)
{
    return wire_get_u64(in, 1) != 0;
}

/* Takes bytes and the NUL after them. */
static const char *take_bytes(struct wire_reader *in, uint64_t length, size_t max)
{
    if (length > max || length >= in->left)
        in->failed = true;
    const unsigned char *taken = take(in, in->failed ? 0 : (size_t)length + 1);
    if (taken && taken[length] == '\0')
        return (const char *)taken;
    in->failed = true;
    return NULL;
}

const char *wire_get_bytes(struct wire_reader *in, size_t max, size_t *ret_length)
{
    uint64_t length = wire_get_u64(in, UINT64_MAX);
    const char *bytes = take_bytes(in, length, max);
    *ret_length = bytes ? (size_t)length : 0;
    return bytes ? bytes : "";
}

const char *wire_get_text_or_null(struct wire_reader *in, size_t max)
{
    uint64_t length = wire_get_u64(in, UINT64_MAX);
    if (in->failed || length == LENGTH_NULL)
        return NULL;
    const char *text = take_bytes(in, length, max);
    if (text && strlen(text) == length)
        return text;
    in->failed = true;
    return NULL;
}

const char *wire_get_text(struct wire_reader *in, size_t max)
{
    const char *text = wire_get_text_or_null(in, max);
    if (text)
        return text;
    in->failed = true;
    return "";
}

size_t wire_get_count(struct wire_reader *in, size_t max)
{
    size_t count = (size_t)wire_get_u64(in, max);
    if (count <= in->left / sizeof(uint64_t))
        return count;
    in->failed = true;
    return 0;
}

void *wire_get_array(struct wire_reader *in, struct arena *arena, size_t max, size_t size,
                     size_t *ret_count)
{
    size_t count = wire_get_count(in, max);
    void *array = in->failed || count == 0 ? NULL : arena_alloc(arena, count * size);
    if (count > 0 && !array)
        in->failed = true;
    *ret_count = array ? count : 0;
    return array;
}

struct wire_reader wire_open(const void *message, size_t length, uint64_t version)
{
    struct wire_reader in = {.at = message, .left = length};
    if (wire_get_u64(&in, UINT64_MAX) != version)
        in.failed = true;
    return in;
}

bool wire_done(const struct wire_reader *in)
{
    return !in->failed && in->left == 0;
}
