/* SPDX-License-Identifier: MIT */
#include "review/shown.h"

#include <langinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"

bool shown_has_unicode(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Characters that a terminal does not show, or that change the order of others. */
static bool is_deceptive(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00ad, 0x00ad},    /* soft hyphen */
        {0x034f, 0x034f},    /* combining grapheme joiner */
        {0x061c, 0x061c},    /* Arabic letter mark */
        {0x115f, 0x1160},    /* Hangul fillers */
        {0x17b4, 0x17b5},    /* invisible Khmer vowels */
        {0x180b, 0x180f},    /* Mongolian selectors and separator */
        {0x200b, 0x200f},    /* zero-width characters, direction marks */
        {0x2028, 0x202e},    /* separators, direction embeddings and overrides */
        {0x2060, 0x206f},    /* invisible operators, direction isolates */
        {0x3164, 0x3164},    /* Hangul filler */
        {0xe000, 0xf8ff},    /* private use */
        {0xfe00, 0xfe0f},    /* variation selectors */
        {0xfeff, 0xfeff},    /* byte order mark */
        {0xfff0, 0xfffb},    /* interlinear annotation */
        {0xe0000, 0x10ffff}, /* tags, variation selectors, private use */
    };
    for (size_t i = 0; i < ARRAY_LENGTH(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

static void set_escape(struct shown *shown, const char *text)
{
    shown->count = 0;
    shown->escaped = true;
    for (; *text && shown->count < SHOWN_MAX; text++)
        shown->text[shown->count++] = (wchar_t)*text;
    shown->width = shown->count;
}

static void set_char(struct shown *shown, uint32_t code, int width)
{
    shown->text[0] = (wchar_t)code;
    shown->count = 1;
    shown->width = width;
    shown->escaped = false;
}

size_t shown_next(const char *bytes, size_t left, bool unicode, struct shown *ret_shown)
{
    const unsigned char *p = (const unsigned char *)bytes;
    char text[SHOWN_MAX + 1];
    if (p[0] >= 0x20 && p[0] < 0x7f) {
        set_char(ret_shown, p[0], 1);
        return 1;
    }
    size_t size = utf8_length(p, left);
    if (size < 2) {
        static const char named[] = "\nn\tt\rr";
        const char *found = p[0] ? strchr(named, p[0]) : NULL;
        if (found && found[0] != 'n' && found[0] != 't' && found[0] != 'r')
            (void)snprintf(text, sizeof text, "\\%c", found[1]);
        else
            (void)snprintf(text, sizeof text, "\\x%02x", p[0]);
        set_escape(ret_shown, text);
        return 1;
    }
    uint32_t code = utf8_decode(p, size);
    int width = unicode ? wcwidth((wchar_t)code) : -1;
    if (width >= 0 && width <= 2 && !is_deceptive(code)) {
        set_char(ret_shown, code, width);
        return size;
    }
    (void)snprintf(text, sizeof text, "\\u{%x}", code);
    set_escape(ret_shown, text);
    return size;
}

void shown_append(struct str *out, const char *bytes, size_t length, bool unicode)
{
    for (size_t at = 0; at < length;) {
        struct shown shown;
        size_t size = shown_next(bytes + at, length - at, unicode, &shown);
        if (!shown.escaped)
            str_append_bytes(out, bytes + at, size);
        for (int i = 0; shown.escaped && i < shown.count; i++)
            str_append_char(out, (char)shown.text[i]);
        at += size;
    }
}
