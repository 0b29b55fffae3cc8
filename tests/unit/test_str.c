/* SPDX-License-Identifier: MIT */
/* The growing string and its helpers. */
#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"
#include "tap.h"

static void grows(void)
{
    autostr struct str s = {0};
    for (int i = 0; i < 1000; i++)
        str_appendf(&s, "%d,", i);
    str_append(&s, "end");
    str_append_char(&s, '!');
    str_append_bytes(&s, "a\0b", 3);
    tap_ok(!s.failed, "appending works");
    tap_is_int(s.length, 10 * 2 + 90 * 3 + 900 * 4 + 3 + 1 + 3, "every byte is counted");
    tap_ok(strncmp(s.data, "0,1,2,", 6) == 0, "the beginning survives growing");
    tap_is_int(s.data[s.length], 0, "the text is NUL-terminated");
    tap_is_int(s.data[s.length - 2], 0, "a NUL in the middle is a byte as any");
}

static void puts_together(void)
{
    char text[6] = "xxxxx";
    autostr struct str s = {0};
    str_concat(&s, "a", "", str_number(0).text, str_number(UINT64_MAX).text, "z");
    tap_is_str(s.data, "a018446744073709551615z", "texts and numbers are one after the other");
    char *added = str_extend(&s, 2);
    if (added)
        memcpy(added, "12", 2);
    tap_is_str(s.data, "a018446744073709551615z12", "what is extended is for the caller to fill");
    autostr struct str empty = {0};
    str_reserve(&empty, 100);
    tap_is_str(empty.data, "", "a string with room and nothing else is an empty text");
    str_reserve(&s, 5000);
    tap_ok(s.capacity > 5000 && strlen(s.data) == s.length, "room can be made before it is needed");
    tap_ok(str_fill(text, sizeof text, "12", "", "345"), "what fits an array is put into it");
    tap_is_str(text, "12345", "up to its last byte");
    tap_ok(!str_fill(text, sizeof text, "67", "8901", "2"), "what does not is told");
    tap_is_str(text, "67890", "and is cut");
    tap_ok(str_fill(text, 1, "") && text[0] == 0, "nothing fits one byte");
    tap_ok(!str_fill(text, 1, "x") && text[0] == 0, "and something does not");
}

static void formatting(void)
{
    const int widths[] = {0, 1, 254, 255, 256, 257, 5000};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        autostr struct str s = {0};
        str_append(&s, "<");
        str_appendf(&s, "%*s", widths[i], "");
        tap_ok(!s.failed && s.length == (size_t)widths[i] + 1 && strlen(s.data) == s.length &&
                   strspn(s.data + 1, " ") == (size_t)widths[i],
               "%d bytes are formatted", widths[i]);
    }
}

static void gives_away(void)
{
    struct brig_error err;
    autostr struct str s = {0};
    autofree char *text = NULL;
    autofree char *empty = NULL;
    tap_is_int(str_take(&s, &empty, &err), 0, "an empty string can be taken");
    tap_is_str(empty, "", "and is empty");
    str_append(&s, "x");
    tap_is_int(str_take(&s, &text, &err), 0, "taking works");
    tap_is_str(text, "x", "the text is there");
    tap_ok(!s.data && s.length == 0, "the string starts anew");
}

static void drops_what_is_done(void)
{
    autostr struct str s = {0};
    size_t done = 0;
    str_drop_done(&s, &done);
    tap_ok(s.length == 0 && done == 0, "of an empty string nothing is dropped");
    str_append(&s, "abcdef");
    done = 2;
    str_drop_done(&s, &done);
    tap_ok(done == 2 && s.length == 6, "less than half stays");
    done = 3;
    str_drop_done(&s, &done);
    tap_is_str(s.data, "def", "half is dropped");
    tap_ok(done == 0 && s.length == 3, "and counted anew");
    done = 3;
    str_drop_done(&s, &done);
    tap_is_str(s.data, "", "and everything");
}

static void stops_at_the_limit(void)
{
    struct brig_error err;
    autofree char *block = malloc(STR_LENGTH_MAX + 1);
    if (!block)
        tap_bail("no memory for the block");
    memset(block, 'x', STR_LENGTH_MAX + 1);
    autostr struct str s = {0};
    str_append_bytes(&s, block, STR_LENGTH_MAX);
    tap_ok(!s.failed && s.length == STR_LENGTH_MAX, "a string at the limit is fine");
    str_append_char(&s, 'x');
    tap_ok(s.failed, "one byte past it is a failure");
    tap_is_int(s.length, STR_LENGTH_MAX, "which adds nothing");
    autofree char *text = NULL;
    tap_is_int(str_take(&s, &text, &err), BRIG_E_NOMEM, "and is reported when the text is taken");
    tap_ok(!text, "the output is untouched");
    autostr struct str t = {0};
    str_append_bytes(&t, block, STR_LENGTH_MAX + 1);
    tap_ok(t.failed, "one past it at once is a failure as well");
    str_append(&t, "x");
    tap_ok(t.failed && t.length == 0, "and stays one");
}

static void helps(void)
{
    autofree char *joined = NULL;
    autofree char *none = NULL;
    autofree char *copy = NULL;
    tap_is_int(str_make(&joined, NULL, "a", "", "bc"), 0, "joining works");
    tap_is_str(joined, "abc", "one after the other");
    str_make(&none, NULL, "");
    tap_is_str(none, "", "nothing joined is empty");
    tap_is_int(str_copy("text", &copy, NULL), 0, "copying works");
    tap_is_str(copy, "text", "the copy is the same");
    char *null = joined;
    tap_is_int(str_copy(NULL, &null, NULL), 0, "NULL can be copied");
    tap_ok(!null, "to NULL");
    tap_ok(str_equal("a", "a") && !str_equal("a", "b"), "texts compare");
    tap_ok(str_equal(NULL, NULL) && !str_equal("", NULL) && !str_equal(NULL, ""),
           "NULL equals only NULL");
    tap_ok(str_starts_with("abc", "ab") && str_starts_with("abc", ""), "prefixes match");
    tap_ok(!str_starts_with("ab", "abc"), "a longer prefix does not");
}

static void shows(void)
{
    char text[STR_SHOWN_MAX + 1];
    tap_is_str(str_shown("a\nb\t\\\x01\x7f é").text, "a\\nb\\t\\\\\\x01\\x7f é",
               "control characters are escaped, letters are not");
    tap_is_str(str_shown("\xc2\x9b"
                         "31m\xff\xe2\x80\xae€\xc3")
                   .text,
               "\\xc2\\x9b31m\\xff\\xe2\\x80\\xae€\\xc3",
               "so are controls of UTF-8, invisible characters and other bytes");
    tap_is_str(str_shown(NULL).text, "(null)", "NULL can be shown");
    memset(text, 'a', sizeof text);
    text[STR_SHOWN_MAX - 1] = '\0';
    tap_is_str(str_shown(text).text, text, "a text at the limit is whole");
    text[STR_SHOWN_MAX - 1] = 'a';
    text[STR_SHOWN_MAX] = '\0';
    struct str_shown cut = str_shown(text);
    tap_is_int(strlen(cut.text), STR_SHOWN_MAX - 1, "one past it is cut to the limit");
    tap_is_str(cut.text + STR_SHOWN_MAX - 4, "…", "and says so");
    for (size_t i = 0; i + 1 < STR_SHOWN_MAX; i += 2)
        memcpy(text + i, "é", 2);
    cut = str_shown(text);
    tap_ok(strstr(cut.text, "é…") != NULL, "no character is split by the cut");
    static const char odd[] = "é\n\\\0\x1b\xc2\x9b\xff";
    autostr struct str whole = {0};
    str_append_shown(&whole, odd, sizeof odd - 1, "");
    tap_is_str(whole.data, "é\\n\\\\\\x00\\x1b\\xc2\\x9b\\xff",
               "controls of UTF-8 and other bytes can be escaped too");
    autostr struct str lines = {0};
    str_append_shown(&lines, odd, sizeof odd - 1, "\n\\");
    autostr struct str turned = {0};
    str_append_shown(&turned,
                     "a\xe2\x80\xae"
                     "b",
                     5, "");
    tap_is_str(turned.data, "a\\xe2\\x80\\xaeb", "characters for the direction are escaped");
    tap_is_str(lines.data, "é\n\\\\x00\\x1b\\xc2\\x9b\\xff", "except some that are named");
}

static void quotes(void)
{
    static const struct {
        const char *text, *word;
    } rows[] = {
        {"./src/.env", "./src/.env"},
        {"", "''"},
        {"a b", "'a b'"},
        {"a;touch b;$(c)`d`*", "'a;touch b;$(c)`d`*'"},
        {"~/x", "'~/x'"},
        {"it's", "$'it\\'s'"},
        {"\\'", "$'\\\\\\''"},
        {"a\nb\x1b", "$'a\\nb\\x1b'"},
        {"é", "'é'"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        autostr struct str word = {0};
        str_append_word(&word, rows[i].text);
        tap_is_str(word.data, rows[i].word, "a word of a shell: %s", rows[i].word);
    }
}

static void prints_sizes(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0 bytes"},     {1, "1 byte"},         {1023, "1023 bytes"},
                {1024, "1 KiB"},    {1536, "1.5 KiB"},     {512 << 20, "512 MiB"},
                {1 << 30, "1 GiB"}, {UINT64_MAX, "16 EiB"}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_str(str_size(rows[i].bytes).text, rows[i].text, "size %zu", i);
    autostr struct str text = {0};
    str_append_count(&text, 1, "file");
    str_append(&text, ", ");
    str_append_count(&text, 2, "file");
    tap_is_str(text.data, "1 file, 2 files", "counts");
    autostr struct str words = {0};
    str_join(&words, (const char *const[]){"a", "b c", "d", NULL});
    tap_is_str(words.data, "a b c d", "words");
}

/* A text is cut between characters, and where there are none, at the byte. */
static void cuts(void)
{
    static const struct {
        const char *text;
        size_t length, cut;
    } rows[] = {{"", 0, 0},
                {"abc", 2, 2},
                {"a\xc3\xa9z", 3, 3},
                {"a\xc3\xa9z", 2, 1},
                {"\xf0\x9f\x98\x80", 4, 4},
                {"\xf0\x9f\x98\x80", 3, 0},
                {"\xf0\x9f\x98\x80", 1, 0},
                {"\x80\x80\x80\x80\x80\x80", 6, 6},
                {"\xff\xc3\xc3", 3, 2}};
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        tap_is_int((long)utf8_cut(rows[i].text, rows[i].length), (long)rows[i].cut, "cut %zu", i);
}

int main(void)
{
    cuts();
    quotes();
    grows();
    formatting();
    puts_together();
    gives_away();
    drops_what_is_done();
    stops_at_the_limit();
    helps();
    shows();
    prints_sizes();
    return tap_done();
}
