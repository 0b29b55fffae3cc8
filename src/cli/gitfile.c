/* SPDX-License-Identifier: MIT */
/* The few files of git that say where a repository is. */
#include "cli/gitfile.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

int gitfile_parse_path(const char *text, size_t length, char ret_path[GITFILE_PATH_SIZE])
{
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        length--;
    if (length == 0 || length >= GITFILE_PATH_SIZE || memchr(text, '\0', length) ||
        memchr(text, '\n', length))
        return 0;
    memcpy(ret_path, text, length);
    ret_path[length] = '\0';
    return 1;
}

int gitfile_parse_gitdir(const char *text, size_t length, char ret_path[GITFILE_PATH_SIZE])
{
    static const char prefix[] = "gitdir: ";
    const size_t prefix_length = sizeof prefix - 1;
    if (length <= prefix_length || memcmp(text, prefix, prefix_length) != 0)
        return 0;
    return gitfile_parse_path(text + prefix_length, length - prefix_length, ret_path);
}

/* ---- config ---- */

enum section { SECTION_OTHER, SECTION_CORE, SECTION_INCLUDE };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static size_t name_length(const char *at, const char *end)
{
    const char *start = at;
    while (at < end && (*at == '-' || *at == '.' || (*at >= '0' && *at <= '9') ||
                        (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')))
        at++;
    return (size_t)(at - start);
}

static bool is_word(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp(at, word, length) == 0;
}

/* "[core]" at `at`: the section, and where the rest of the line begins; NULL if it is malformed. A
 * section with a part in quotes is another one, but for conditional includes. */
static const char *read_section(const char *at, const char *end, enum section *ret_section)
{
    size_t length = name_length(++at, end);
    bool plain = at + length < end && at[length] == ']';
    *ret_section = SECTION_OTHER;
    if (plain && is_word(at, length, "core"))
        *ret_section = SECTION_CORE;
    if (is_word(at, length, "include") || is_word(at, length, "includeIf"))
        *ret_section = SECTION_INCLUDE;
    at += length;
    bool quoted = false;
    for (; at < end && (quoted || *at != ']'); at++) {
        if (quoted && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            quoted = !quoted;
    }
    return length > 0 && at < end ? at + 1 : NULL;
}

/* A value up to the end of its line. Continuation lines are refused: git writes none for a path. */
static bool read_value(const char *at, const char *end, char ret_value[GITFILE_PATH_SIZE])
{
    static const char escapes[] = "\\\"ntb", meanings[] = "\\\"\n\t\b";
    size_t used = 0, kept = 0; /* blanks at the end are not part of it */
    bool quoted = false;
    for (at = skip_blanks(at, end); at < end; at++) {
        char c = *at;
        if (c == '"') {
            quoted = !quoted;
            kept = used;
            continue;
        }
        if (!quoted && (c == '#' || c == ';'))
            break;
        if (c == '\\') {
            const char *known = ++at < end && *at ? strchr(escapes, *at) : NULL;
            if (!known)
                return false;
            c = meanings[known - escapes];
        }
        if (c == '\0' || used >= GITFILE_PATH_SIZE - 1)
            return false;
        ret_value[used++] = c;
        if (quoted || !is_blank(c))
            kept = used;
    }
    ret_value[kept] = '\0';
    return !quoted && kept > 0;
}

/* One "name = value" of the section core: false if it is worktree, and its value is malformed. */
static bool read_variable(const char *at, const char *end, char value[GITFILE_PATH_SIZE],
                          bool *found)
{
    size_t length = name_length(at, end);
    bool wanted = is_word(at, length, "worktree");
    at = skip_blanks(at + length, end);
    if (!wanted)
        return length > 0;
    *found = true;
    return at < end && *at == '=' && read_value(at + 1, end, value);
}

int gitfile_parse_worktree(const char *text, size_t length, char ret_path[GITFILE_PATH_SIZE])
{
    const char *end = text + length;
    char value[GITFILE_PATH_SIZE];
    enum section section = SECTION_OTHER;
    bool found = false, continued = false;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;
        const char *at = skip_blanks(line, line_end);
        bool goes_on = line_end > line && line_end[-1] == '\\';
        if (!continued && at < line_end && *at == '[' &&
            !(at = read_section(at, line_end, &section)))
            return 0;
        at = skip_blanks(at, line_end);
        if (section == SECTION_INCLUDE)
            return 0;
        bool empty = continued || at == line_end || *at == '#' || *at == ';';
        if (!empty && section == SECTION_CORE && !read_variable(at, line_end, value, &found))
            return 0;
        continued = goes_on;
        line = newline ? newline + 1 : end;
    }
    if (!found)
        return 0;
    memcpy(ret_path, value, strlen(value) + 1);
    return 1;
}
