/* SPDX-License-Identifier: MIT */
/* The pure parts of brig-mcp: lines of a client, output that is cut, and the table of tools. */
#include <string.h>

#include "base/cleanup.h"
#include "mcp/lines.h"
#include "mcp/session.h"
#include "rpc/excerpt.h"
#include "tap.h"

/* ---- Lines ---- */

/* All lines of a text that arrives in pieces, each in brackets. */
static const char *read_lines(const char *text, size_t piece, struct str *out)
{
    struct lines lines = {0};
    const char *line;
    size_t length, size = strlen(text);
    out->length = 0;
    str_append(out, "");
    for (size_t at = 0; at < size; at += piece) {
        lines_add(&lines, text + at, size - at < piece ? size - at : piece);
        while (lines_next(&lines, &line, &length) == LINES_LINE) {
            str_append_char(out, '[');
            str_append_bytes(out, line, length);
            str_append_char(out, ']');
        }
    }
    lines_done(&lines);
    return out->data;
}

static void test_lines(void)
{
    autostr struct str out = {0};
    for (size_t piece = 1; piece < 12; piece++)
        tap_is_str(read_lines("one\n\ntwo\r\nth\rree\nrest", piece, &out), "[one][][two][th\rree]",
                   "lines are the same in pieces of %zu", piece);
}

/* The results for a line of `length` bytes and a short one, as letters, in pieces of a size. */
static const char *read_long(size_t length, size_t piece, char results[static 16])
{
    struct lines lines = {0};
    autofree char *text = malloc(length + 4);
    const char *line;
    size_t size, count = 0;
    enum lines_result found;
    memset(text, 'x', length);
    memcpy(text + length, "\nab\n", 4);
    for (size_t at = 0; at < length + 4; at += piece) {
        size_t left = length + 4 - at;
        lines_add(&lines, text + at, left < piece ? left : piece);
        while ((found = lines_next(&lines, &line, &size)) != LINES_NONE && count < 15)
            results[count++] = found == LINES_LONG ? 'L' : size == length ? '=' : '.';
    }
    results[count] = '\0';
    lines_done(&lines);
    return results;
}

static void test_long_lines(void)
{
    char results[16];
    const size_t pieces[] = {65536, 1000003, LINES_LENGTH_MAX * 3};
    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
        tap_is_str(read_long(LINES_LENGTH_MAX, pieces[i], results), "=.",
                   "a line of the greatest length is read, in pieces of %zu", pieces[i]);
        tap_is_str(read_long(LINES_LENGTH_MAX + 1, pieces[i], results), "L.",
                   "a longer one is reported, and the next is read");
        tap_is_str(read_long(LINES_LENGTH_MAX * 2 + 7, pieces[i], results), "L.",
                   "a much longer one is reported once");
    }
}

/* ---- Captures ---- */

static const char *capture_of(const char *text, size_t max, size_t piece, struct str *out)
{
    struct excerpt capture = {.max = max};
    size_t size = strlen(text);
    out->length = 0;
    str_append(out, "");
    for (size_t at = 0; at < size; at += piece)
        excerpt_add(&capture, text + at, size - at < piece ? size - at : piece);
    excerpt_print(&capture, out);
    excerpt_done(&capture);
    return out->data;
}

static void test_captures(void)
{
    autostr struct str out = {0};
    for (size_t piece = 1; piece < 25; piece += 3) {
        tap_is_str(capture_of("0123456789", 10, piece, &out), "0123456789",
                   "an output that fits is whole, in pieces of %zu", piece);
        tap_is_str(capture_of("0123456789a", 10, piece, &out),
                   "01234\n[... 1 bytes are left out here ...]\n6789a", "one byte more is cut");
        tap_is_str(capture_of("0123456789012345678901234567890123456789", 10, piece, &out),
                   "01234\n[... 30 bytes are left out here ...]\n56789", "as is a long output");
        tap_is_str(capture_of("aaa\u20ac\u20ac\u20ac\u20ac\u20acaaa", 10, piece, &out),
                   "aaa\n[... 15 bytes are left out here ...]\naaa", "characters are not divided");
    }
    tap_is_str(capture_of("a\xff\xc3", 100, 9, &out), "a\ufffd\ufffd",
               "bytes that are not UTF-8 are replaced");
}

/* ---- Tools ---- */

static void test_tools(void)
{
    struct session session = {.open_world = true};
    json_t *tool;
    size_t index;
    tap_ok(tools_load(&session), "the list of tools can be read");
    json_array_foreach(session.tools, index, tool)
    {
        const char *name = json_string_value(json_object_get(tool, "name"));
        tap_ok(tools_find(name), "%s is a tool", name);
        tap_ok(json_is_object(json_object_get(tool, "outputSchema")), "and has an output schema");
    }
    tap_ok(!tools_find("run"), "another name is none");
    json_decref(session.tools);
}

int main(void)
{
    test_lines();
    test_long_lines();
    test_captures();
    test_tools();
    return tap_done();
}
