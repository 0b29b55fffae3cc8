/* SPDX-License-Identifier: MIT */
/* A growing string with a failure flag, and string helpers. */
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"

#define STR_CAPACITY_MIN ((size_t)64)

void str_init(struct str *s)
{
    *s = (struct str){0};
}

void str_done(struct str *s)
{
    free(s->data);
    str_init(s);
}

/* Makes room for `more` bytes and the NUL after them. */
static bool reserve(struct str *s, size_t more)
{
    s->failed = s->failed || more > STR_LENGTH_MAX - s->length;
    if (s->failed || s->length + more < s->capacity)
        return !s->failed;
    size_t capacity = s->capacity < STR_CAPACITY_MIN ? STR_CAPACITY_MIN : s->capacity;
    while (capacity <= s->length + more)
        capacity *= 2;
    char *data = realloc(s->data, capacity);
    s->failed = !data;
    if (s->failed)
        return false;
    s->data = data;
    s->capacity = capacity;
    return true;
}

void str_reserve(struct str *s, size_t more)
{
    if (reserve(s, more))
        s->data[s->length] = '\0';
}

char *str_extend(struct str *s, size_t length)
{
    if (!reserve(s, length) || !s->data)
        return NULL;
    char *added = s->data + s->length;
    s->length += length;
    added[length] = '\0';
    return added;
}

void str_append_bytes(struct str *s, const void *bytes, size_t length)
{
    char *added = str_extend(s, length);
    if (added && length > 0)
        memcpy(added, bytes, length);
}

void str_drop_done(struct str *s, size_t *done)
{
    if (*done == 0 || s->failed || *done < s->length - *done)
        return;
    s->length -= *done;
    memmove(s->data, s->data + *done, s->length + 1); /* with the NUL */
    *done = 0;
}

void str_append(struct str *s, const char *text)
{
    str_append_bytes(s, text, strlen(text));
}

void str_append_all(struct str *s, const char *const *texts)
{
    for (; *texts; texts++)
        str_append(s, *texts);
}

void str_append_char(struct str *s, char c)
{
    str_append_bytes(s, &c, 1);
}

void str_vappendf(struct str *s, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    s->failed = s->failed || length < 0;
    if (reserve(s, length < 0 ? 0 : (size_t)length)) {
        (void)vsnprintf(s->data + s->length, (size_t)length + 1, format, again);
        s->length += (size_t)length;
    }
    va_end(again);
}

void str_appendf(struct str *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    str_vappendf(s, format, args);
    va_end(args);
}

int str_take(struct str *s, char **ret_text, struct brig_error *err)
{
    if (!s->data)
        str_append_bytes(s, "", 0);
    if (s->failed)
        return brig_fail_nomem(err);
    *ret_text = s->data;
    str_init(s);
    return 0;
}

int str_copy(const char *text, char **ret_copy, struct brig_error *err)
{
    char *copy = NULL;
    if (text) {
        copy = strdup(text);
        if (!copy)
            return brig_fail_nomem(err);
    }
    *ret_copy = copy;
    return 0;
}

int str_make_all(char **ret_text, struct brig_error *err, const char *const *texts)
{
    autostr struct str text = {0};
    str_append_all(&text, texts);
    return str_take(&text, ret_text, err);
}

bool str_equal(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

bool str_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

void str_list_add(struct str *list, const char *text)
{
    str_append_bytes(list, text, strlen(text) + 1);
}

bool str_list_has(const struct str *list, const char *text)
{
    for (const char *at = NULL; (at = str_list_next(list, at));)
        if (strcmp(at, text) == 0)
            return true;
    return false;
}

const char *str_list_next(const struct str *list, const char *at)
{
    const char *next = at ? at + strlen(at) + 1 : list->data;
    return next && next < list->data + list->length ? next : NULL;
}

bool str_fill_all(char *to, size_t size, const char *const *texts)
{
    size_t used = 0;
    bool fits = true;
    for (; *texts && fits; texts++) {
        size_t length = strlen(*texts), room = size - 1 - used;
        fits = length <= room;
        memcpy(to + used, *texts, fits ? length : room);
        used += fits ? length : room;
    }
    to[used] = '\0';
    return fits;
}

struct str_number str_number(uint64_t value)
{
    struct str_number number;
    (void)snprintf(number.text, sizeof number.text, "%" PRIu64, value);
    return number;
}

struct str_size str_size(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct str_size size;
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    bool whole = value == (double)(uint64_t)value;
    (void)snprintf(size.text, sizeof size.text, whole ? "%.0f %s" : "%.1f %s", value,
                   bytes == 1 ? "byte" : units[unit]);
    return size;
}

void str_append_count(struct str *s, uint64_t count, const char *noun)
{
    str_concat(s, str_number(count).text, " ", noun, count == 1 ? "" : "s");
}

void str_join(struct str *s, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        str_concat(s, i > 0 ? " " : "", words[i]);
}

/* Writes one byte, which is not part of a longer character, in the form of str_shown(). Returns the length. */
static size_t show_char(unsigned char c, char out[static 5])
{
    if (c >= 0x20 && c < 0x7f && c != '\\') {
        out[0] = (char)c;
        return 1;
    }
    static const char named[] = "\nn\tt\rr\\\\";
    for (size_t i = 0; i + 1 < sizeof named; i += 2) {
        if (c == (unsigned char)named[i]) {
            out[0] = '\\';
            out[1] = named[i + 1];
            return 2;
        }
    }
    (void)snprintf(out, 5, "\\x%02x", c);
    return 4;
}

#define CHARACTER_BYTES_MAX 4 /* of UTF-8 */

/* Writes the next character, of *ret_size bytes, in the form of str_shown(). Returns the length. */
static size_t show_next(const unsigned char *p, char out[static 5], size_t *ret_size)
{
    size_t size = utf8_length(p, strnlen((const char *)p, CHARACTER_BYTES_MAX));
    bool plain = size > 1 && !utf8_is_unseen(p, size);
    *ret_size = plain ? size : 1;
    if (!plain)
        return show_char(p[0], out);
    memcpy(out, p, size);
    return size;
}

struct str_shown str_shown(const char *text)
{
    static const char ellipsis[] = "…";
    struct str_shown shown;
    size_t used = 0;
    size_t cut = 0; /* the last place where the ellipsis still fits and no character is split */
    for (const char *p = text ? text : "(null)"; *p;) {
        char piece[5];
        size_t size, length = show_next((const unsigned char *)p, piece, &size);
        if (used + sizeof ellipsis <= sizeof shown.text)
            cut = used;
        if (used + length + 1 > sizeof shown.text) {
            memcpy(shown.text + cut, ellipsis, sizeof ellipsis);
            return shown;
        }
        memcpy(shown.text + used, piece, length);
        used += length;
        p += size;
    }
    shown.text[used] = '\0';
    return shown;
}

void str_append_shown(struct str *s, const char *bytes, size_t length, const char *plain)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < length;) {
        char piece[5];
        size_t size = utf8_length(p + i, length - i);
        if ((size > 1 && !utf8_is_unseen(p + i, size)) || (p[i] && strchr(plain, p[i]))) {
            str_append_bytes(s, p + i, size);
            i += size;
            continue;
        }
        str_append_bytes(s, piece, show_char(p[i], piece));
        i++;
    }
}

void str_append_word(struct str *s, const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "%+,-./:=@_";
    autostr struct str quoted = {0};
    if (*text && text[strspn(text, safe)] == '\0') {
        str_append(s, text);
        return;
    }
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "'");
        str_append_shown(&quoted, at, length, "");
        at += length;
        if (*at == '\0')
            break;
        str_append(&quoted, "\\'");
    }
    const char *inner = quoted.data ? quoted.data : "";
    s->failed = s->failed || quoted.failed;
    str_concat(s, strcmp(inner, text) == 0 ? "'" : "$'", inner, "'");
}
