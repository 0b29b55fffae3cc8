/* SPDX-License-Identifier: MIT */
/* Texts as Judge0 reads and writes them. */
#include "server/api/judge0_text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"

#define LINE_BYTES 45 /* 60 characters of base64 */

/* ---- base64 ---- */

void judge0_base64_encode(struct str *out, const void *bytes, size_t length)
{
    const char *at = bytes;
    for (size_t part; length > 0; at += part, length -= part) {
        part = length < LINE_BYTES ? length : LINE_BYTES;
        base64_append(out, at, part);
        str_append_char(out, '\n');
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t judge0_base64_decode(const char *text, size_t length, char *bytes)
{
    unsigned group = 0;
    size_t digits = 0, written = 0;
    for (size_t i = 0; i < length; i++) {
        int value = value_of(text[i]);
        if (text[i] == '=' && digits >= 2)
            break;
        if (value < 0)
            continue;
        group = group << 6 | (unsigned)value;
        if (++digits < 4)
            continue;
        bytes[written++] = (char)(group >> 16);
        bytes[written++] = (char)(group >> 8);
        bytes[written++] = (char)group;
        digits = group = 0;
    }
    if (digits >= 2)
        bytes[written++] = (char)(digits == 2 ? group >> 4 : group >> 10);
    if (digits == 3)
        bytes[written++] = (char)(group >> 2);
    return written;
}

/* ---- words ---- */

struct words {
    const char *at, *end;
    struct str word;
    bool begun;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

/* Copies a quoted part up to its quote, or to the end. */
static void take_quoted(struct words *words, char quote)
{
    for (words->at++; words->at < words->end && *words->at != quote; words->at++) {
        bool escaped = quote == '"' && *words->at == '\\' && words->at + 1 < words->end &&
                       strchr("\"\\", words->at[1]);
        words->at += escaped;
        if (*words->at)
            str_append_char(&words->word, *words->at);
    }
    words->at += words->at < words->end;
}

/* Reads the next word. Returns whether there is one. */
static bool take_word(struct words *words)
{
    words->begun = false;
    words->word.length = 0;
    while (words->at < words->end && is_blank(*words->at))
        words->at++;
    if (words->at < words->end && *words->at == '#')
        words->at = words->end;
    while (words->at < words->end && !is_blank(*words->at)) {
        char c = *words->at;
        words->begun = true;
        if (c == '\'' || c == '"') {
            take_quoted(words, c);
            continue;
        }
        words->at += c == '\\' && words->at + 1 < words->end;
        if (*words->at)
            str_append_char(&words->word, *words->at);
        words->at++;
    }
    return words->begun;
}

bool judge0_words(const char *text, size_t length, struct arena *arena, size_t max,
                  const char ***ret_words, size_t *ret_count)
{
    autostr struct str clean = {0};
    const char **list = arena_alloc(arena, (max + 1) * sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        if (!text[i] || !strchr("$&;<>|`", text[i]))
            str_append_char(&clean, text[i]);
    struct words words = {.at = clean.data, .end = clean.data + clean.length};
    bool fits = list && !clean.failed;
    while (fits && clean.data && take_word(&words)) {
        fits = count < max && !words.word.failed;
        if (fits)
            list[count++] =
                arena_strndup(arena, words.word.data ? words.word.data : "", words.word.length);
    }
    str_done(&words.word);
    *ret_words = list;
    *ret_count = count;
    return fits && !arena->failed;
}

/* ---- comparing ---- */

/* As Ruby's rstrip. */
static bool is_stripped(char c)
{
    return c == '\0' || (c >= '\t' && c <= '\r') || c == ' ';
}

static size_t stripped(const char *text, size_t length)
{
    while (length > 0 && is_stripped(text[length - 1]))
        length--;
    return length;
}

/* Takes the next line, without its end. */
static size_t take_line(const char **text, size_t *left, const char **ret_line)
{
    const char *end = memchr(*text, '\n', *left);
    size_t length = end ? (size_t)(end - *text) : *left;
    *ret_line = *text;
    *text += length + (end != NULL);
    *left -= length + (end != NULL);
    return stripped(*ret_line, length);
}

bool judge0_is_same(const char *one, size_t one_length, const char *two, size_t two_length)
{
    one_length = stripped(one, one_length);
    two_length = stripped(two, two_length);
    while (one_length > 0 && two_length > 0) {
        const char *a, *b;
        size_t a_length = take_line(&one, &one_length, &a);
        size_t b_length = take_line(&two, &two_length, &b);
        if (a_length != b_length || memcmp(a, b, a_length) != 0)
            return false;
    }
    return one_length == two_length;
}

/* ---- forms ---- */

static json_t *form_value(const char *text, size_t length)
{
    autostr struct str plain = {0}, decoded = {0};
    str_append_bytes(&plain, text, length);
    for (size_t i = 0; i < plain.length; i++)
        if (plain.data[i] == '+')
            plain.data[i] = ' ';
    percent_decode(&decoded, plain.data ? plain.data : "", plain.length);
    if (plain.failed || decoded.failed)
        return NULL;
    return json_stringn(decoded.data ? decoded.data : "", decoded.length);
}

json_t *judge0_form(const char *text, size_t length, size_t max)
{
    const char *end = text + length;
    json_t *form = json_object();
    for (size_t count = 0; form && text < end; count++) {
        const char *next = memchr(text, '&', (size_t)(end - text));
        size_t part = next ? (size_t)(next - text) : (size_t)(end - text);
        const char *equals = memchr(text, '=', part);
        size_t name_length = equals ? (size_t)(equals - text) : part;
        json_t *name = form_value(text, name_length);
        json_t *value = equals ? form_value(equals + 1, part - name_length - 1) : json_null();
        bool good = name && value && count < max &&
                    strlen(json_string_value(name)) == json_string_length(name) &&
                    json_object_set(form, json_string_value(name), value) == 0;
        json_decref(name);
        json_decref(value);
        if (!good) {
            json_decref(form);
            return NULL;
        }
        text += part + 1;
    }
    return form;
}
