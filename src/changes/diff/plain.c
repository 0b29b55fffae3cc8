/* SPDX-License-Identifier: MIT */
/* Finds the characters that must not reach a terminal. */
#include "changes/diff/plain.h"

#include <stdint.h>
#include <string.h>

#include "base/encode.h"
#include "base/str.h"

#define MARK "<U+"
#define MARK_LENGTH 3
#define CHARACTER_MAX 4 /* bytes in UTF-8 */

bool plain_is_binary(const void *bytes, size_t length)
{
    size_t looked = length < PLAIN_BINARY_BYTES ? length : PLAIN_BINARY_BYTES;
    return looked > 0 && memchr(bytes, 0, looked);
}

/* C0 and C1 control characters, and those that set the direction of text. A carriage return hides what is before it, unless
 * it ends the line. */
static bool is_hazard(uint32_t c, const unsigned char *next, size_t left)
{
    if (c == '\r')
        return left > 0 && *next != '\n';
    if (c < 0x20)
        return c != '\t' && c != '\n';
    return (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t plain_append(struct str *out, const char *bytes, size_t length, bool last)
{
    size_t at = 0, plain = 0; /* bytes from `plain` to `at` are appended unchanged */
    while (at < length) {
        const unsigned char *p = (const unsigned char *)bytes + at;
        size_t left = length - at;
        if (!last && left < CHARACTER_MAX)
            break;
        size_t used = *p < 0x80 ? 1 : utf8_length(p, left);
        uint32_t c = used > 0 ? utf8_decode(p, used) : *p;
        bool mark = left >= MARK_LENGTH && memcmp(p, MARK, MARK_LENGTH) == 0;
        bool hazard = used > 0 ? is_hazard(c, p + used, left - used) : c < 0xa0;
        if (mark || hazard) {
            str_append_bytes(out, bytes + plain, at - plain);
            if (mark)
                str_append(out, "<<");
            else
                str_appendf(out, used > 0 ? MARK "%04X>" : MARK "%02X>", (unsigned)c);
            plain = at + (used > 0 ? used : 1);
        }
        at += used > 0 ? used : 1;
    }
    str_append_bytes(out, bytes + plain, at - plain);
    return at;
}

bool plain_is_plain(const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        const unsigned char *p = (const unsigned char *)bytes + at;
        size_t left = length - at, used = *p < 0x80 ? 1 : utf8_length(p, left);
        if (used > 0 ? is_hazard(utf8_decode(p, used), p + used, left - used) : *p < 0xa0)
            return false;
        at += used > 0 ? used : 1;
    }
    return true;
}

static bool is_unusual(unsigned char c)
{
    return c < ' ' || c >= 0x7f || c == '"' || c == '\\';
}

void plain_append_name(struct str *out, const char *path)
{
    static const char letters[] = "abtnvfr"; /* from 7 on */
    bool quoted = false;
    for (const char *at = path; *at && !quoted; at++)
        quoted = is_unusual((unsigned char)*at);
    str_append(out, quoted ? "\"" : "");
    for (const char *at = path; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\')
            str_appendf(out, "\\%c", c);
        else if (c >= '\a' && c <= '\r')
            str_appendf(out, "\\%c", letters[c - '\a']);
        else if (is_unusual(c))
            str_appendf(out, "\\%03o", c);
        else
            str_append_char(out, *at);
    }
    str_append(out, quoted ? "\"" : "");
}
