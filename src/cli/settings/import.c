/* SPDX-License-Identifier: MIT */
/* Converts configuration files of jai, line by line. */
#include "cli/settings/import.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "cli/settings/options.h"
#include "cli/settings/profile.h"

#define NAME_MAX_LENGTH 64
#define VALUE_MAX 4096

/* A line that begins a directive. */
struct line {
    const char *text;
    size_t length;              /* without the newline */
    char name[NAME_MAX_LENGTH]; /* "": a comment, an empty line, or the continuation of another */
    char value[VALUE_MAX];
    const char *value_at; /* in the text */
    bool continues;       /* the next line continues this one */
};

/* Reads the line at *at, which is moved to the next one; false at the end. */
static bool next_line(const char **at, bool continued, struct line *ret)
{
    if (**at == '\0')
        return false;
    *ret = (struct line){.text = *at, .length = strcspn(*at, "\n")};
    *at += ret->length + ((*at)[ret->length] == '\n');
    size_t backslashes = 0;
    while (backslashes < ret->length && ret->text[ret->length - 1 - backslashes] == '\\')
        backslashes++;
    ret->continues = backslashes % 2 == 1;
    size_t from = strspn(ret->text, " \t\r");
    if (continued || from >= ret->length || ret->text[from] == '#')
        return true;
    size_t length = strcspn(ret->text + from, " \t\r\n=");
    ret->value_at = ret->text + from + length;
    ret->value_at += strspn(ret->value_at, " \t");
    ret->value_at += *ret->value_at == '=';
    ret->value_at += strspn(ret->value_at, " \t");
    size_t rest = (size_t)(ret->text + ret->length - ret->value_at);
    while (rest > 0 && strchr(" \t\r", ret->value_at[rest - 1]))
        rest--;
    if (length < sizeof ret->name)
        memcpy(ret->name, ret->text + from, length);
    if (rest < sizeof ret->value)
        memcpy(ret->value, ret->value_at, rest);
    return true;
}

static bool is_known(const char *name)
{
    const struct option_row *row = option_find_long(name, strlen(name));
    return (row && row->group != OPTION_GROUP_RUN) || profile_word(name) >= 0;
}

static bool is_script(const char *name)
{
    return str_starts_with(name, "script") || str_starts_with(name, "initjail");
}

/* The user is asked before anything is imported, and has to know about these. jai has no `inject`. */
static bool runs_outside(const char *name)
{
    return str_starts_with(name, "initjail") || str_starts_with(name, "inject");
}

static bool is_elsewhere(const struct line *line)
{
    return is_script(line->name) && line->value[0] != '/' && strchr(line->value, '/');
}

void import_convert(const char *text, const char *dir, struct str *to, struct str *notes)
{
    struct line line = {0};
    bool commented = false;
    for (unsigned number = 1; next_line(&text, line.continues, &line); number++) {
        bool storage = strcmp(line.name, "storage") == 0;
        bool unknown = line.name[0] != '\0' && !is_known(line.name);
        if (line.name[0] != '\0')
            commented = storage || unknown;
        if (storage)
            str_appendf(notes, "%u: 'storage' is left out: brig keeps its jails apart\n", number);
        else if (unknown)
            str_appendf(notes, "%u: brig has no '%s'\n", number, str_shown(line.name).text);
        else if (runs_outside(line.name))
            str_appendf(notes, "%u: '%s' can run a program outside of jails\n", number, line.name);
        str_append(to, commented ? "# " : "");
        if (is_elsewhere(&line)) {
            str_appendf(notes, "%u: the file is named with its directory\n", number);
            str_append_bytes(to, line.text, (size_t)(line.value_at - line.text));
            str_concat(to, dir, "/", line.value);
        } else {
            str_append_bytes(to, line.text, line.length);
        }
        str_append_char(to, '\n');
        commented = commented && line.continues;
    }
}

void import_scan(const char *text, const struct import_hooks *hooks)
{
    struct line line = {0};
    while (next_line(&text, line.continues, &line)) {
        if (is_script(line.name) && line.value[0] != '\0' && !strchr(line.value, '/'))
            hooks->script(hooks->context, line.value);
        else if (strcmp(line.name, "storage") == 0)
            hooks->storage(hooks->context, line.value);
    }
}
