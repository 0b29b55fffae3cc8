/* SPDX-License-Identifier: MIT */
/* Writing JSON into a struct str. */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/str.h"

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
    /* Formatting each escape with printf would take seconds for millions of characters. */
    static const char digits[] = "0123456789abcdef";
    const char escape[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    if (c < 0x20 || c == 0x7f)
        str_append_bytes(out, escape, sizeof escape);
    else
        str_append_char(out, (char)c);
}

static void append_unit(struct str *out, unsigned unit)
{
    static const char digits[] = "0123456789abcdef";
    const char escape[] = {'\\',
                           'u',
                           digits[unit >> 12 & 15],
                           digits[unit >> 8 & 15],
                           digits[unit >> 4 & 15],
                           digits[unit & 15]};
    str_append_bytes(out, escape, sizeof escape);
}

/* A terminal obeys some characters, and others change how the rest is shown: they are escaped. */
static void append_other(struct str *out, const unsigned char *bytes, size_t length)
{
    if (!utf8_is_unseen(bytes, length)) {
        str_append_bytes(out, bytes, length);
        return;
    }
    unsigned point = bytes[0] & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++)
        point = point << 6 | (bytes[i] & 0x3fU);
    if (point >= 0x10000) {
        append_unit(out, 0xd800 + ((point - 0x10000) >> 10));
        point = 0xdc00 + ((point - 0x10000) & 0x3ff);
    }
    append_unit(out, point);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void append_quoted(struct str *out, const unsigned char *bytes, size_t length)
{
    str_append_char(out, '"');
    for (size_t i = 0; i < length;) {
        size_t plain = i;
        while (plain < length && is_plain(bytes[plain]))
            plain++;
        str_append_bytes(out, bytes + i, plain - i);
        i = plain;
        if (i == length)
            break;
        size_t n = utf8_length(bytes + i, length - i);
        if (n == 1)
            append_ascii(out, bytes[i]);
        else if (n > 1)
            append_other(out, bytes + i, n);
        else
            str_append(out, "\xef\xbf\xbd");
        i += n > 0 ? n : 1;
    }
    str_append_char(out, '"');
}

/* Writes the comma and the key that precede a value. */
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

void json_text(struct json *j, const char *key, const char *text)
{
    if (text)
        json_bytes(j, key, text, strlen(text));
    else
        json_nothing(j, key);
}

void json_int(struct json *j, const char *key, int64_t value)
{
    before(j, key);
    str_appendf(j->out, "%" PRId64, value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
    before(j, key);
    str_append(j->out, str_number(value).text);
}

void json_bool(struct json *j, const char *key, bool value)
{
    before(j, key);
    str_append(j->out, value ? "true" : "false");
}

void json_nothing(struct json *j, const char *key)
{
    before(j, key);
    str_append(j->out, "null");
}

void json_time(struct json *j, const char *key, int64_t ns)
{
    char text[40];
    struct tm tm;
    time_t seconds = (time_t)(ns / CLOCK_SECOND_NS);
    if (ns <= 0 || !gmtime_r(&seconds, &tm)) {
        json_nothing(j, key);
        return;
    }
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + length, sizeof text - length, ".%03dZ",
                   (int)(ns % CLOCK_SECOND_NS / 1000000));
    json_text(j, key, text);
}
