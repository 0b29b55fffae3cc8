/* SPDX-License-Identifier: MIT */
/* Writing JSON into a struct str. */
#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"

/* The length of the well-formed UTF-8 sequence at p, 0 if there is none (Unicode 15, table 3-7: no
 * overlong forms, no surrogates, nothing above U+10FFFF). */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf; /* bounds of the second byte */
    size_t length;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        length = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        length = 3;
        if (p[0] == 0xe0)
            low = 0xa0;
        if (p[0] == 0xed)
            high = 0x9f;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        length = 4;
        if (p[0] == 0xf0)
            low = 0x90;
        if (p[0] == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (left < length || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static void append_ascii(struct str *out, unsigned char c)
{
    static const char named[] = "\"\"\\\\\nn\tt\rr\bb\ff";
    for (size_t i = 0; i + 1 < sizeof named; i += 2) {
        if (c == (unsigned char)named[i]) {
            str_append_char(out, '\\');
            str_append_char(out, named[i + 1]);
            return;
        }
    }
    if (c < 0x20 || c == 0x7f)
        str_appendf(out, "\\u%04x", c);
    else
        str_append_char(out, (char)c);
}

static void append_quoted(struct str *out, const unsigned char *bytes, size_t length)
{
    str_append_char(out, '"');
    for (size_t i = 0; i < length;) {
        size_t n = utf8_length(bytes + i, length - i);
        if (n == 1)
            append_ascii(out, bytes[i]);
        else if (n > 1)
            str_append_bytes(out, bytes + i, n);
        else
            str_append(out, "\xef\xbf\xbd");
        i += n > 0 ? n : 1;
    }
    str_append_char(out, '"');
}

/* What stands before a value: the comma and the key. */
static void before(struct json *j, const char *key)
{
    if (j->comma)
        str_append_char(j->out, ',');
    if (key) {
        append_quoted(j->out, (const unsigned char *)key, strlen(key));
        str_append_char(j->out, ':');
    }
    j->comma = true;
}

static void open_with(struct json *j, const char *key, char bracket)
{
    before(j, key);
    str_append_char(j->out, bracket);
    j->comma = false;
}

static void close_with(struct json *j, char bracket)
{
    str_append_char(j->out, bracket);
    j->comma = true;
}

void json_init(struct json *j, struct str *out)
{
    *j = (struct json){.out = out};
}

void json_open_object(struct json *j, const char *key)
{
    open_with(j, key, '{');
}

void json_close_object(struct json *j)
{
    close_with(j, '}');
}

void json_open_array(struct json *j, const char *key)
{
    open_with(j, key, '[');
}

void json_close_array(struct json *j)
{
    close_with(j, ']');
}

void json_bytes(struct json *j, const char *key, const void *bytes, size_t length)
{
    before(j, key);
    append_quoted(j->out, bytes, length);
}

void json_string(struct json *j, const char *key, const char *text)
{
    if (text)
        json_bytes(j, key, text, strlen(text));
    else
        json_null(j, key);
}

void json_int(struct json *j, const char *key, int64_t value)
{
    before(j, key);
    str_appendf(j->out, "%" PRId64, value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
    before(j, key);
    str_appendf(j->out, "%" PRIu64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
    before(j, key);
    str_append(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    before(j, key);
    str_append(j->out, "null");
}
