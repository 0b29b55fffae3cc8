/* SPDX-License-Identifier: MIT */
/* The format between processes: what goes in comes out, within the limits, and nothing else does. */
#include "base/wire.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "tap.h"

#define VERSION 7

static void test_round(void)
{
    autostr struct str out = {0};
    size_t length = 0;
    wire_put_version(&out, VERSION);
    wire_put_u64(&out, UINT64_MAX);
    wire_put_i64(&out, -5);
    wire_put_bool(&out, true);
    wire_put_bytes(&out, "a\0b", 3);
    wire_put_bytes(&out, NULL, 0);
    wire_put_text(&out, "text");
    wire_put_text(&out, "");
    wire_put_text(&out, NULL);
    tap_ok(!out.failed, "it is written");
    struct wire_reader in = wire_open(out.data, out.length, VERSION);
    tap_ok(wire_get_u64(&in, UINT64_MAX) == UINT64_MAX, "a number comes back");
    tap_is_int((long)wire_get_i64(&in, -5, 5), -5, "so does a negative one");
    tap_ok(wire_get_bool(&in), "and a truth");
    const char *bytes = wire_get_bytes(&in, 3, &length);
    tap_ok(length == 3 && memcmp(bytes, "a\0b", 4) == 0, "bytes, with a NUL after them");
    bytes = wire_get_bytes(&in, 0, &length);
    tap_ok(length == 0 && bytes[0] == '\0', "none as well");
    tap_is_str(wire_get_text(&in, 4), "text", "a text");
    tap_is_str(wire_get_text(&in, 0), "", "an empty one");
    tap_ok(!wire_done(&in), "something is left");
    tap_ok(!wire_get_text_or_null(&in, 4), "one that is not there");
    tap_ok(wire_done(&in), "and that is all");
    tap_ok(wire_get_u64(&in, 1) == 0 && in.failed, "more is a failure");
    unsigned whole = 0;
    for (size_t i = 0; i < out.length; i++) {
        in = wire_open(out.data, i, VERSION);
        (void)wire_get_u64(&in, UINT64_MAX);
        (void)wire_get_i64(&in, -5, 5);
        (void)wire_get_bool(&in);
        (void)wire_get_bytes(&in, 3, &length);
        (void)wire_get_bytes(&in, 0, &length);
        (void)wire_get_text(&in, 4);
        (void)wire_get_text(&in, 0);
        (void)wire_get_text_or_null(&in, 4);
        whole += wire_done(&in);
    }
    tap_is_int(whole, 0, "no part of it is whole");
}

static struct wire_reader one_number(struct str *out, uint64_t number)
{
    str_done(out);
    wire_put_version(out, VERSION);
    wire_put_u64(out, number);
    return wire_open(out->data, out->length, VERSION);
}

static void test_limits(void)
{
    autostr struct str out = {0};
    size_t length = 1;
    struct wire_reader in = one_number(&out, 10);
    tap_is_int((long)wire_get_u64(&in, 10), 10, "a number at its limit");
    in = one_number(&out, 11);
    tap_ok(wire_get_u64(&in, 10) == 0 && in.failed, "one past it fails");
    in = one_number(&out, (uint64_t)-6);
    tap_ok(wire_get_i64(&in, -5, 5) == 0 && in.failed, "as one below");
    in = one_number(&out, 2);
    tap_ok(!wire_get_bool(&in) && in.failed, "2 is no truth");
    in = one_number(&out, 0);
    in = wire_open(out.data, out.length, VERSION + 1);
    tap_ok(in.failed && wire_get_u64(&in, 1) == 0, "another version fails");
    in = one_number(&out, UINT64_MAX);
    tap_ok(*wire_get_bytes(&in, SIZE_MAX, &length) == '\0' && length == 0 && in.failed,
           "a length beyond all there is fails");
    in = one_number(&out, UINT64_MAX - 1);
    tap_ok(!wire_get_text_or_null(&in, SIZE_MAX) && in.failed, "of a text too");

    str_done(&out);
    wire_put_version(&out, VERSION);
    wire_put_bytes(&out, "a\0b", 3);
    in = wire_open(out.data, out.length, VERSION);
    tap_ok(*wire_get_text(&in, 3) == '\0' && in.failed, "a text with a NUL inside fails");
    in = wire_open(out.data, out.length, VERSION);
    tap_ok(*wire_get_bytes(&in, 2, &length) == '\0' && in.failed, "bytes past their limit fail");
    out.data[out.length - 1] = 'x';
    in = wire_open(out.data, out.length, VERSION);
    tap_ok(*wire_get_bytes(&in, 3, &length) == '\0' && in.failed, "as those without a NUL");
}

static void test_arrays(void)
{
    autostr struct str out = {0};
    struct arena arena = {0};
    size_t count = 1;
    wire_put_version(&out, VERSION);
    wire_put_u64(&out, 3);
    for (uint64_t i = 0; i < 3; i++)
        wire_put_u64(&out, i);
    struct wire_reader in = wire_open(out.data, out.length, VERSION);
    tap_ok(wire_get_array(&in, &arena, 3, 16, &count) && count == 3 && !in.failed,
           "an array at its limit");
    in = wire_open(out.data, out.length, VERSION);
    tap_ok(!wire_get_array(&in, &arena, 2, 16, &count) && count == 0 && in.failed,
           "one past it fails");
    in = wire_open(out.data, out.length - 8, VERSION);
    tap_ok(wire_get_count(&in, 1000) == 0 && in.failed,
           "more than the bytes there are can hold fails before anything is allocated");
    in = one_number(&out, 0);
    tap_ok(!wire_get_array(&in, &arena, 3, 16, &count) && count == 0 && wire_done(&in),
           "none is no failure");
    arena_done(&arena);
}

int main(void)
{
    test_round();
    test_limits();
    test_arrays();
    return tap_done();
}
