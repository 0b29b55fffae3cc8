/* SPDX-License-Identifier: MIT */
/* Hides lines of git's configuration: those with a login in a URL, and those that set a token, a password, a header of
 * requests or a command that prints a password. Comments count as well.
 *
 * A hidden setting becomes a comment. A hidden section becomes an unknown one, so that the settings below it belong to
 * no other. */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "policy/startup_syntax.h"

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether the first line that is no comment is a section: "[name". A shell's test is "[ ". */
bool startup_is_git(const struct startup_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        const char *text = lines->items[i].text + strspn(lines->items[i].text, " \t\r");
        if (*text && *text != '#' && *text != ';')
            return *text == '[' && is_alnum(text[1]);
    }
    return false;
}

/* ---- what a line sets ---- */

/* Whether the address before the '@' of a URL is a login. Of http it may be a token alone. */
static bool has_login(const char *text)
{
    for (const char *host = text; (host = strstr(host, "://"));) {
        const char *scheme = host;
        while (scheme > text && is_alnum(scheme[-1]))
            scheme--;
        bool web = strncasecmp(scheme, "http", 4) == 0;
        host += 3;
        const char *at = memchr(host, '@', strcspn(host, "/?# \t\r"));
        if (at && (web || memchr(host, ':', (size_t)(at - host))))
            return true;
    }
    return false;
}

static bool has_address(const struct startup_filters *filters, const char *text)
{
    return has_login(text) || startup_is_filtered(filters, "", 0, text);
}

/* Where the section of a line ends: after the ']' that is not in quotes; 0: the line has no section. */
static size_t section_end(const char *text)
{
    size_t at = strspn(text, " \t\r");
    bool quoted = false;
    if (text[at] != '[')
        return 0;
    for (; text[at]; at++) {
        if (text[at] == '\\' && quoted && text[at + 1])
            at++;
        else if (text[at] == '"')
            quoted = !quoted;
        else if (text[at] == ']' && !quoted)
            return at + 1;
    }
    return at;
}

struct setting {
    const char *section; /* its line, from the '[' on */
    const char *name;
    size_t length;
    const char *value;
};

static bool is_named(const struct setting *setting, const char *name)
{
    return strlen(name) == setting->length &&
           strncasecmp(setting->name, name, setting->length) == 0;
}

static bool is_in(const struct setting *setting, const char *section)
{
    size_t length = strlen(section);
    return strncasecmp(setting->section + 1, section, length) == 0 &&
           !is_alnum(setting->section[1 + length]);
}

static bool is_secret(const struct startup_filters *filters, const struct setting *setting)
{
    return startup_is_filtered(filters, setting->name, setting->length, setting->value) ||
           (is_in(setting, "http") && is_named(setting, "extraheader")) ||
           (is_named(setting, "helper") && strcasestr(setting->value, "password")) ||
           (is_named(setting, "proxy") && strchr(setting->value, '@'));
}

static void find_hit(struct startup_line *line, const struct startup_filters *filters,
                     const char **section)
{
    size_t end = section_end(line->text);
    if (end > 0)
        *section = strchr(line->text, '[');
    struct setting setting = {.section = *section, .name = line->text + end};
    setting.name += strspn(setting.name, " \t\r#;");
    while (is_alnum(setting.name[setting.length]) || setting.name[setting.length] == '-')
        setting.length++;
    setting.value = setting.name + setting.length;
    setting.value += strspn(setting.value, " \t=");
    if (setting.length > 0 && *setting.value && is_secret(filters, &setting))
        line->hit = (struct startup_hit){.at = (size_t)(setting.name - line->text),
                                         .name = setting.name,
                                         .length = setting.length};
    else if (!has_address(filters, line->text))
        return;
    line->has_hit = true;
}

static bool is_continued(const struct startup_line *line)
{
    size_t slashes = 0;
    while (slashes < line->length && line->text[line->length - 1 - slashes] == '\\')
        slashes++;
    return slashes % 2 == 1;
}

/* ---- markers ---- */

static void mark(struct startup_line *line, size_t number)
{
    size_t end = line->joined ? 0 : section_end(line->text);
    size_t blank = strspn(line->text, " \t");
    str_append_bytes(&line->marker, line->text, end > blank && line->hit.name ? end : blank);
    if (end > 0 && !line->hit.name)
        str_appendf(&line->marker, "[brig-hidden \"%zu\"]", number);
    str_append(&line->marker, end > 0 ? " " : "");
    startup_append_reason(line, number);
}

void startup_mark_git(struct startup_lines *lines, const struct startup_filters *filters)
{
    const char *section = "[";
    size_t number = 0;
    for (size_t i = 0; i < lines->count; i++) {
        struct startup_line *line = &lines->items[i];
        line->joined = i > 0 && is_continued(line - 1);
        if (line->joined)
            line->has_hit = has_address(filters, line->text);
        else
            find_hit(line, filters, &section);
    }
    startup_hide_statements(lines);
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].hidden)
            mark(&lines->items[i], ++number);
}
