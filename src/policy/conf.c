/* SPDX-License-Identifier: MIT */
/* The .conf language: bytes in, directives out, included files in their place. */
#include "policy/conf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "policy/conf_text.h"

/* A source being read. */
struct level {
    struct conf_source source;
    struct conf_cursor cursor;
    unsigned began; /* the line of the directive at hand: what messages name */
};

/* Files are a stack, not a recursion. Only the first one's source is the caller's. */
struct reader {
    const struct conf_hooks *hooks;
    struct level levels[CONF_DEPTH_MAX];
    size_t depth;
    size_t included;
    struct str name;
    struct str written; /* the value without its escapes */
    struct str value;   /* and with its variables */
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

/* Refuses what no directive can do anything about, with the line it is in. */
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

/* Takes the source over and begins to read it. */
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

/* Fails if the source is being read already. The line to name is then the one that leads into the
 * loop, so the files below it are left. */
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
    __attribute__((cleanup(conf_source_done))) struct conf_source source = {0};
    int rc = r->hooks->include(r->hooks->context, name, optional, &source, err);
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
    source = (struct conf_source){0}; /* the reader's now */
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

/* Deals with the directive that begins here. */
static int take_directive(struct reader *r, struct brig_error *err)
{
    struct conf_cursor *cursor = &top(r)->cursor;
    const char *from = cursor->at;
    top(r)->began = cursor->line;
    conf_read_name(cursor, &r->name);
    if (r->name.failed)
        return brig_fail_nomem(err);
    if (r->name.length == 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "the name before '=' is missing");
    const char *name = r->name.data;
    bool expands = is_include(name) || r->hooks->expands(r->hooks->context, name);
    bool has_value = conf_find_value(cursor);
    if (has_value)
        conf_read_value(cursor, expands, &r->written);
    if (r->written.failed)
        return brig_fail_nomem(err);
    if ((size_t)(cursor->at - from) > CONF_LINE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the directive is longer than %zu bytes: write several shorter ones",
                         CONF_LINE_MAX);
    if (!has_value || !expands)
        return hand_on(r, has_value ? r->written.data : NULL, err);
    int rc = conf_expand(r->hooks, &r->written, &r->value, err);
    return rc < 0 ? rc : hand_on(r, r->value.data, err);
}

int conf_read(const struct conf_source *source, const struct conf_hooks *hooks,
              struct brig_error *err)
{
    __attribute__((cleanup(reader_done))) struct reader r = {.hooks = hooks};
    int rc = enter(&r, source, err);
    while (rc >= 0 && r.depth > 0) {
        if (conf_find_directive(&top(&r)->cursor))
            rc = take_directive(&r, err);
        else
            leave(&r);
    }
    if (rc >= 0)
        return 0;
    const struct level *level = top(&r);
    return brig_wrap(err, rc, "%s:%u", str_shown(level->source.name).text, level->began);
}

int conf_parse_text(const char *text, size_t length, const char *name,
                    const struct conf_hooks *hooks, struct brig_error *err)
{
    /* Neither is written to, nor released, where it is the first. */
    const struct conf_source source = {
        .name = (char *)(uintptr_t)name,
        .text = (char *)(uintptr_t)text,
        .length = length,
    };
    return conf_read(&source, hooks, err);
}

void conf_source_done(struct conf_source *source)
{
    free(source->name);
    free(source->text);
    *source = (struct conf_source){0};
}
