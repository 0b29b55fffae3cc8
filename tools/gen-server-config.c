/* SPDX-License-Identifier: MIT */
/* What is made from the table of brigd's keys: gen-server-config man|runtimes|example
 * The lists of keys for man/brigd.yaml.5, or configs/config.example.yaml. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/config/config_keys.h"

/* A dot or apostrophe at the start of a line is a request to roff; a backslash is one anywhere. */
static void print_roff(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\\')
            (void)fputs("\\e", stdout);
        else if (*c == '.' && c[1] == ' ') {
            (void)fputs(".\n", stdout); /* a new sentence, a new line */
            c++;
        } else if (*c == '-')
            (void)fputs("\\-", stdout);
        else
            (void)fputc(*c, stdout);
    }
    (void)fputc('\n', stdout);
}

static void print_man(const struct config_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        autostr struct str allowed = {0};
        config_value_describe(&keys[i], &allowed);
        (void)printf(".It Ic %s\n", keys[i].name);
        print_roff(keys[i].doc);
        (void)printf("It is %s%s", allowed.data ? allowed.data : "",
                     keys[i].initial ? "; by default\n" : ".\n");
        if (keys[i].initial)
            (void)printf(".Ql %s .\n", keys[i].initial);
    }
}

/* The comment above a key, in lines that fit. */
static void print_comment(const char *text, int indent)
{
    int column = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > 0 && column + 1 + length > 90) {
            (void)fputc('\n', stdout);
            column = 0;
        }
        column += column == 0 ? printf("%*s# %.*s", indent, "", length, text)
                              : printf(" %.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
    (void)fputc('\n', stdout);
}

static void print_initial(const struct config_key *key)
{
    bool list = key->type == CONFIG_LIST || key->type == CONFIG_WORDS;
    bool text = key->type == CONFIG_TEXT || key->type == CONFIG_PATH;
    if (list)
        (void)puts("[]");
    else if (text)
        (void)printf("\"%s\"\n", key->initial ? key->initial : "");
    else
        (void)puts(key->initial ? key->initial : "");
}

static void print_sections(const char *before, const char *name, int *ret_indent)
{
    size_t start = 0;
    *ret_indent = 0;
    for (size_t i = 0; name[i]; i++) {
        if (name[i] != '.')
            continue;
        if (strncmp(before, name, i + 1) != 0)
            (void)printf("%s%*s%.*s:\n", start == 0 ? "\n" : "", *ret_indent, "", (int)(i - start),
                         name + start);
        start = i + 1;
        *ret_indent += 2;
    }
}

/* Every key with its built-in value; what has none, or one that depends on who runs it, is a comment. */
static void print_example(void)
{
    const char *before = "";
    (void)puts(
        "# SPDX-License-Identifier: MIT\n"
        "# Every key of brigd's configuration with the value it has without one; see "
        "brigd.yaml(5).\n"
        "# Made by tools/gen-server-config; copy it to config.yaml, and keep what you change.");
    for (size_t i = 0; i < config_key_count; i++) {
        int indent = 0;
        const struct config_key *key = &config_keys[i];
        print_sections(before, key->name, &indent);
        print_comment(key->doc, indent);
        /* database.store follows database.dsn unless it is set. */
        bool own = (!key->initial && (key->type == CONFIG_PATH || key->type == CONFIG_TEXT)) ||
                   strcmp(key->name, "database.store") == 0;
        (void)printf("%*s%s%s: ", indent, "", own ? "# " : "", strrchr(key->name, '.') + 1);
        print_initial(key);
        before = key->name;
    }
    (void)puts(
        "\n# Other runtimes, or changes to those that are built in: python, node, bash, claude.\n"
        "runtimes: {}\n"
        "  # ruby:\n"
        "  #   command: [ruby, \"{file}\"]\n"
        "  #   file: main.rb\n"
        "  #   package: ruby\n"
        "  # c:\n"
        "  #   compile: [cc, -O1, -o, /tmp/program, \"{file}\"]\n"
        "  #   command: [/tmp/program]\n"
        "  #   file: main.c\n"
        "  #   package: gcc\n"
        "  #   limits: {memory_mb: 512}");
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "man") == 0)
        print_man(config_keys, config_key_count);
    else if (strcmp(what, "runtimes") == 0)
        print_man(config_runtime_keys, config_runtime_key_count);
    else if (strcmp(what, "example") == 0)
        print_example();
    else {
        (void)fputs("usage: gen-server-config man|runtimes|example\n", stderr);
        return 2;
    }
    return 0;
}
