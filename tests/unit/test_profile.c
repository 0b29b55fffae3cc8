/* SPDX-License-Identifier: MIT */
/* Profiles: the words, their values, and the texts that are part of brig. */
#include "cli/settings/profile.h"

#include <string.h>

#include "tap.h"

static void test_values(void)
{
    struct profile profile = {0};
    tap_is_int(profile_word("about"), PROFILE_ABOUT, "a word is known");
    tap_is_int(profile_word("mask"), -1, "a directive is none");
    tap_is_int(profile_add(&profile, PROFILE_ABOUT, "one", NULL), 0, "a value");
    tap_is_int(profile_add(&profile, PROFILE_ABOUT, "two", NULL), 0, "and another");
    tap_is_str(profile_get(&profile, PROFILE_ABOUT), "two", "replaces it");
    tap_is_int(profile_add(&profile, PROFILE_STATE, " .a\t.b ", NULL), 0, "a list");
    tap_is_int(profile_add(&profile, PROFILE_NOTE, "between", NULL), 0, "something else");
    tap_is_int(profile_add(&profile, PROFILE_STATE, ".c", NULL), 0, "grows");
    char word[8];
    size_t at = 0, offset = 0;
    const char *const expected[] = {".a", ".b", ".c"};
    for (size_t i = 0; i < 3; i++)
        tap_ok(profile_next_word(&profile, PROFILE_STATE, &at, &offset, word, sizeof word) &&
                   strcmp(word, expected[i]) == 0,
               "word %zu", i);
    tap_ok(!profile_next_word(&profile, PROFILE_STATE, &at, &offset, word, sizeof word), "the end");
    tap_is_int(profile_add(&profile, PROFILE_STATE, "", NULL), 0, "an empty value");
    tap_ok(!profile_get(&profile, PROFILE_STATE), "removes all");
    tap_is_str(profile_get(&profile, PROFILE_NOTE), "between", "of that word");
    profile_done(&profile);
}

static void test_keys(void)
{
    struct profile profile = {0};
    struct profile_key key;
    char name[PROFILE_VARIABLE_MAX] = "";
    size_t at = 0;
    (void)profile_add(&profile, PROFILE_KEY, "A_KEY @a A_TOKEN", NULL);
    (void)profile_add(&profile, PROFILE_KEY, "B_KEY", NULL);
    tap_ok(profile_next_key(&profile, &at, &key) && strcmp(key.name, "A_KEY") == 0 &&
               strcmp(key.preset, "@a") == 0 && strcmp(key.placeholder, "A_TOKEN") == 0,
           "a key, its preset, and where the placeholder goes");
    tap_ok(profile_next_key(&profile, &at, &key) && strcmp(key.name, "B_KEY") == 0 &&
               !key.preset[0] && !key.placeholder[0],
           "a key alone");
    tap_ok(!profile_next_key(&profile, &at, &key), "the end of the keys");
    tap_ok(profile_placeholder(&profile, "A_KEY", name) && strcmp(name, "A_TOKEN") == 0,
           "the placeholder goes into another variable");
    tap_ok(!profile_placeholder(&profile, "B_KEY", name), "or into the same");
    profile_done(&profile);
}

static void test_texts(void)
{
    size_t count = 0;
    const struct profile_text *texts = profile_texts(&count);
    tap_ok(count >= 16, "there are profiles");
    for (size_t i = 0; i < count; i++) {
        struct profile profile = {0};
        tap_is_int(profile_read(&texts[i], &profile, NULL), 0, "%s can be read", texts[i].name);
        const char *kind = profile_get(&profile, PROFILE_KIND);
        tap_ok(kind && (strcmp(kind, "agent") == 0 || strcmp(kind, "tool") == 0), "its kind");
        tap_ok(profile_get(&profile, PROFILE_ABOUT) && profile_get(&profile, PROFILE_TESTED),
               "what it is, and whether it was tested");
        profile_done(&profile);
    }
    tap_ok(profile_of_command("claude") == profile_find("claude"), "by the name of the command");
    tap_ok(profile_of_command("/opt/x/claude") == profile_find("claude"), "also of a path");
    tap_ok(profile_of_command("npx") == profile_find("npm"), "by another name");
    tap_ok(!profile_of_command("cursor") && profile_of_command("cursor-agent"),
           "a profile with commands is for these only");
    tap_ok(!profile_of_command("clau") && !profile_of_command(""), "not by a part of a name");
}

int main(void)
{
    test_values();
    test_keys();
    test_texts();
    return tap_done();
}
