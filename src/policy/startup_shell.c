/* SPDX-License-Identifier: MIT */
/* Hides lines of start-up files of shells.
 *
 * Lines are recognised one by one, whatever is before them, so that a quote that this reader misunderstands cannot hide
 * an assignment from it. Quotes, continued lines and here-documents are followed only to find the other lines of the
 * same statement. The rest of the file must still be understood by the shell: a hidden command is replaced by ':', and
 * the words around it that belong to a compound command stay. */
#include <string.h>

#include "base/cleanup.h"
#include "policy/startup_syntax.h"

#define NESTING_MAX 64
#define DELIMITER_MAX 63

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
static bool filtered_until(const struct startup_filters *filters, const struct found_name *found,
                           const char *until)
{
    autofree char *value = strndup(found->value, (size_t)(until - found->value));
    return !value || startup_is_filtered(filters, found->name, found->length, value);
}

/* Finds the first thing in a line, which ends with a NUL, that must be hidden. */
static bool find_hit(const struct startup_filters *filters, const char *line,
                     struct startup_hit *ret_hit)
{
    struct found_name found = {.name = line, .value = line}, next;
    bool words = false;
    for (size_t at = 0;;) {
        bool more = next_set(line, &at, &words, &next);
        const char *until = more && next.name > found.value && begins_word(line, next.name)
                                ? next.name
                                : line + strlen(line);
        if (filtered_until(filters, &found, until)) {
            *ret_hit = (struct startup_hit){.at = (size_t)(found.name - line),
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

/* Hides the lines from one on that are open according to a reader that knows nothing of the lines before. */
static void hide_open(struct startup_lines *lines, size_t from)
{
    struct reader reader = {0};
    for (size_t i = from; i < lines->count; i++) {
        lines->items[i].hidden = true;
        read_line(&reader, lines->items[i].text, lines->items[i].length);
        if (!is_open(&reader))
            return;
    }
}

static void choose(struct startup_lines *lines, const struct startup_filters *filters)
{
    struct reader reader = {0};
    for (size_t i = 0; i < lines->count; i++) {
        struct startup_line *line = &lines->items[i];
        line->joined = i > 0 && is_open(&reader);
        line->has_hit = find_hit(filters, line->text, &line->hit);
        read_line(&reader, line->text, line->length);
    }
    startup_hide_statements(lines);
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

static void mark(struct startup_line *line, size_t number, bool alone)
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
    startup_append_reason(line, number);
}

void startup_mark_shell(struct startup_lines *lines, const struct startup_filters *filters)
{
    size_t number = 0;
    choose(lines, filters);
    for (size_t i = 0; i < lines->count; i++) {
        bool last = i + 1 == lines->count || !lines->items[i + 1].joined;
        if (lines->items[i].hidden)
            mark(&lines->items[i], ++number, last);
    }
}
