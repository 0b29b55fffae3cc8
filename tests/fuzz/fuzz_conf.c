/* SPDX-License-Identifier: MIT */
/* The .conf language from any bytes, which include parts of themselves. Whatever is handed on can be
 * written as a line that is read as the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <brig/brig.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "policy/conf.h"

struct input {
    const char *text;
    size_t length;
};

static void expect(bool condition)
{
    if (!condition)
        abort();
}

/* Names that end in 'e' are expanded. */
static bool on_expands(void *context, const char *name)
{
    (void)context;
    return name[strlen(name) - 1] == 'e';
}

static const char *on_variable(void *context, const char *name)
{
    (void)context;
    return name[0] == 'A' ? " ${A}\\$\n " : NULL;
}

/* The value with everything quoted that could be taken for something else. */
static void quote(struct str *line, const char *value, bool expands)
{
    for (const char *p = value; *p; p++) {
        switch (*p) {
        case '\n':
            str_append(line, "\\n");
            break;
        case '\r':
            str_append(line, "\\r");
            break;
        case '\\':
            str_append(line, expands ? "\\\\\\\\" : "\\\\");
            break;
        case ' ':
        case '\t':
        case '$':
        case '=':
            str_append_char(line, '\\');
            str_append_char(line, *p == '\t' ? 't' : *p);
            break;
        default:
            str_append_char(line, *p);
        }
    }
}

static int on_same(void *context, const struct conf_directive *directive, struct brig_error *err)
{
    const struct conf_directive *wanted = context;
    (void)err;
    expect(directive->line == 1);
    expect(str_equal(directive->name, wanted->name));
    expect(str_equal(directive->value, wanted->value));
    return 0;
}

static void read_again(const struct conf_directive *directive)
{
    struct conf_directive wanted = *directive;
    struct conf_hooks hooks = {
        .context = &wanted,
        .directive = on_same,
        .expands = on_expands,
        .variable = on_variable,
    };
    struct brig_error err = {0};
    autostr struct str line = {0};
    str_append(&line, directive->name);
    if (directive->value) {
        str_append(&line, " = ");
        quote(&line, directive->value, on_expands(NULL, directive->name));
    }
    if (line.failed || line.length > CONF_LINE_MAX)
        return;
    const struct conf_source source = {
        .name = (char *)(uintptr_t) "again", .text = line.data, .length = line.length};
    expect(conf_read(&source, &hooks, &err) == 0);
}

static int on_directive(void *context, const struct conf_directive *directive,
                        struct brig_error *err)
{
    const struct input *in = context;
    (void)err;
    expect(directive->line >= 1 && directive->line <= in->length);
    expect(directive->name[0] != '\0' && directive->name[0] != '#');
    expect(!strpbrk(directive->name, " \t\r\n="));
    expect(strcmp(directive->name, "conf") != 0 && strcmp(directive->name, "conf?") != 0);
    expect(!directive->value || strlen(directive->value) <= CONF_LINE_MAX);
    read_again(directive);
    return 0;
}

/* "n…" is missing; any other is the text from the place of its length on, the whole one being a
 * file that is the same every time. */
static int on_include(void *context, const char *name, bool optional,
                      struct conf_source *ret_source, struct brig_error *err)
{
    const struct input *in = context;
    if (name[0] == 'n') {
        err->code = BRIG_E_INVALID;
        return optional ? 0 : BRIG_E_INVALID;
    }
    size_t from = strlen(name) < in->length ? strlen(name) : in->length;
    size_t length = in->length - from;
    *ret_source = (struct conf_source){
        .name = strdup("part"),
        .text = malloc(length > 0 ? length : 1),
        .length = length,
        .ino = from + 1,
    };
    expect(ret_source->name && ret_source->text);
    if (length > 0)
        memcpy(ret_source->text, in->text + from, length);
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {(const char *)data, size};
    struct conf_hooks hooks = {
        .context = &in,
        .directive = on_directive,
        .expands = on_expands,
        .variable = on_variable,
        .include = on_include,
    };
    struct brig_error err = {0};
    const struct conf_source source = {.name = (char *)(uintptr_t) "input",
                                       .text = (char *)(uintptr_t)in.text,
                                       .length = in.length};
    int rc = conf_read(&source, &hooks, &err);
    expect(rc == 0 || rc == BRIG_E_INVALID);
    if (rc < 0)
        expect(str_starts_with(err.message, "input:") || str_starts_with(err.message, "part:"));
    return 0;
}
