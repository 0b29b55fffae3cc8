/* SPDX-License-Identifier: MIT */
/* The JSON writer: structure, escapes, and bytes that are no UTF-8. */
#include "base/json.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "tap.h"

#define REPLACED "\xef\xbf\xbd"

static void structure(void)
{
    autostr struct str out = {0};
    struct json j;
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_text(&j, "s", "x");
    json_open_array(&j, "a");
    json_int(&j, NULL, INT64_MIN);
    json_uint(&j, NULL, UINT64_MAX);
    json_open_object(&j, NULL);
    json_close_object(&j);
    json_open_array(&j, NULL);
    json_close_array(&j);
    json_bool(&j, NULL, true);
    json_close_array(&j);
    json_bool(&j, "f", false);
    json_nothing(&j, "n");
    json_text(&j, "z", NULL);
    json_time(&j, "t", INT64_C(1796205600123456789));
    json_time(&j, "u", 0);
    json_close_object(&j);
    tap_is_str(out.data,
               "{\"s\":\"x\",\"a\":[-9223372036854775808,18446744073709551615,{},[],true],"
               "\"f\":false,\"n\":null,\"z\":null,\"t\":\"2026-12-02T10:00:00.123Z\",\"u\":null}",
               "objects, arrays and values stand where they belong");
}

static void string_is(const char *bytes, size_t length, const char *wanted, const char *name)
{
    autostr struct str out = {0};
    struct json j;
    json_init(&j, &out);
    json_bytes(&j, NULL, bytes, length);
    tap_is_str(out.data, wanted, "%s", name);
}

#define STRING_IS(bytes, wanted, name) string_is(bytes, sizeof(bytes) - 1, wanted, name)

int main(void)
{
    structure();
    STRING_IS("", "\"\"", "an empty string");
    STRING_IS("a\"b\\c/", "\"a\\\"b\\\\c/\"", "quotes and backslashes are escaped");
    STRING_IS("\n\t\r\b\f", "\"\\n\\t\\r\\b\\f\"", "named control characters");
    STRING_IS("\0\x1f\x7f", "\"\\u0000\\u001f\\u007f\"", "other control characters");
    STRING_IS("\xc2\x9b|\xe2\x80\xae|\xf3\xa0\x81\x81", "\"\\u009b|\\u202e|\\udb40\\udc41\"",
              "what a terminal obeys or does not show is escaped");
    STRING_IS("é€😀", "\"é€😀\"", "UTF-8 of two, three and four bytes passes");
    STRING_IS("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
              "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"", "the edges of the range pass");
    STRING_IS("a\xff\x62", "\"a" REPLACED "b\"", "a byte that never occurs is replaced");
    STRING_IS("\xc0\xaf", "\"" REPLACED REPLACED "\"", "an overlong slash is replaced");
    STRING_IS("\xe0\x9f\xbf", "\"" REPLACED REPLACED REPLACED "\"", "overlong three bytes are");
    STRING_IS("\xf0\x8f\xbf\xbf", "\"" REPLACED REPLACED REPLACED REPLACED "\"",
              "overlong four bytes are");
    STRING_IS("\xed\xa0\x80", "\"" REPLACED REPLACED REPLACED "\"", "a surrogate is replaced");
    STRING_IS("\xf4\x90\x80\x80", "\"" REPLACED REPLACED REPLACED REPLACED "\"",
              "what lies above U+10FFFF is replaced");
    STRING_IS("\x80", "\"" REPLACED "\"", "a lone continuation is replaced");
    STRING_IS("\xe2\x82", "\"" REPLACED REPLACED "\"", "a sequence cut short is replaced");
    STRING_IS("\xe2\x82z", "\"" REPLACED REPLACED "z\"", "and what follows it is kept");
    return tap_done();
}
