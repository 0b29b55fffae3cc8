/* SPDX-License-Identifier: MIT */
#include "review/json_reader.h"

#include <string.h>

#include "base/encode.h"

#define REPLACEMENT 0xfffdU

enum state {
    STATE_VALUE,       /* a value must follow */
    STATE_FIRST_VALUE, /* a value or ']' */
    STATE_FIRST_KEY,   /* a key or '}' */
    STATE_KEY,
    STATE_COLON,
    STATE_AFTER, /* a comma or the end of an object or array */
    STATE_END,   /* only blanks may follow */
    STATE_STRING,
    STATE_ESCAPE,
    STATE_HEX,
    STATE_WORD, /* a number, true, false or null */
};

void json_reader_init(struct json_reader *reader, json_visit visit, void *context)
{
    *reader = (struct json_reader){.visit = visit, .context = context, .state = STATE_VALUE};
}

void json_reader_done(struct json_reader *reader)
{
    str_done(&reader->text);
}

bool json_reader_complete(const struct json_reader *reader)
{
    return !reader->failed && reader->state == STATE_END;
}

static bool in_array(const struct json_reader *reader)
{
    return (reader->arrays >> (reader->depth - 1)) & 1;
}

static bool report(struct json_reader *reader, enum json_event event)
{
    bool has_text = event == JSON_KEY || event == JSON_STRING || event == JSON_NUMBER;
    const char *text = has_text && reader->text.data ? reader->text.data : "";
    return reader->visit(reader->context, event, text, has_text ? reader->text.length : 0);
}

/* After a value. */
static void leave_value(struct json_reader *reader)
{
    reader->state = reader->depth > 0 ? STATE_AFTER : STATE_END;
}

static bool open_value(struct json_reader *reader, bool array)
{
    if (reader->depth == JSON_DEPTH_MAX)
        return false;
    uint32_t bit = (uint32_t)1 << reader->depth;
    reader->arrays = array ? reader->arrays | bit : reader->arrays & ~bit;
    reader->depth++;
    reader->state = array ? STATE_FIRST_VALUE : STATE_FIRST_KEY;
    return report(reader, array ? JSON_ARRAY : JSON_OBJECT);
}

static bool close_value(struct json_reader *reader, bool array)
{
    if (reader->depth == 0 || in_array(reader) != array)
        return false;
    reader->depth--;
    leave_value(reader);
    return report(reader, array ? JSON_ARRAY_END : JSON_OBJECT_END);
}

static void clear_text(struct json_reader *reader)
{
    reader->text.length = 0;
    reader->high = 0;
    if (reader->text.data)
        reader->text.data[0] = '\0';
}

static bool begin_value(struct json_reader *reader, char c)
{
    if (c == '{' || c == '[')
        return open_value(reader, c == '[');
    clear_text(reader);
    reader->is_key = false;
    if (c == '"') {
        reader->state = STATE_STRING;
        return true;
    }
    if (c != '-' && !(c >= '0' && c <= '9') && c != 't' && c != 'f' && c != 'n')
        return false;
    reader->state = STATE_WORD;
    str_append_char(&reader->text, c);
    return !reader->text.failed;
}

static bool begin_key(struct json_reader *reader, char c)
{
    clear_text(reader);
    reader->is_key = true;
    reader->state = STATE_STRING;
    return c == '"';
}

static void append_code(struct str *text, unsigned code)
{
    char bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(first[length] | code);
    str_append_bytes(text, bytes, length);
}

/* A first half of a pair that no second half follows. */
static void flush_high(struct json_reader *reader)
{
    if (reader->high)
        append_code(&reader->text, REPLACEMENT);
    reader->high = 0;
}

static void take_code(struct json_reader *reader)
{
    unsigned code = reader->code;
    bool low = code >= 0xdc00 && code < 0xe000;
    if (low && reader->high) {
        append_code(&reader->text, 0x10000 + ((reader->high - 0xd800) << 10) + (code - 0xdc00));
        reader->high = 0;
        return;
    }
    flush_high(reader);
    if (code >= 0xd800 && code < 0xdc00)
        reader->high = code;
    else
        append_code(&reader->text, low || code == 0 ? REPLACEMENT : code);
}

static bool end_string(struct json_reader *reader)
{
    flush_high(reader);
    if (reader->text.failed)
        return false;
    if (reader->is_key) {
        reader->state = STATE_COLON;
        return report(reader, JSON_KEY);
    }
    leave_value(reader);
    return report(reader, JSON_STRING);
}

static bool take_in_string(struct json_reader *reader, char c)
{
    if (reader->text.length >= JSON_TEXT_MAX || (unsigned char)c < 0x20)
        return false;
    if (c == '"')
        return end_string(reader);
    if (c == '\\') {
        reader->state = STATE_ESCAPE;
        return true;
    }
    flush_high(reader);
    str_append_char(&reader->text, c);
    return !reader->text.failed;
}

static bool take_escape(struct json_reader *reader, char c)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    reader->code = reader->digits = 0;
    reader->state = STATE_HEX;
    if (c == 'u')
        return true;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (!letter)
        return false;
    flush_high(reader);
    str_append_char(&reader->text, meanings[letter - letters]);
    reader->state = STATE_STRING;
    return !reader->text.failed;
}

static bool take_hex(struct json_reader *reader, char c)
{
    int value = hex_value(c);
    if (value < 0)
        return false;
    reader->code = reader->code * 16 + (unsigned)value;
    if (++reader->digits == 4) {
        take_code(reader);
        reader->state = STATE_STRING;
    }
    return !reader->text.failed;
}

static bool end_word(struct json_reader *reader)
{
    static const struct {
        const char *word;
        enum json_event event;
    } words[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};
    leave_value(reader);
    const char *text = reader->text.data;
    if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))
        return report(reader, JSON_NUMBER);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i].word) == 0)
            return report(reader, words[i].event);
    return false;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
           c == 'E';
}

/* After a value in an object or an array. */
static bool take_after(struct json_reader *reader, char c)
{
    if (c != ',')
        return (c == ']' || c == '}') && close_value(reader, c == ']');
    reader->state = in_array(reader) ? STATE_VALUE : STATE_KEY;
    return true;
}

/* A character between values. */
static bool take_between(struct json_reader *reader, char c)
{
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
        return true;
    switch ((enum state)reader->state) {
    case STATE_FIRST_VALUE:
        return c == ']' ? close_value(reader, true) : begin_value(reader, c);
    case STATE_VALUE:
        return begin_value(reader, c);
    case STATE_FIRST_KEY:
        return c == '}' ? close_value(reader, false) : begin_key(reader, c);
    case STATE_KEY:
        return begin_key(reader, c);
    case STATE_COLON:
        reader->state = STATE_VALUE;
        return c == ':';
    case STATE_AFTER:
        return take_after(reader, c);
    case STATE_END:
    case STATE_STRING:
    case STATE_ESCAPE:
    case STATE_HEX:
    case STATE_WORD:
        break;
    }
    return false;
}

static bool take(struct json_reader *reader, char c)
{
    if (reader->state == STATE_STRING)
        return take_in_string(reader, c);
    if (reader->state == STATE_ESCAPE)
        return take_escape(reader, c);
    if (reader->state == STATE_HEX)
        return take_hex(reader, c);
    if (reader->state == STATE_WORD) {
        if (is_word(c)) {
            str_append_char(&reader->text, c);
            return !reader->text.failed && reader->text.length < JSON_TEXT_MAX;
        }
        if (!end_word(reader))
            return false;
    }
    return take_between(reader, c);
}

bool json_reader_feed(struct json_reader *reader, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length && !reader->failed; i++)
        reader->failed = !take(reader, bytes[i]);
    return !reader->failed;
}
