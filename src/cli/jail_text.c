/* SPDX-License-Identifier: MIT */
/* Changing the text of a NAME.jail file. */
#include "cli/jail_text.h"

#include <string.h>

void jail_text_quote(struct str *out, const char *value)
{
    for (const char *at = value; *at; at++) {
        bool end = at == value || at[1] == '\0';
        switch (*at) {
        case '\n':
            str_append(out, "\\n");
            break;
        case '\r':
            str_append(out, "\\r");
            break;
        case '\t':
            str_append(out, "\\t");
            break;
        case '\\': /* it is read twice: once for its own sake, and once for variables */
            str_append(out, "\\\\\\\\");
            break;
        default:
            /* Blanks at the ends would be dropped, and a first '=' taken for what is before a value. */
            if (*at == '$' || (end && (*at == ' ' || *at == '=')))
                str_append_char(out, '\\');
            str_append_char(out, *at);
        }
    }
}

/* Whether a line, without its end, goes on in the next. */
static bool is_continued(const char *line, size_t length)
{
    size_t backslashes = 0;
    while (backslashes < length && line[length - 1 - backslashes] == '\\')
        backslashes++;
    return backslashes % 2 == 1;
}

static bool is_line(const char *line, size_t length, const char *name, const struct str *value)
{
    size_t name_length = strlen(name);
    return length == name_length + 1 + value->length && memcmp(line, name, name_length) == 0 &&
           line[name_length] == ' ' &&
           (value->length == 0 || memcmp(line + name_length + 1, value->data, value->length) == 0);
}

void jail_text_set_mask(struct str *out, const char *text, size_t length, const char *value,
                        bool unmask)
{
    struct str quoted = {0};
    jail_text_quote(&quoted, value);
    bool continues = false;
    for (size_t at = 0; at < length && !quoted.failed;) {
        const char *line = text + at;
        const char *end = memchr(line, '\n', length - at);
        size_t size = end ? (size_t)(end - line) : length - at;
        at += size + 1;
        bool says = !continues && (is_line(line, size, "mask", &quoted) ||
                                   is_line(line, size, "unmask", &quoted));
        continues = is_continued(line, size);
        if (says)
            continue;
        str_append_bytes(out, line, size);
        str_append_char(out, '\n');
    }
    if (continues) /* the last line ends in a backslash: what follows must not be taken for a part of it */
        str_append_char(out, '\n');
    str_appendf(out, "%s %s\n", unmask ? "unmask" : "mask", quoted.failed ? "" : quoted.data);
    out->failed = out->failed || quoted.failed;
    str_done(&quoted);
}
