/* SPDX-License-Identifier: MIT */
/* Hides lines of start-up files.
 *
 * Lines are recognised one by one, whatever is before them, so that a quote that this reader misunderstands cannot hide
 * an assignment from it. Quotes, continued lines and here-documents are followed only to find the other lines of the
 * same statement. The rest of the file must still be understood by the shell: a hidden command is replaced by ':', and
 * the words around it that belong to a compound command stay. */
#include "policy/startup.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "policy/policy.h"

#define NESTING_MAX 64
#define DELIMITER_MAX 63
#define NAME_SHOWN_MAX 64

/* A file, and the copies that editors make beside it: a name without wildcards is hidden before the file exists. */
#define WITH_COPIES(name) name, name "~", name ".swp", name ".bak", name ".orig"

const char *const startup_names[] = {
    WITH_COPIES(".bashrc"),
    WITH_COPIES(".bash_profile"),
    ".bash_login",
    ".bash_logout",
    WITH_COPIES(".bash_aliases"),
    ".bash_functions",
    ".bash_completion",
    WITH_COPIES(".profile"),
    ".shrc",
    ".shinit",
    WITH_COPIES(".zshrc"),
    WITH_COPIES(".zshenv"),
    WITH_COPIES(".zprofile"),
    ".zlogin",
    ".zlogout",
    ".config/fish/config.fish",
    ".kshrc",
    ".bashrc.local",
    ".profile.local",
    ".zshrc.local",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".pam_environment",
    ".environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    /* What else they read, and other copies: .zshrc.pre-oh-my-zsh. */
    ".*sh*[.~]*",
    ".profile[.~]*",
    ".z[lp]*[.~]*",
    ".x[ip]*[.~]*",
    ".bashrc.d/*",
    ".profile.d/*",
    ".zshrc.d/*",
    ".zsh/*",
    ".config/bash/*",
    ".config/zsh/*",
    ".oh-my-zsh/custom/*",
    ".config/fish/*",
    ".config/fish/conf.d/*",
    ".config/nushell/*",
    ".config/environment.d/*",
    ".config/plasma-workspace/env/*",
};
const size_t startup_name_count = ARRAY_LENGTH(startup_names);

/* ---- filters ---- */

int startup_rules_init(const struct brig_policy *policy, struct startup_rules *ret_rules,
                       struct brig_error *err)
{
    struct startup_rules rules = {.items = calloc(policy->env_count + 1, sizeof *rules.items)};
    for (size_t i = 0; i < policy->env_count; i++) {
        const struct policy_env *rule = &policy->env[i];
        if (rule->kind == POLICY_ENV_SET)
            continue;
        str_append_char(&rules.list, rule->kind == POLICY_ENV_UNSET ? '-' : '+');
        str_list_add(&rules.list, rule->name);
    }
    if (!rules.items || rules.list.failed) {
        startup_rules_done(&rules);
        return brig_fail_nomem(err);
    }
    for (const char *at = NULL; (at = str_list_next(&rules.list, at));)
        rules.items[rules.count++] = at;
    *ret_rules = rules;
    return 0;
}

void startup_rules_done(struct startup_rules *rules)
{
    str_done(&rules->list);
    free(take_ptr(&rules->items));
}

bool startup_filter_hides(const struct startup_filter *filter, const char *name, size_t name_length,
                          const char *value)
{
    bool hides = false;
    for (size_t i = 0; i < filter->count; i++) {
        const char *rule = filter->rules[i];
        bool address = strstr(rule, "://");
        if (hides == (*rule == '+') && (address || name_length > 0) &&
            policy_filter_matches(rule + 1, name, name_length, value))
            hides = !hides;
    }
    return hides;
}

struct filters {
    const struct startup_filter *items;
    size_t count;
};

static bool is_filtered(const struct filters *filters, const char *name, size_t length,
                        const char *value)
{
    for (size_t i = 0; i < filters->count; i++)
        if (startup_filter_hides(&filters->items[i], name, length, value))
            return true;
    return false;
}

/* ---- what a line sets ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

static bool ends_word(char c)
{
    return is_blank(c) || c == '"' || c == '\'';
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* The position after "=", "+=", "[index]=", "]=" or, in "${NAME:=value}" and alike, the operator; NULL: there is none. */
static const char *skip_assignment(const char *after, bool braced)
{
    if (braced) {
        const char *operator= after +(*after == ':');
        bool sets = *operator&& strchr("=-+", *operator) && operator[1] != '}';
        return sets ? operator+ 1 : NULL;
    }
    after += *after == ']'; /* an element of an array: [NAME]=value */
    if (*after == '[') {
        const char *closed = strchr(after, ']');
        after = closed ? closed + 1 : after;
    }
    after += *after == '"' || *after == '\'';
    after += *after == '+';
    return *after == '=' ? after + 1 : NULL;
}

/* In .pam_environment: "NAME DEFAULT=value". */
static bool is_pam(const char *after)
{
    after += strspn(after, " \t");
    return strncmp(after, "DEFAULT=", 8) == 0 || strncmp(after, "OVERRIDE=", 9) == 0;
}

/* In the files of Nushell: "$env.NAME = value". */
static const char *skip_spaced(const char *line, size_t start, const char *after)
{
    after += strspn(after, " \t");
    return start >= 5 && memcmp(line + start - 5, "$env.", 5) == 0 && *after == '=' ? after + 1
                                                                                    : NULL;
}

struct hit {
    size_t at;
    const char *name; /* NULL: a URL */
    size_t length;
};

/* A name in a line, and what comes after it. */
struct found_name {
    const char *name;
    size_t length;
    const char *value; /* NULL: it is not set here */
};

/* Words that stand before the name of a variable and its value. */
static bool is_setting_word(const char *word, size_t length)
{
    static const char *const words[] = {"set", "setenv", "read", "printf"};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (is_word(word, length, words[i]))
            return true;
    return false;
}

/* The next name that is set, from `*at` on; csh and fish write "set" and "setenv" before it. */
static bool next_set(const char *line, size_t *at, bool *words, struct found_name *ret_found)
{
    for (size_t i = *at; line[i];) {
        if (!is_name_char(line[i])) {
            i++;
            continue;
        }
        size_t start = i;
        while (is_name_char(line[i]))
            i++;
        const char *after = line + i;
        char before = start > 0 ? line[start - 1] : '\0';
        bool braced = before == '{' && start > 1 && line[start - 2] == '$';
        const char *value = before == '$' ? NULL : skip_assignment(after, braced);
        value = value ? value : skip_spaced(line, start, after);
        if (!value && !braced && ends_word(before) && ends_word(*after) &&
            (*words || is_pam(after)))
            value = after;
        *words = *words || is_setting_word(line + start, i - start);
        *ret_found = (struct found_name){line + start, i - start, value};
        *at = i;
        if (value)
            return true;
    }
    return false;
}

static bool begins_word(const char *line, const char *name)
{
    return name == line || ends_word(name[-1]) || strchr(";&|(", name[-1]);
}

/* Cuts the text before the next assignment, so that an address after that does not count for this one. */
static bool filtered_until(const struct filters *filters, const struct found_name *found,
                           const char *until)
{
    autofree char *value = strndup(found->value, (size_t)(until - found->value));
    return !value || is_filtered(filters, found->name, found->length, value);
}

/* Finds the first thing in a line, which ends with a NUL, that must be hidden. */
static bool find_hit(const struct filters *filters, const char *line, struct hit *ret_hit)
{
    struct found_name found = {.name = line, .value = line}, next;
    bool words = false;
    for (size_t at = 0;;) {
        bool more = next_set(line, &at, &words, &next);
        const char *until = more && next.name > found.value && begins_word(line, next.name)
                                ? next.name
                                : line + strlen(line);
        if (filtered_until(filters, &found, until)) {
            *ret_hit = (struct hit){.at = (size_t)(found.name - line),
                                    .name = found.length > 0 ? found.name : NULL,
                                    .length = found.length};
            return true;
        }
        if (!more)
            return false;
        found = next;
    }
}

/* ---- statements ---- */

/* What is open at the end of a line, and where the last command begins. */
struct reader {
    char nesting[NESTING_MAX]; /* ' " ` ( and {; A: a quote with escapes, $'…' */
    size_t depth;
    bool lost;    /* the nesting is too deep: all that follows is one statement */
    bool escaped; /* the line ends with a backslash */
    char delimiter[DELIMITER_MAX + 1];
    size_t delimiter_length; /* of a here-document */
    /* of the current line */
    size_t command;
    bool comment;
};

static char innermost(const struct reader *reader)
{
    return reader->depth > 0 ? reader->nesting[reader->depth - 1] : '\0';
}

static void enter(struct reader *reader, char c)
{
    if (reader->depth == NESTING_MAX)
        reader->lost = true;
    else
        reader->nesting[reader->depth++] = c;
}

static bool is_open(const struct reader *reader)
{
    return reader->depth > 0 || reader->escaped || reader->lost || reader->delimiter_length > 0;
}

/* Reads the delimiter after "<<"; returns how many characters it has. "<<<" is something else. */
static size_t read_delimiter(struct reader *reader, const char *text)
{
    size_t at = 0;
    if (text[at] == '<')
        return 1;
    at += text[at] == '-';
    at += strspn(text + at, " \t");
    at += strspn(text + at, "'\"\\");
    size_t length = strcspn(text + at, "'\" \t;|&<>()");
    if (is_name_char(text[at]) && text[at] <= '9')
        return at; /* a shift, in an arithmetic expression */
    if (length > DELIMITER_MAX)
        reader->lost = true;
    else
        memcpy(reader->delimiter, text + at, length);
    reader->delimiter_length = reader->lost ? 0 : length;
    return at + length + strspn(text + at + length, "'\"");
}

/* Whether a line ends the here-document. */
static bool is_delimiter(const struct reader *reader, const char *line)
{
    line += strspn(line, "\t");
    return is_word(reader->delimiter, reader->delimiter_length, line);
}

/* Words after which a command begins. */
static bool opens_command(const char *word, size_t length)
{
    static const char *const words[] = {"then", "do",    "else",  "if",  "elif",
                                        "{",    "while", "until", "not", "!"};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (is_word(word, length, words[i]))
            return true;
    return false;
}

/* One character inside of quotes. Returns how many were read. */
static size_t read_quoted(struct reader *reader, const char *text)
{
    char inside = innermost(reader);
    if (text[0] == '\\' && inside != '\'') {
        reader->escaped = !text[1];
        return text[1] ? 2 : 1;
    }
    if (inside == '"' && text[0] == '$' && (text[1] == '(' || text[1] == '{')) {
        enter(reader, text[1]);
        return 2;
    }
    if (inside == '"' && text[0] == '`')
        enter(reader, '`');
    else if (text[0] == (inside == 'A' ? '\'' : inside))
        reader->depth--;
    return 1;
}

static bool closes(char inside, char c)
{
    return (inside == '(' && c == ')') || (inside == '{' && c == '}') ||
           (inside == '`' && c == '`');
}

/* One character outside of quotes. Returns how many were read. */
static size_t read_plain(struct reader *reader, const char *line, size_t at)
{
    const char *text = line + at;
    bool begins = at == 0 || is_blank(text[-1]) || strchr(";&|(", text[-1]);
    if (text[0] == '\\') {
        reader->escaped = !text[1];
        return text[1] ? 2 : 1;
    }
    if (text[0] == '#' && begins) {
        reader->comment = true;
        if (reader->depth == 0)
            reader->command = at;
        return strlen(text);
    }
    if (strncmp(text, "<<", 2) == 0)
        return 2 + read_delimiter(reader, text + 2);
    if (text[0] == '$' && text[1] && strchr("({'", text[1])) {
        enter(reader, text[1] == '\'' ? 'A' : text[1]);
        return 2;
    }
    if (closes(innermost(reader), text[0]))
        reader->depth--;
    else if (strchr("'\"`(", text[0]))
        enter(reader, text[0]);
    else if (reader->depth == 0 && strchr(";&|)", text[0]))
        reader->command = at + 1;
    return 1;
}

/* Reads a line up to `end`. */
static void read_line(struct reader *reader, const char *line, size_t end)
{
    reader->command = 0;
    reader->comment = reader->escaped = false;
    if (reader->delimiter_length > 0) {
        if (is_delimiter(reader, line))
            reader->delimiter_length = 0;
        return;
    }
    for (size_t at = 0; at < end;) {
        char inside = innermost(reader);
        if (inside && strchr("'\"A", inside)) {
            at += read_quoted(reader, line + at);
            continue;
        }
        size_t word = 0;
        if (reader->depth == 0 && (at == 0 || is_blank(line[at - 1]) || line[at - 1] == ';'))
            word = strcspn(line + at, " \t\r;");
        if (word > 0 && at + word <= end && opens_command(line + at, word)) {
            at += word;
            reader->command = at;
        } else {
            at += read_plain(reader, line, at);
        }
    }
}

/* ---- lines ---- */

struct line {
    const char *text; /* ended by a NUL */
    size_t length;
    bool joined; /* with the line before: one statement */
    bool hidden;
    bool ended; /* by a newline */
    struct hit hit;
    bool has_hit;
    struct str marker; /* in place of a hidden line */
};

struct lines {
    char *bytes;
    struct line *items;
    size_t count;
};

static void lines_done(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        str_done(&lines->items[i].marker);
    free(lines->items);
    free(lines->bytes);
}

/* Splits a text; a NUL in it becomes a space, so that nothing hides after one. */
static int lines_read(struct lines *lines, const char *text, size_t length, struct brig_error *err)
{
    size_t count = 1, at = 0;
    for (size_t i = 0; i < length; i++)
        count += text[i] == '\n';
    lines->bytes = malloc(length + 1);
    lines->items = calloc(count, sizeof *lines->items);
    if (!lines->bytes || !lines->items)
        return brig_fail_nomem(err);
    if (length > 0)
        memcpy(lines->bytes, text, length);
    for (size_t i = 0; i < length; i++)
        if (!lines->bytes[i])
            lines->bytes[i] = ' ';
    lines->bytes[length] = '\0';
    while (at < length) {
        char *start = lines->bytes + at, *newline = memchr(start, '\n', length - at);
        size_t size = newline ? (size_t)(newline - start) : length - at;
        start[size] = '\0';
        lines->items[lines->count++] =
            (struct line){.text = start, .length = size, .ended = newline != NULL};
        at += size + 1;
    }
    return 0;
}

/* Hides the lines from one on that are open according to a reader that knows nothing of the lines before. */
static void hide_open(struct lines *lines, size_t from)
{
    struct reader reader = {0};
    for (size_t i = from; i < lines->count; i++) {
        lines->items[i].hidden = true;
        read_line(&reader, lines->items[i].text, lines->items[i].length);
        if (!is_open(&reader))
            return;
    }
}

static void choose(struct lines *lines, const struct filters *filters)
{
    struct reader reader = {0};
    for (size_t i = 0; i < lines->count; i++) {
        struct line *line = &lines->items[i];
        line->joined = i > 0 && is_open(&reader);
        line->has_hit = find_hit(filters, line->text, &line->hit);
        read_line(&reader, line->text, line->length);
    }
    for (size_t first = 0, next; first < lines->count; first = next) {
        bool hidden = lines->items[first].has_hit;
        for (next = first + 1; next < lines->count && lines->items[next].joined; next++)
            hidden = hidden || lines->items[next].has_hit;
        for (size_t i = first; i < next && hidden; i++)
            lines->items[i].hidden = true;
    }
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].has_hit && lines->items[i].joined)
            hide_open(lines, i);
}

/* ---- markers ---- */

/* How much of the end of a line closes a compound command: the words below, ';', '&&' and the like. */
static size_t closing_length(const char *line, size_t from, size_t length)
{
    static const char *const words[] = {";",     ";;",   ";&", "}", "fi",   "done", "esac", "end",
                                        "endif", "then", "do", "{", "else", "&&",   "||",   "|"};
    size_t kept = length;
    for (;;) {
        size_t end = kept, found = 0;
        while (end > from && is_blank(line[end - 1]))
            end--;
        for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
            size_t size = strlen(words[i]);
            if (end < from + size + 1 || memcmp(line + end - size, words[i], size) != 0)
                continue;
            char before = line[end - size - 1];
            if (size > found && (*words[i] == ';' || is_blank(before) || before == ';'))
                found = size;
        }
        if (found == 0)
            return length - kept;
        kept = end - found;
    }
}

static void mark(struct line *line, size_t number, bool alone)
{
    struct str *marker = &line->marker;
    struct reader reader = {0};
    bool first = !line->joined && line->has_hit;
    if (first)
        read_line(&reader, line->text, line->hit.at);
    size_t from = first ? reader.command : 0;
    size_t closing = alone && !reader.comment ? closing_length(line->text, from, line->length) : 0;
    str_append_bytes(marker, line->text, from);
    if (from > 0 && !is_blank(line->text[from - 1]))
        str_append_char(marker, ' ');
    if (from == 0)
        str_append_bytes(marker, line->text, strspn(line->text, " \t"));
    str_append(marker, reader.comment ? "" : ": ");
    if (closing > 0) {
        str_append_bytes(marker, line->text + line->length - closing, closing);
        str_append_char(marker, ' ');
    }
    str_appendf(marker, "# brig: hidden line %zu", number);
    if (line->has_hit && line->hit.name)
        str_appendf(marker, ", which sets %.*s",
                    (int)(line->hit.length < NAME_SHOWN_MAX ? line->hit.length : NAME_SHOWN_MAX),
                    line->hit.name);
    else if (line->has_hit)
        str_append(marker, ", which has a URL with a password");
}

static int prepare(struct lines *lines, const struct filters *filters, const char *text,
                   size_t length, struct brig_error *err)
{
    size_t number = 0;
    int status = lines_read(lines, text, length, err);
    if (status < 0)
        return status;
    choose(lines, filters);
    for (size_t i = 0; i < lines->count; i++) {
        struct line *line = &lines->items[i];
        bool last = i + 1 == lines->count || !lines->items[i + 1].joined;
        if (line->hidden)
            mark(line, ++number, last);
        if (line->marker.failed)
            return brig_fail_nomem(err);
    }
    return 0;
}

/* ---- texts ---- */

void startup_text_done(struct startup_text *text)
{
    str_done(&text->text);
    str_done(&text->names);
}

static void note_name(struct str *names, const struct hit *hit)
{
    autofree char *name = strndup(hit->name ? hit->name : "", hit->length);
    if (name && !str_list_has(names, name))
        str_list_add(names, name);
}

int startup_hide(const struct startup_filter *filters, size_t filter_count, const char *text,
                 size_t length, struct startup_text *ret_text, struct brig_error *err)
{
    const struct filters all = {filters, filter_count};
    __attribute__((cleanup(lines_done))) struct lines lines = {0};
    struct startup_text made = {0};
    int status = prepare(&lines, &all, text, length, err);
    size_t at = 0;
    for (size_t i = 0; i < lines.count && status == 0; i++) {
        const struct line *line = &lines.items[i];
        if (line->hidden)
            str_append_bytes(&made.text, line->marker.data, line->marker.length);
        else
            str_append_bytes(&made.text, text + at, line->length);
        if (line->ended)
            str_append_char(&made.text, '\n');
        made.hidden += line->hidden;
        if (line->has_hit)
            note_name(&made.names, &line->hit);
        at += line->length + 1;
    }
    if (status == 0 && (made.text.failed || made.names.failed))
        status = brig_fail_nomem(err);
    if (status < 0)
        startup_text_done(&made);
    else
        *ret_text = made;
    return status;
}

/* The hidden line whose marker this is; -1: it is another line. */
static ssize_t find_marker(const struct lines *lines, const char *text, size_t length)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].hidden && lines->items[i].marker.length == length &&
            memcmp(lines->items[i].marker.data, text, length) == 0)
            return (ssize_t)i;
    return -1;
}

static size_t next_hidden(const struct lines *lines, size_t at)
{
    while (at < lines->count && !lines->items[at].hidden)
        at++;
    return at;
}

int startup_restore(const struct startup_filter *filters, size_t filter_count,
                    const struct str *user, const struct str *jail, struct str *ret_text,
                    struct brig_error *err)
{
    const struct filters all = {filters, filter_count};
    __attribute__((cleanup(lines_done))) struct lines lines = {0};
    int status = prepare(&lines, &all, user->data, user->length, err);
    if (status < 0)
        return status;
    size_t expected = next_hidden(&lines, 0);
    for (size_t at = 0; at < jail->length;) {
        const char *start = jail->data + at, *newline = memchr(start, '\n', jail->length - at);
        size_t length = newline ? (size_t)(newline - start) : jail->length - at;
        ssize_t found = find_marker(&lines, start, length);
        if (found >= 0 && (size_t)found != expected)
            return 0;
        if (found >= 0) {
            size_t from = (size_t)(lines.items[found].text - lines.bytes);
            str_append_bytes(ret_text, user->data + from, lines.items[found].length);
            expected = next_hidden(&lines, expected + 1);
        } else {
            str_append_bytes(ret_text, start, length);
        }
        if (newline)
            str_append_char(ret_text, '\n');
        at += length + 1;
    }
    if (ret_text->failed)
        return brig_fail_nomem(err);
    return expected == lines.count;
}
