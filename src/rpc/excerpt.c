/* SPDX-License-Identifier: MIT */
#include "rpc/excerpt.h"

#include <string.h>

#include "base/encode.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define SEQUENCE_MAX 4             /* bytes of a character */

void excerpt_done(struct excerpt *excerpt)
{
    str_done(&excerpt->head);
    str_done(&excerpt->tail);
}

/* Drops the beginning of the tail, so that its last max / 2 bytes are left. */
static void shorten(struct excerpt *excerpt)
{
    struct str *tail = &excerpt->tail;
    size_t keep = excerpt->max / 2;
    if (tail->length <= keep)
        return;
    memmove(tail->data, tail->data + tail->length - keep, keep + 1);
    tail->length = keep;
}

void excerpt_add(struct excerpt *excerpt, const void *bytes, size_t length)
{
    const char *at = bytes;
    size_t half = excerpt->max / 2;
    size_t room = half - excerpt->head.length;
    size_t first = length < room ? length : room;
    excerpt->seen += length;
    str_append_bytes(&excerpt->head, at, first);
    at += first;
    length -= first;
    if (length > half) {
        at += length - half;
        length = half;
    }
    if (excerpt->tail.length + length > excerpt->max)
        shorten(excerpt);
    str_append_bytes(&excerpt->tail, at, length);
}

bool excerpt_was_cut(const struct excerpt *excerpt)
{
    return excerpt->seen > excerpt->head.length + excerpt->tail.length ||
           excerpt->tail.length > excerpt->max / 2;
}

void excerpt_append_clean(struct str *out, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t plain = at;
        size_t size;
        while (plain < length && bytes[plain] != '\0' &&
               (size = utf8_length((const unsigned char *)bytes + plain, length - plain)) > 0)
            plain += size;
        str_append_bytes(out, bytes + at, plain - at);
        if (plain < length)
            str_append(out, REPLACEMENT);
        at = plain + 1;
    }
}

/* The number of bytes at the beginning that belong to a character before. */
static size_t part_length(const char *text, size_t length)
{
    size_t count = 0;
    while (count < length && count < SEQUENCE_MAX - 1 &&
           ((unsigned char)text[count] & 0xc0) == 0x80)
        count++;
    return count;
}

void excerpt_print(const struct excerpt *excerpt, struct str *out)
{
    const struct str *head = &excerpt->head, *tail = &excerpt->tail;
    if (!excerpt_was_cut(excerpt)) {
        autostr struct str whole = {0};
        str_append_bytes(&whole, head->data, head->length);
        str_append_bytes(&whole, tail->data, tail->length);
        excerpt_append_clean(out, whole.data, whole.length);
        out->failed = out->failed || whole.failed;
        return;
    }
    size_t keep = tail->length < excerpt->max / 2 ? tail->length : excerpt->max / 2;
    const char *end = tail->data + tail->length - keep;
    size_t part = part_length(end, keep);
    size_t first = utf8_cut(head->data, head->length);
    excerpt_append_clean(out, head->data, first);
    str_appendf(out, "\n[... %llu bytes are left out here ...]\n",
                (unsigned long long)(excerpt->seen - first - (keep - part)));
    excerpt_append_clean(out, end + part, keep - part);
}
