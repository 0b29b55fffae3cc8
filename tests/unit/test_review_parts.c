/* SPDX-License-Identifier: MIT */
/* The parts of brig-review that do not need a terminal: JSON in pieces, the list of changes, texts
 * that are shown. */
#include <locale.h>
#include <string.h>

#include "base/str.h"
#include "review/changes.h"
#include "review/json_reader.h"
#include "review/pane.h"
#include "review/shown.h"
#include "tap.h"

/* ---- JSON ---- */

static bool note(void *context, enum json_event event, const char *text, size_t length)
{
    static const char letters[] = "{}[]ksntf0";
    struct str *out = context;
    str_append_char(out, letters[event]);
    str_append_bytes(out, text, length);
    str_append_char(out, ' ');
    return true;
}

/* Reads a text in parts of `part` bytes and returns the events, or "bad". */
static const char *read_json(const char *text, size_t part, struct str *out)
{
    struct json_reader reader;
    size_t length = strlen(text);
    out->length = 0;
    str_append(out, "");
    json_reader_init(&reader, note, out);
    bool good = true;
    for (size_t at = 0; at < length && good; at += part)
        good = json_reader_feed(&reader, text + at, length - at < part ? length - at : part);
    good = good && json_reader_complete(&reader);
    json_reader_done(&reader);
    return good ? out->data : "bad";
}

static void test_json(void)
{
    struct str out = {0};
    static const char text[] = "{\"a\":[1,-2.5e3,true,false,null],\"b\":{},\"c\":[],\"d\":\"x\"}\n";
    static const char events[] = "{ ka [ n1 n-2.5e3 t f 0 ] kb { } kc [ ] kd sx } ";
    for (size_t part = 1; part < sizeof text; part++)
        if (!tap_is_str(read_json(text, part, &out), events, "JSON in parts of %zu bytes", part))
            break;
    tap_is_str(read_json("[\"\\u00e9\\ud83d\\ude00\\n\\\\\"]", 3, &out), "[ sé😀\n\\ ] ",
               "escapes become characters");
    tap_is_str(read_json("[\"\\ud83dx\\ude00\\u0000\"]", 64, &out),
               "[ s\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd ] ",
               "half of a pair and NUL become U+FFFD");
    static const char *const bad[] = {
        "",         "{",    "[1,]",      "{\"a\"}", "{\"a\":}",      "[1 2]",  "{,}", "[}",
        "\"\x01\"", "tru ", "[\"\\x\"]", "{} x",    "[\"\\u12g4\"]", "nulll ", "]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        tap_is_str(read_json(bad[i], 64, &out), "bad", "not JSON: '%s'", bad[i]);
    str_done(&out);
}

static void test_json_limits(void)
{
    struct str text = {0}, out = {0};
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        str_append_char(&text, '[');
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        str_append_char(&text, ']');
    tap_ok(strcmp(read_json(text.data, 64, &out), "bad") != 0, "arrays as deep as the limit");
    text.length = 0;
    for (int i = 0; i < JSON_DEPTH_MAX + 1; i++)
        str_append_char(&text, '[');
    for (int i = 0; i < JSON_DEPTH_MAX + 1; i++)
        str_append_char(&text, ']');
    tap_is_str(read_json(text.data, 64, &out), "bad", "one level more");
    for (size_t more = 0; more < 2; more++) {
        text.length = 0;
        str_append_char(&text, '"');
        char *room = str_extend(&text, JSON_TEXT_MAX - 1 + more);
        memset(room, 'x', JSON_TEXT_MAX - 1 + more);
        str_append_char(&text, '"');
        tap_is_int(strcmp(read_json(text.data, 65536, &out), "bad") == 0, (int)more,
                   "a text of the limit %s", more ? "and one byte" : "less one byte");
    }
    str_done(&text);
    str_done(&out);
}

/* ---- the list ---- */

static const char status_text[] =
    "{\"jail\":\"j\",\"running\":true,\"layers\":[{\"name\":\"home\",\"root\":\"/home/u\","
    "\"home\":true,\"changes\":["
    "{\"path\":\"b/z\",\"kind\":\"deleted\",\"type\":\"directory\",\"mode\":[\"40755\",null],"
    "\"size\":[4096,null],\"files\":3,\"bytes\":1234},"
    "{\"path\":\"b/c/d\",\"kind\":\"added\",\"type\":\"file\",\"mode\":[null,\"100755\"],"
    "\"size\":[null,5],\"risk\":\"a new executable file\"},"
    "{\"path\":\"b.x/y\",\"kind\":\"modified\",\"type\":\"file\",\"mode\":[\"100644\",\"100600\"],"
    "\"size\":[12,2048],\"conflict\":\"it has changed outside\"},"
    "{\"path\":\"b/a\",\"kind\":\"added\",\"type\":\"link\",\"target\":[null,\"../q\"],"
    "\"mode\":[null,\"120777\"],\"size\":[null,4],\"future\":{\"x\":[1,{\"y\":2}]}},"
    "{\"path\":\"\xef\xbf\xbd\",\"path_bytes\":\"/w==\",\"kind\":\"metadata\",\"type\":\"file\","
    "\"mode\":[\"100644\",\"100755\"],\"size\":[1,1],\"owner\":true,\"xattrs\":true}"
    "],\"counts\":{\"deleted\":1,\"bytes\":7}},"
    "{\"name\":\"1\",\"root\":\"/p\",\"home\":false,\"changes\":[{\"path\":\"a\",\"kind\":"
    "\"type\",\"type\":\"file\",\"was\":\"link\",\"ignored\":true}]}],"
    "\"held\":2,\"interrupted\":17}\n";

static bool read_list(struct changes *changes, const char *text, size_t part)
{
    struct changes_reader reader;
    size_t length = strlen(text);
    changes_reader_init(&reader, changes);
    bool good = true;
    for (size_t at = 0; at < length && good; at += part)
        good = changes_reader_feed(&reader, text + at, length - at < part ? length - at : part);
    good = good && changes_finish(&reader);
    changes_reader_done(&reader);
    return good;
}

/* All rows as one line. */
static void describe_rows(const struct changes *changes, struct str *out)
{
    out->length = 0;
    str_append(out, "");
    for (size_t i = 0; i < changes->row_count; i++) {
        const struct row *row = &changes->rows[i];
        const struct entry *entry = &changes->entries[row->entry];
        if (row->kind == ROW_LAYER)
            str_appendf(out, "%s:%u ", changes->layers[entry->layer].root, row->count);
        else if (row->kind == ROW_DIRECTORY)
            str_appendf(out, "%.*s:%u ", (int)entry->name, entry->path, row->count);
        else
            str_appendf(out, "%c%s ", entry_letter(entry), entry->path);
    }
}

static void test_list(void)
{
    struct changes changes = {0};
    struct str out = {0};
    tap_ok(read_list(&changes, status_text, 7), "the list is read in parts");
    tap_is_str(changes.jail, "j", "the name of the jail");
    tap_ok(changes.running && changes.interrupted == 17 && changes.held == 2, "its state");
    tap_is_int(changes.flagged, 1, "one is flagged");
    tap_is_int(changes.conflicts, 1, "one is in conflict");
    describe_rows(&changes, &out);
    tap_is_str(out.data, "/home/u:5 m\xff b/:2 Ab/a Db/z b/c/:1 Ab/c/d b.x/:1 Mb.x/y /p:1 Ta ",
               "by layer and directory; what is below a directory follows it");

    size_t from, to;
    changes_range(&changes, 2, &from, &to);
    tap_ok(from == 1 && to == 4, "a directory stands for all below, not for a longer name");
    changes_range(&changes, 0, &from, &to);
    tap_ok(from == 0 && to == 5, "a layer stands for all of its entries");
    changes_range(&changes, 3, &from, &to);
    tap_ok(from == 1 && to == 2, "an entry stands for itself");

    for (size_t i = 0; i < changes.row_count; i++) {
        const struct entry *entry = &changes.entries[changes.rows[i].entry];
        if (changes.rows[i].kind == ROW_ENTRY)
            tap_is_int(changes_find_row(&changes, changes.layers[entry->layer].root, entry->path),
                       i, "row %zu is found by its path", i);
    }
    tap_is_int(changes_find_row(&changes, "/home/u", "b/b"), 4, "where a path would be");
    tap_is_int(changes_search(&changes, 0, "X/Y", false), 8, "search ignores case");
    tap_is_int(changes_search(&changes, 8, "b/", false), 3, "and begins again at the top");
    tap_is_int(changes_search(&changes, 3, "b/", true), 6, "or at the end");
    tap_ok(changes_search(&changes, 0, "none", false) == SIZE_MAX, "nothing is found");

    tap_ok(changes_filter(&changes, true), "the filter");
    describe_rows(&changes, &out);
    tap_is_str(out.data, "/home/u:2 b/c/:1 Ab/c/d b.x/:1 Mb.x/y ", "shows flagged changes only");
    changes_mark(&changes, 1, true);
    changes_mark(&changes, 1, true);
    changes_mark(&changes, 2, true);
    changes_mark(&changes, 1, false);
    tap_is_int(changes.marked, 1, "marks are counted");
    changes_done(&changes);
    str_done(&out);
}

static const char *describe(const struct entry *entry, struct str *out)
{
    out->length = 0;
    entry_describe(entry, out);
    return out->data;
}

static void test_descriptions(void)
{
    struct changes changes = {0};
    struct str out = {0};
    tap_ok(read_list(&changes, status_text, 4096), "the list");
    const struct entry *e = changes.entries;
    tap_is_str(describe(&e[0], &out),
               "metadata file, 1 bytes, mode 644 to 755, owner, extended attributes", "metadata");
    tap_is_str(describe(&e[1], &out), "added link, link to ../q", "a link");
    tap_is_str(describe(&e[2], &out), "deleted directory, 3 files, 1234 bytes",
               "a deleted directory");
    tap_is_str(describe(&e[3], &out), "added file, 5 bytes, executable", "a program");
    tap_is_str(describe(&e[4], &out), "modified file, 12 to 2048 bytes, mode 644 to 600",
               "a modified file");
    tap_is_str(describe(&e[5], &out), "type changed file, 0 bytes, ignored by git", "a type");
    changes_done(&changes);
    str_done(&out);

    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0"},          {999, "999"},      {1000, "0.9K"},
                 {1024, "1.0K"},    {1536, "1.5K"},    {10240, "10K"},
                 {1023999, "999K"}, {1024000, "0.9M"}, {UINT64_MAX, "15E"}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        tap_is_str(size_text(sizes[i].bytes).text, sizes[i].text, "%ju bytes",
                   (uintmax_t)sizes[i].bytes);
}

static void test_inside(void)
{
    static const char text[] =
        "{\"layers\":[{\"root\":\"/r\",\"changes\":["
        "{\"path\":\"a\",\"kind\":\"added\",\"type\":\"directory\"},"
        "{\"path\":\"a.b\",\"kind\":\"added\",\"type\":\"directory\"},"
        "{\"path\":\"a/x\",\"kind\":\"added\",\"type\":\"file\"},"
        "{\"path\":\"a/d\",\"kind\":\"added\",\"type\":\"directory\"},"
        "{\"path\":\"a/d/y\",\"kind\":\"added\",\"type\":\"file\"},"
        "{\"path\":\"a.b/z\",\"kind\":\"added\",\"type\":\"file\",\"renamed_from\":\"q\"},"
        "{\"path\":\"m\",\"kind\":\"metadata\",\"type\":\"directory\"},"
        "{\"path\":\"m/w\",\"kind\":\"added\",\"type\":\"file\"}]}]}";
    struct changes changes = {0};
    struct str out = {0};
    size_t from, to;
    tap_ok(read_list(&changes, text, 4096), "directories");
    describe_rows(&changes, &out);
    tap_is_str(out.data, "/r:8 Aa Aa.b mm a/:2 Aa/d Aa/x a/d/:1 Aa/d/y a.b/:1 Ra.b/z m/:1 Am/w ",
               "their rows");
    changes_inside(&changes, 0, &from, &to);
    tap_ok(from == 3 && to == 6, "what is in a new directory");
    changes_inside(&changes, 1, &from, &to);
    tap_ok(from == 6 && to == 7, "and in one with a longer name");
    changes_inside(&changes, 3, &from, &to);
    tap_ok(from == 5 && to == 6, "and in one below");
    changes_inside(&changes, 2, &from, &to);
    tap_ok(from == to, "a directory that exists is only itself");
    changes_inside(&changes, 4, &from, &to);
    tap_ok(from == to, "and so is a file");
    changes_done(&changes);
    str_done(&out);
}

static void test_bad_lists(void)
{
    static const char *const bad[] = {
        "{\"layers\":[{\"root\":\"/r\",\"changes\":[{\"kind\":\"added\"}]}]}",
        "{\"layers\":[{\"changes\":[{\"path\":\"a\",\"kind\":\"added\"}]}]}",
        "{\"layers\":[{\"root\":\"/r\",\"changes\":[{\"path\":\"a\"}]}]}",
        "{\"layers\":[{\"root\":\"/r\",\"changes\":[{\"path\":\"\",\"kind\":\"added\"}]}]}",
        "{\"layers\":[{\"root\":\"/r\",\"changes\":[{\"path_bytes\":\"%\",\"kind\":\"type\"}]}]}",
        "{\"layers\":[{\"root\":\"/r\",\"changes\":[{\"path\":\"a\",\"kind\":\"added\"}]}]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct changes changes = {0};
        tap_ok(!read_list(&changes, bad[i], 4096), "refused: %s", bad[i]);
        changes_done(&changes);
    }
    struct changes changes = {0};
    tap_ok(read_list(&changes, "{\"layers\":[]}", 4096) && changes.row_count == 0, "no layers");
    changes_done(&changes);
}

/* ---- texts ---- */

static const char *show(const char *text, bool unicode, struct str *out)
{
    out->length = 0;
    str_append(out, "");
    shown_append(out, text, strlen(text), unicode);
    return out->data;
}

static void test_shown(void)
{
    struct str out = {0};
    tap_is_str(show("plain \\ text", true, &out), "plain \\ text", "ASCII stays");
    tap_is_str(show("a\033[31m\a\b\r\n\t\177", true, &out), "a\\x1b[31m\\x07\\x08\\r\\n\\t\\x7f",
               "control characters are escaped");
    tap_is_str(show("a\xff\xc3(\xe2\x82", true, &out), "a\\xff\\xc3(\\xe2\\x82",
               "bytes that are not UTF-8 are escaped");
    tap_is_str(show("\xc2\x9b"
                    "31m",
                    true, &out),
               "\\u{9b}31m", "control characters of 8 bits");
    tap_is_str(show("x\xe2\x80\xaey\xe2\x81\xa6z\xe2\x80\x8b", true, &out),
               "x\\u{202e}y\\u{2066}z\\u{200b}", "direction marks and invisible characters");
    tap_is_str(show("\xf3\xa0\x81\x81", true, &out), "\\u{e0041}", "tags");
    tap_is_str(show("é", false, &out), "\\u{e9}", "in the C locale only ASCII is shown");
    if (setlocale(LC_ALL, "C.UTF-8")) {
        tap_ok(shown_has_unicode(), "C.UTF-8 has Unicode");
        tap_is_str(show("é日😀", true, &out), "é日😀", "letters, wide characters, emoji");
    }
    str_done(&out);
}

static void test_pane(void)
{
    struct pane pane = {0};
    size_t length;
    tap_ok(pane_append(&pane, "one\ntw", 6) && pane_append(&pane, "o\n\nfour", 7), "parts");
    tap_is_int(pane.count, 4, "four lines");
    const char *line = pane_line(&pane, 1, &length);
    tap_ok(length == 3 && memcmp(line, "two", 3) == 0, "a line in two parts");
    (void)pane_line(&pane, 2, &length);
    tap_is_int(length, 0, "an empty line");
    line = pane_line(&pane, 3, &length);
    tap_ok(length == 4 && memcmp(line, "four", 4) == 0, "a last line without a newline");
    pane_scroll(&pane, 100, 2);
    tap_is_int(pane.top, 2, "scrolling ends with the last page");
    pane_scroll(&pane, -1, 2);
    tap_is_int(pane.top, 1, "one line up");
    pane_scroll(&pane, -100, 2);
    tap_is_int(pane.top, 0, "and at the first line");
    tap_ok(pane_search(&pane, "ou", false) && pane.top == 3, "search");
    tap_ok(!pane_search(&pane, "five", false), "nothing is found");
    pane_clear(&pane);
    char *big = calloc(1, PANE_BYTES_MAX + 1);
    tap_ok(pane_append(&pane, big, PANE_BYTES_MAX), "a text of the limit");
    tap_ok(!pane_append(&pane, big, 1) && pane.cut, "one byte more is cut");
    free(big);
    pane_done(&pane);
}

int main(void)
{
    test_json();
    test_json_limits();
    test_list();
    test_descriptions();
    test_inside();
    test_bad_lists();
    test_shown();
    test_pane();
    return tap_done();
}
