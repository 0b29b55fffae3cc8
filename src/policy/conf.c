/* SPDX-License-Identifier: MIT */
/* The .conf syntax: text in, directives out, with included files in place. */
#include "policy/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/str.h"

#define CONF_SUFFIX ".conf"
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

/* The position in a text, which contains no NUL. */
struct cursor {
    const char *at;
    const char *end;
    unsigned line; /* the line number of `at` */
};

/* Empties the string for the next text; unless it has failed, its data is not NULL afterwards. */
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

static bool line_ended(const struct cursor *cursor)
{
    return cursor->at == cursor->end || *cursor->at == '\n';
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at))
        cursor->at++;
}

/* Skips blank lines and comments to the start of the next directive; false at the end. */
static bool find_directive(struct cursor *cursor)
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

/* Reads the name at the cursor; empty if the line begins with '='. */
static void read_name(struct cursor *cursor, struct str *name)
{
    const char *from = cursor->at;
    while (!line_ended(cursor) && !is_blank(*cursor->at) && *cursor->at != '=')
        cursor->at++;
    start(name);
    str_append_bytes(name, from, (size_t)(cursor->at - from));
}

/* Moves from the end of the name to the value; false if there is none. */
static bool find_value(struct cursor *cursor)
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

/* Appends a dollar sign that expand() takes literally: makes the number of backslashes before it
 * odd. */
static void append_quoted_dollar(struct str *text)
{
    size_t backslashes = 0;
    while (backslashes < text->length && text->data[text->length - 1 - backslashes] == '\\')
        backslashes++;
    str_append(text, backslashes % 2 == 0 ? "\\$" : "$");
}

/* Reads the character after a backslash; true if it is a character, false if it is the end of a
 * line. */
static bool read_escape(struct cursor *cursor, bool expands, struct str *value)
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

/* Reads the value up to the end of the line and removes the escapes, except for those that expand()
 * handles if the value is to be expanded. */
static void read_value(struct cursor *cursor, bool expands, struct str *value)
{
    size_t kept = 0; /* escaped blanks, and everything before them, are not trimmed */
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

/* Appends the value of the variable in "${NAME}" at *at, and advances *at past it. */
static int expand_variable(const struct conf_hooks *hooks, char **at, struct str *value,
                           struct brig_error *err)
{
    char *name = *at + strlen("${");
    char *end = strchr(name, '}');
    if (!end)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'${' without '}': close it, or write '\\${' for just these characters");
    *end = '\0';
    /* Shell syntax such as "${A:-b}" would otherwise silently expand to nothing. */
    if (!*name || strchr("0123456789", *name) || name[strspn(name, NAME_CHARACTERS)])
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'${%s}' names no variable: a name has only letters, digits and '_'; "
                         "write '\\${' for just these characters",
                         str_shown(name).text);
    const char *found = hooks->variable ? hooks->variable(hooks->context, name) : NULL;
    if (found)
        str_append(value, found);
    *at = end + 1;
    return 0;
}

/* Expands the result of read_value(), which is modified, into *value. */
static int expand(const struct conf_hooks *hooks, struct str *written, struct str *value,
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

/* ---- Sources ------------------------------------------------------------------------------ */

/* A source being read. */
struct level {
    struct conf_source source;
    struct cursor cursor;
    unsigned began; /* the first line of the current directive, for messages */
};

/* Nested files are kept on a stack, without recursion. The caller owns the first source only. */
struct reader {
    const struct conf_hooks *hooks;
    struct level levels[CONF_DEPTH_MAX];
    size_t depth;
    size_t included;
    struct str name;
    struct str written; /* the value without escapes */
    struct str value;   /* the expanded value */
};

static struct level *top(struct reader *r)
{
    return &r->levels[r->depth - 1];
}

static void leave(struct reader *r)
{
    r->depth--;
    if (r->depth > 0)
        conf_source_done(&r->levels[r->depth].source);
}

static void reader_done(struct reader *r)
{
    while (r->depth > 0)
        leave(r);
    str_done(&r->name);
    str_done(&r->written);
    str_done(&r->value);
}

/* ---- Files -------------------------------------------------------------------------------- */

/* Refuses characters that are never valid, with their line. */
static int check_text(struct level *level, struct brig_error *err)
{
    const char *text = level->cursor.at;
    size_t length = level->source.length;
    size_t allowed = length < CONF_TEXT_MAX ? length : CONF_TEXT_MAX;
    const char *nul = memchr(text, '\0', allowed);
    if (!nul && length == allowed)
        return 0;
    const char *bad = nul ? nul : text + allowed;
    for (const char *p = text; p < bad; p++)
        level->began += *p == '\n';
    if (nul)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "there is a NUL byte: save the file as plain text (UTF-8)");
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "the file is larger than %zu MiB: move a part of it to another file and "
                     "include that with 'conf'",
                     CONF_TEXT_MAX >> 20);
}

/* Takes ownership of the source and begins to read it. */
static int enter(struct reader *r, const struct conf_source *source, struct brig_error *err)
{
    struct level *level = &r->levels[r->depth++];
    const char *text = source->text ? source->text : "";
    *level = (struct level){
        .source = *source,
        .cursor = {text, text + source->length, 1},
        .began = 1,
    };
    return check_text(level, err);
}

/* Fails if the source is being read already. The error names the line that leads into the loop, so
 * the files above it on the stack are left first. */
static int refuse_loop(struct reader *r, const struct conf_source *source, struct brig_error *err)
{
    size_t first = 0;
    while (first < r->depth && (source->ino == 0 || r->levels[first].source.ino != source->ino ||
                                r->levels[first].source.dev != source->dev))
        first++;
    if (first == r->depth)
        return 0;
    autostr struct str chain = {0};
    for (size_t i = first; i < r->depth; i++)
        str_appendf(&chain, "%s includes ", str_shown(r->levels[i].source.name).text);
    if (chain.failed)
        return brig_fail_nomem(err);
    while (r->depth > first + 1)
        leave(r);
    return brig_fail(err, BRIG_E_INVALID, 0, "configuration loop: %s%s", chain.data,
                     str_shown(source->name).text);
}

static int include(struct reader *r, const char *name, bool optional, struct brig_error *err)
{
    autosource struct conf_source source = {0};
    int rc =
        r->hooks->include ? r->hooks->include(r->hooks->context, name, optional, &source, err) : 0;
    if (rc <= 0)
        return rc;
    rc = refuse_loop(r, &source, err);
    if (rc < 0)
        return rc;
    if (r->depth == CONF_DEPTH_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "configuration files include one another too deeply: at most %d at once",
                         CONF_DEPTH_MAX);
    if (r->included == CONF_FILES_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "too many configuration files are included: at most %d", CONF_FILES_MAX);
    r->included++;
    rc = enter(r, &source, err);
    source = (struct conf_source){0}; /* owned by the reader now */
    return rc;
}

/* ---- Directives --------------------------------------------------------------------------- */

static bool is_include(const char *name)
{
    return str_equal(name, "conf") || str_equal(name, "conf?");
}

static int hand_on(struct reader *r, const char *value, struct brig_error *err)
{
    const char *name = r->name.data;
    if (is_include(name)) {
        if (!value)
            return brig_fail(err, BRIG_E_INVALID, 0, "'%s' needs the name of a file", name);
        return include(r, value, str_equal(name, "conf?"), err);
    }
    const struct conf_directive directive = {
        .file = top(r)->source.name,
        .line = top(r)->began,
        .name = name,
        .value = value,
    };
    return r->hooks->directive(r->hooks->context, &directive, err);
}

/* Handles the directive at the cursor. */
static int take_directive(struct reader *r, struct brig_error *err)
{
    struct cursor *cursor = &top(r)->cursor;
    const char *from = cursor->at;
    top(r)->began = cursor->line;
    read_name(cursor, &r->name);
    if (r->name.failed)
        return brig_fail_nomem(err);
    if (r->name.length == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the name before '=' is missing");
    const char *name = r->name.data;
    bool expands =
        is_include(name) || (r->hooks->expands && r->hooks->expands(r->hooks->context, name));
    bool has_value = find_value(cursor);
    if (has_value)
        read_value(cursor, expands, &r->written);
    if (r->written.failed)
        return brig_fail_nomem(err);
    if ((size_t)(cursor->at - from) > CONF_LINE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the directive is longer than %zu bytes: write several shorter ones",
                         CONF_LINE_MAX);
    if (!has_value || !expands)
        return hand_on(r, has_value ? r->written.data : NULL, err);
    int rc = expand(r->hooks, &r->written, &r->value, err);
    return rc < 0 ? rc : hand_on(r, r->value.data, err);
}

int conf_read(const struct conf_source *source, const struct conf_hooks *hooks,
              struct brig_error *err)
{
    __attribute__((cleanup(reader_done))) struct reader r = {.hooks = hooks};
    int rc = enter(&r, source, err);
    while (rc >= 0 && r.depth > 0) {
        if (find_directive(&top(&r)->cursor))
            rc = take_directive(&r, err);
        else
            leave(&r);
    }
    if (rc >= 0)
        return 0;
    const struct level *level = top(&r);
    return brig_wrap(err, rc, "%s:%u", str_shown(level->source.name).text, level->began);
}

/* ---- Loading ------------------------------------------------------------------------------ */

/* The author of the configuration may name any file: links and ".." are followed. A FIFO must not
 * block us, and a terminal must not become our controlling terminal. */
static int open_file(int dir_fd, const char *name)
{
    return openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int fail_missing(const char *dir, const char *name, struct brig_error *err)
{
    autostr struct str text = {0};
    str_append(&text, str_shown(name).text);
    if (*name && !strchr(name, '/'))
        str_appendf(&text, " (nor %s%s)", str_shown(name).text, CONF_SUFFIX);
    if (dir && name[0] != '/')
        str_appendf(&text, " in %s", str_shown(dir).text);
    if (text.failed)
        return brig_fail_nomem(err);
    return brig_fail(err, BRIG_E_INVALID, 0, "no such configuration file: %s", text.data);
}

static int load_fd(int fd, char **name, struct conf_source *ret_source, struct brig_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read '%s'", str_shown(*name).text);
    if (!S_ISREG(st.st_mode))
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' is not a regular file: only such are read as configuration",
                         str_shown(*name).text);
    autostr struct str text = {0};
    int rc = read_all(fd, CONF_TEXT_MAX, &text); /* slightly more, to detect an oversized file */
    if (rc < 0)
        return brig_fail(err, BRIG_E_SYSTEM, -rc, "cannot read '%s'", str_shown(*name).text);
    size_t length = text.length;
    autofree char *bytes = NULL;
    rc = str_take(&text, &bytes, err);
    if (rc < 0)
        return rc;
    *ret_source = (struct conf_source){
        .name = take_ptr(name),
        .text = take_ptr(&bytes),
        .length = length,
        .dev = st.st_dev,
        .ino = st.st_ino,
    };
    return 1;
}

int conf_load(int dir_fd, const char *dir, const char *name, bool optional,
              struct conf_source *ret_source, struct brig_error *err)
{
    autostr struct str tried = {0};
    str_append(&tried, name);
    autoclose int fd = open_file(dir_fd, name);
    int error = fd < 0 ? errno : 0;
    if (error == ENOENT && *name && !strchr(name, '/')) {
        str_append(&tried, CONF_SUFFIX);
        fd = tried.failed ? -1 : open_file(dir_fd, tried.data);
        error = fd < 0 ? errno : 0;
    }
    if (tried.failed)
        return brig_fail_nomem(err);
    if (error == ENOENT)
        return optional ? 0 : fail_missing(dir, name, err);
    bool below = dir && name[0] != '/';
    autofree char *shown = NULL;
    int rc = str_make(&shown, err, below ? dir : "", below ? "/" : "", tried.data);
    if (rc < 0)
        return rc;
    if (error != 0)
        return brig_fail(err, BRIG_E_SYSTEM, error, "cannot open '%s'", str_shown(shown).text);
    return load_fd(fd, &shown, ret_source, err);
}
