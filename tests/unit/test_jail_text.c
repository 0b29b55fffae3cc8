/* SPDX-License-Identifier: MIT */
/* What brig writes into a NAME.jail file is read as it was meant, and the rest of the file stays. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/jails.h"
#include "policy/conf.h"
#include "tap.h"

struct found {
    char name[32];
    char value[256];
    int count;
};

static int take(void *context, const struct conf_directive *directive, struct brig_error *err)
{
    struct found *found = context;
    (void)err;
    (void)snprintf(found->name, sizeof found->name, "%s", directive->name);
    (void)snprintf(found->value, sizeof found->value, "%s",
                   directive->value ? directive->value : "-");
    found->count++;
    return 0;
}

static bool expands(void *context, const char *name)
{
    (void)context;
    (void)name;
    return true;
}

static const char *variable(void *context, const char *name)
{
    (void)context;
    (void)name;
    return "expanded";
}

static int include(void *context, const char *name, bool optional, struct conf_source *ret_source,
                   struct brig_error *err)
{
    (void)context;
    (void)name;
    (void)optional;
    (void)ret_source;
    (void)err;
    return 0;
}

static struct found read_text(const char *text)
{
    struct found found = {.count = 0};
    const struct conf_hooks hooks = {&found, take, expands, variable, include};
    const struct conf_source source = {.name = (char *)(uintptr_t) "test.jail",
                                       .text = (char *)(uintptr_t)text,
                                       .length = strlen(text)};
    if (conf_read(&source, &hooks, NULL) < 0)
        found.count = -1;
    return found;
}

static void values_come_back(void)
{
    static const char *const values[] = {
        ".ssh",        "a b",          " blanks ", "=x",        "a=b",       "x=",
        "back\\slash", "end\\",        "${HOME}",  "$",         "\\${HOME}", "new\nline",
        "tab\there",   "\r",           "# no",     "*.pem",     "[a-z]?",    "\xff\xfe",
        "\n",          "mask .ssh\nx", "\\n",      "a\\\\$b$c", "'\"",       "\t",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        autostr struct str text = {0};
        jail_text_set_mask(&text, "", 0, values[i], false);
        struct found found = read_text(text.data);
        tap_ok(found.count == 1 && strcmp(found.name, "mask") == 0 &&
                   strcmp(found.value, values[i]) == 0,
               "value %zu is read as it was written", i);
    }
}

static void changes(const char *before, const char *value, bool unmask, const char *after,
                    const char *what)
{
    autostr struct str text = {0};
    jail_text_set_mask(&text, before, strlen(before), value, unmask);
    tap_ok(!text.failed && strcmp(text.data, after) == 0, "%s", what);
}

static void rule_is(const char *before, const char *line, const char *after)
{
    struct str text = {0};
    jail_text_add_rule(&text, before, strlen(before), line);
    tap_is_str(text.data, after, "%s", line);
    str_done(&text);
}

static void test_rules(void)
{
    rule_is("mode bare\n", "allow a.example:443", "mode bare\nnet ask\nallow a.example:443\n");
    rule_is("net open\nallow a.example:443\n", "allow a.example:443",
            "net open\nallow a.example:443\n");
    rule_is("net ask\ndeny a.example\ndeny a.example:443\ndeny a.example:4\n",
            "allow a.example:443", "net ask\ndeny a.example:4\nallow a.example:443\n");
    rule_is("net ask\nallow a.example:443", "deny a.example:443", "net ask\ndeny a.example:443\n");
    rule_is("net ask\ndir \\\nallow a.example:443\n", "deny a.example:443",
            "net ask\ndir \\\nallow a.example:443\ndeny a.example:443\n");
    rule_is("", "deny b", "net ask\ndeny b\n");
}

int main(void)
{
    test_rules();
    values_come_back();
    changes("# a\nmode strict\n", "x", false, "# a\nmode strict\nmask x\n", "a mask comes last");
    changes("mask x\nmask y\n", "x", true, "mask y\nunmask x\n", "the opposite is left out");
    changes("mask x\nunmask x\nmask x", "x", false, "mask x\n", "so is the same");
    changes("dir a", "x", false, "dir a\nmask x\n", "a last line without an end gets one");
    changes("dir a \\\nmask x\n", "x", true, "dir a \\\nmask x\nunmask x\n",
            "a line that belongs to the one before it stays");
    changes("dir a\\", "x", false, "dir a\\\n\nmask x\n", "a last line that goes on ends");
    changes("mask xy\nmask  x\n#mask x\n", "x", false, "mask xy\nmask  x\n#mask x\nmask x\n",
            "others stay as they are");
    changes("", "x", true, "unmask x\n", "an empty file");
    return tap_done();
}
