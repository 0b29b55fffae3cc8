/* SPDX-License-Identifier: MIT */
/* Records of "key value" lines, and the places of directories. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/place.h"
#include "base/record.h"
#include "tap.h"

static void any_value_comes_back(void)
{
    static const char *const values[] = {"",     "a",      " blanks  ", "two\nlines", "100%",
                                         "%41b", "\x1b[m", "\xff\xfe",  "\x7f",       "é\t"};
    autostr struct str text = {0};
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
        record_add(&text, "value", values[i]);
    record_add(&text, "missing", NULL);
    record_add_number(&text, "number", UINT64_MAX);
    record_add_time(&text, "time", -5);
    struct record_place at = {0};
    const char *key, *value;
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        tap_ok(record_next(&text, &at, &key, &value) && str_equal(key, "value") &&
                   str_equal(value, values[i]),
               "value %zu comes back", i);
    }
    tap_ok(record_next(&text, &at, &key, &value) && str_equal(key, "number") &&
               record_number(value) == UINT64_MAX,
           "the greatest number comes back");
    tap_ok(record_next(&text, &at, &key, &value) && record_time(value) == -5,
           "a time before 1970 comes back");
    tap_ok(!record_next(&text, &at, &key, &value) && !at.damaged, "then it ends");
}

static void damage_is_found(void)
{
    static const char *const texts[] = {"key",    "key value", "novalue\n", " value\n",
                                        "k %4\n", "k %zz\n",   "k %00\n",   "k a\tb\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        autostr struct str text = {0};
        struct record_place at = {0};
        const char *key, *value;
        str_append(&text, "good 1\n");
        str_append(&text, texts[i]);
        bool first = record_next(&text, &at, &key, &value);
        tap_ok(first && !record_next(&text, &at, &key, &value) && at.damaged,
               "damage %zu is found after the good line", i);
    }
    tap_ok(record_number("-1") == 0 && record_number("1x") == 0 && record_number("") == 0 &&
               record_number("99999999999999999999999") == 0,
           "what is no number is 0");
}

static void files_are_replaced(int dir)
{
    autostr struct str text = {0}, back = {0};
    record_add(&text, "key", "value");
    tap_is_int(record_write(dir, "record", &text, true, NULL), 0, "a record is written");
    tap_is_int(record_write(dir, "record", &text, false, NULL), 0, "and replaced");
    tap_is_int(record_read(dir, "record", &back, NULL), 1, "and read");
    tap_is_str(back.data, text.data, "as it was");
    tap_is_int(record_read(dir, "missing", &back, NULL), 0, "a missing one is no error");
    tap_ok(faccessat(dir, "record.new", F_OK, 0) < 0, "nothing else is left");
    tap_ok(symlinkat("record", dir, "link") == 0 && record_read(dir, "link", &back, NULL) < 0,
           "a link is not followed");
}

static void a_place_is_a_directory(int dir, const char *path)
{
    struct place one, other, again;
    struct brig_error err = {0};
    autostr struct str text = {0};
    char at[300];
    (void)mkdirat(dir, "one", 0700);
    (void)mkdirat(dir, "other", 0700);
    autoclose int a = openat(dir, "one", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autoclose int b = openat(dir, "other", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tap_ok(place_of(a, &one, NULL) == 0 && place_of(b, &other, NULL) == 0, "places are found");
    tap_ok(place_equal(&one, &one) && !place_equal(&one, &other), "and told apart");
    place_add(&text, &one);
    struct record_place in = {0};
    const char *key, *value;
    tap_ok(record_next(&text, &in, &key, &value) && place_read(value, &again) &&
               place_equal(&one, &again),
           "a place comes back from a record");
    again.birth_ns++;
    tap_ok(one.birth_ns == 0 || !place_equal(&one, &again),
           "the same inode that was born later is another directory");
    tap_ok(place_equal(&one, &(struct place){0}), "an unknown place equals every other");
    tap_ok(!place_read("1-2", &again) && !place_read("1-2-3-4", &again), "other texts are refused");
    (void)snprintf(at, sizeof at, "%s/one", path);
    autoclose int opened = place_open(at, &one, NULL);
    tap_ok(opened >= 0, "a place is opened");
    tap_is_int(place_open(at, &other, &err), BRIG_E_STATE, "but not as another one");
    (void)renameat(dir, "one", dir, "moved");
    tap_is_int(place_open(at, &one, NULL), BRIG_E_NOT_FOUND, "nor where it is no more");
    (void)symlinkat("moved", dir, "one");
    tap_is_int(place_open(at, &one, NULL), BRIG_E_STATE, "nor through a link");
}

int main(void)
{
    char path[] = "/tmp/brig-record-XXXXXX";
    autoclose int dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0)
        tap_bail("make a directory");
    any_value_comes_back();
    damage_is_found();
    files_are_replaced(dir);
    a_place_is_a_directory(dir, path);
    return tap_done();
}
