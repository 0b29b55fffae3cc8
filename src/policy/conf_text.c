/* SPDX-License-Identifier: MIT */
/* The text of .conf files: lines, escapes and variables. */
#include "policy/conf_text.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "policy/conf.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

/* Makes room for the next text; unless that failed, its data is a string from now on. */
static void start(struct str *s)
{
    s->length = 0;
    str_append(s, "");
}

/* ---- Lines -------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool line_ended(const struct conf_cursor *cursor)
{
    return cursor->at == cursor->end || *cursor->at == '\n';
}

static void skip_blanks(struct conf_cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at))
        cursor->at++;
}

bool conf_find_directive(struct conf_cursor *cursor)
{
    for (;;) {
        skip_blanks(cursor);
        if (cursor->at < cursor->end && *cursor->at == '#')
            while (!line_ended(cursor))
                cursor->at++;
        if (cursor->at == cursor->end)
            return false;
        if (*cursor->at != '\n')
            return true;
        cursor->at++;
        cursor->line++;
    }
}

void conf_read_name(struct conf_cursor *cursor, struct str *name)
{
    const char *from = cursor->at;
    while (!line_ended(cursor) && !is_blank(*cursor->at) && *cursor->at != '=')
        cursor->at++;
    start(name);
    str_append_bytes(name, from, (size_t)(cursor->at - from));
}

bool conf_find_value(struct conf_cursor *cursor)
{
    skip_blanks(cursor);
    if (line_ended(cursor))
        return false;
    if (*cursor->at == '=') {
        cursor->at++;
        skip_blanks(cursor);
    }
    return true;
}

/* ---- Values ------------------------------------------------------------------------------- */

/* Appends a dollar sign that conf_expand() takes as it is: the backslashes before it become odd in
 * number, if they are not. */
static void append_quoted_dollar(struct str *text)
{
    size_t backslashes = 0;
    while (backslashes < text->length && text->data[text->length - 1 - backslashes] == '\\')
        backslashes++;
    str_append(text, backslashes % 2 == 0 ? "\\$" : "$");
}

/* Reads what is behind a backslash; true if that was a character and not the end of a line. */
static bool read_escape(struct conf_cursor *cursor, bool expands, struct str *value)
{
    while (cursor->at < cursor->end && *cursor->at == '\r')
        cursor->at++;
    if (cursor->at == cursor->end)
        return false;
    char c = *cursor->at++;
    switch (c) {
    case '\n':
        cursor->line++;
        skip_blanks(cursor);
        return false;
    case 't':
        str_append_char(value, '\t');
        return true;
    case 'r':
        str_append_char(value, '\r');
        return true;
    case 'n':
        str_append_char(value, '\n');
        return true;
    default:
        if (c == '$' && expands)
            append_quoted_dollar(value);
        else
            str_append_char(value, c);
        return true;
    }
}

void conf_read_value(struct conf_cursor *cursor, bool expands, struct str *value)
{
    size_t kept = 0; /* what is escaped is not trimmed, nor what is before it */
    start(value);
    while (!line_ended(cursor)) {
        char c = *cursor->at++;
        if (c == '\\') {
            if (read_escape(cursor, expands, value))
                kept = value->length;
        } else if (c != '\r') {
            str_append_char(value, c);
        }
    }
    if (value->failed)
        return;
    while (value->length > kept && is_blank(value->data[value->length - 1]))
        value->length--;
    value->data[value->length] = '\0';
}

/* ---- Variables ---------------------------------------------------------------------------- */

/* Appends the value of the variable that *at, at "${", names, and goes behind it. */
static int expand_variable(const struct conf_hooks *hooks, char **at, struct str *value,
                           struct brig_error *err)
{
    char *name = *at + strlen("${");
    char *end = strchr(name, '}');
    if (!end)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'${' without '}': close it, or write '\\${' for just these characters");
    *end = '\0';
    /* What a shell would take, "${A:-b}" say, would silently be nothing here. */
    if (!*name || strchr("0123456789", *name) || name[strspn(name, NAME_CHARACTERS)])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'${%s}' names no variable: a name has only letters, digits and '_'; "
                         "write '\\${' for just these characters",
                         str_shown(name).text);
    const char *found = hooks->variable(hooks->context, name);
    if (found)
        str_append(value, found);
    *at = end + 1;
    return 0;
}

int conf_expand(const struct conf_hooks *hooks, struct str *written, struct str *value,
                struct brig_error *err)
{
    start(value);
    for (char *p = written->data; *p;) {
        if (p[0] == '\\' && (p[1] == '\\' || p[1] == '$')) {
            str_append_char(value, p[1]);
            p += 2;
        } else if (p[0] == '$' && p[1] == '{') {
            int rc = expand_variable(hooks, &p, value, err);
            if (rc < 0)
                return rc;
        } else {
            str_append_char(value, *p++);
        }
        if (value->length > CONF_LINE_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the value is longer than %zu bytes with its variables: use shorter "
                             "ones",
                             CONF_LINE_MAX);
    }
    return value->failed ? brig_fail_nomem(err) : 0;
}
