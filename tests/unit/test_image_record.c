/* SPDX-License-Identifier: MIT */
/* Names and records of images. */
#include "image/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "policy/layers.h"
#include "tap.h"

#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FIRST "brig-image 1\n"
#define LEAST FIRST "digest " DIGITS "\nlayer " DIGITS "\n"

static void test_names(void)
{
    static const char *const good[] = {"python",        "python:3.12-slim",         "a/b/c:TAG_1.x",
                                       "host:5000/a:1", "docker.io/library/debian", "a-b_c.d"};
    static const char *const bad[] = {
        "",       "/a",  "a/",   "a//b", "..",     "a/../b", ".a", "A",    "a:",         "a:-x",
        "a:b:c/", "a b", "a\nb", "a+b",  "a/.b:1", "a@b",    ":1", "a:.x", "a/b:c/d:e:f"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        tap_is_int(image_check_name(good[i], NULL), 0, "'%s' is a name", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        tap_is_int(image_check_name(bad[i], NULL), BRIG_E_INVALID, "bad name %zu is none", i);
    char longest[IMAGE_NAME_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[IMAGE_NAME_MAX] = '\0';
    tap_is_int(image_check_name(longest, NULL), 0, "a name of %d bytes", IMAGE_NAME_MAX);
    longest[IMAGE_NAME_MAX] = 'a';
    longest[IMAGE_NAME_MAX + 1] = '\0';
    tap_is_int(image_check_name(longest, NULL), BRIG_E_INVALID, "one more is too long");
    tap_is_str(image_short_name("docker.io/library/a:1"), "a:1",
               "the library of Docker is left out");
    tap_is_str(image_short_name("docker.io/b/a"), "b/a", "and its registry");
    tap_is_str(image_short_name("quay.io/library/a"), "quay.io/library/a", "and no other");
}

static int read_text(const char *text)
{
    struct image_record record = {0};
    int result = image_record_read(text, strlen(text), &record, NULL);
    image_record_done(&record);
    return result;
}

static void test_records(void)
{
    static const char *const bad[] = {
        "",
        "brig-image 2\n",
        FIRST,
        FIRST "digest " DIGITS "\n",
        FIRST "layer " DIGITS "\n",
        LEAST "digest " DIGITS "\n",
        LEAST "layer ../../etc\n",
        LEAST "name ../x\n",
        LEAST "workdir relative\n",
        LEAST "env =x\n",
        LEAST "env x\n",
        LEAST "env A=%00\n",
        LEAST "env A=%0\n",
        LEAST "env A=%zz\n",
        LEAST "env A=\tx\n",
        LEAST "unknown x\n",
        LEAST "user\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        tap_is_int(read_text(bad[i]), BRIG_E_INVALID, "record %zu is refused", i);
    tap_is_int(read_text(LEAST), 0, "the least one is read");
    tap_is_int(read_text(LEAST "env A=%0a%25\nworkdir /x\nuser y\nname z:1\n"), 0,
               "and one with more");
}

static void test_round_trip(void)
{
    struct image_record record = {0}, again = {0};
    struct str text = {0};
    record.name = "a/b:1";
    record.digest = DIGITS;
    record.layers[0] = DIGITS;
    record.layer_count = 1;
    (void)image_words_add(&record, &record.env, "A=line\nlayer x % \x7f ü", NULL);
    (void)image_words_add(&record, &record.cmd, "", NULL);
    (void)image_words_add(&record, &record.cmd, " two words ", NULL);
    image_record_write(&record, &text);
    tap_is_int(image_record_read(text.data, text.length, &again, NULL), 0,
               "a record is read again");
    tap_is_str(again.env.items[0], "A=line\nlayer x % \x7f ü", "with any bytes in a variable");
    tap_is_int(again.cmd.count, 2, "with both words");
    tap_is_str(again.cmd.items[0], "", "of which one is empty");
    tap_is_str(again.cmd.items[1], " two words ", "and one has blanks");
    tap_is_int(again.layer_count, 1, "and one layer");
    image_record_done(&again);
    image_record_done(&record);
    str_done(&text);
}

static void test_limits(void)
{
    struct str text = {0};
    str_append(&text, FIRST "digest " DIGITS "\n");
    for (int i = 0; i < ROOT_LAYERS_MAX; i++)
        str_append(&text, "layer " DIGITS "\n");
    tap_is_int(read_text(text.data), 0, "%d layers", ROOT_LAYERS_MAX);
    str_append(&text, "layer " DIGITS "\n");
    tap_is_int(read_text(text.data), BRIG_E_INVALID, "one more");
    str_done(&text);
    str_append(&text, LEAST);
    for (int i = 0; i < IMAGE_WORDS_MAX; i++)
        str_append(&text, "cmd x\n");
    tap_is_int(read_text(text.data), 0, "%d words", IMAGE_WORDS_MAX);
    str_append(&text, "cmd x\n");
    tap_is_int(read_text(text.data), BRIG_E_INVALID, "one more word");
    str_done(&text);
}

int main(void)
{
    test_names();
    test_records();
    test_round_trip();
    test_limits();
    return tap_done();
}
