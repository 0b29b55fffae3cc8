/* SPDX-License-Identifier: MIT */
#include "rpc/capture.h"

#include <string.h>

#include "base/encode.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define SEQUENCE_MAX 4             /* bytes of a character */

void capture_done(struct capture *capture)
{
    str_done(&capture->head);
    str_done(&capture->tail);
}

/* Drops the beginning of the tail, so that its last max / 2 bytes are left. */
static void shorten(struct capture *capture)
{
    struct str *tail = &capture->tail;
    size_t keep = capture->max / 2;
    if (tail->length <= keep)
        return;
    memmove(tail->data, tail->data + tail->length - keep, keep + 1);
    tail->length = keep;
}

void capture_add(struct capture *capture, const void *bytes, size_t length)
{
    const char *at = bytes;
    size_t half = capture->max / 2;
    size_t room = half - capture->head.length;
    size_t first = length < room ? length : room;
    capture->seen += length;
    str_append_bytes(&capture->head, at, first);
    at += first;
    length -= first;
    if (length > half) {
        at += length - half;
        length = half;
    }
    if (capture->tail.length + length > capture->max)
        shorten(capture);
    str_append_bytes(&capture->tail, at, length);
}

bool capture_was_cut(const struct capture *capture)
{
    return capture->seen > capture->head.length + capture->tail.length ||
           capture->tail.length > capture->max / 2;
}

void capture_append_clean(struct str *out, const char *bytes, size_t length)
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

/* The length without an incomplete character at the end. */
static size_t whole_length(const struct str *text)
{
    const unsigned char *bytes = (const unsigned char *)text->data;
    for (size_t back = 1; back < SEQUENCE_MAX && back <= text->length; back++)
        if (bytes[text->length - back] >= 0xc0)
            return utf8_is_beginning(bytes + text->length - back, back) ? text->length - back
                                                                        : text->length;
    return text->length;
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

void capture_print(const struct capture *capture, struct str *out)
{
    const struct str *head = &capture->head, *tail = &capture->tail;
    if (!capture_was_cut(capture)) {
        autostr struct str whole = {0};
        str_append_bytes(&whole, head->data, head->length);
        str_append_bytes(&whole, tail->data, tail->length);
        capture_append_clean(out, whole.data, whole.length);
        out->failed = out->failed || whole.failed;
        return;
    }
    size_t keep = tail->length < capture->max / 2 ? tail->length : capture->max / 2;
    const char *end = tail->data + tail->length - keep;
    size_t part = part_length(end, keep);
    size_t first = whole_length(head);
    capture_append_clean(out, head->data, first);
    str_appendf(out, "\n[... %llu bytes are left out here ...]\n",
                (unsigned long long)(capture->seen - first - (keep - part)));
    capture_append_clean(out, end + part, keep - part);
}
