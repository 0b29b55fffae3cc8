/* SPDX-License-Identifier: MIT */
/* The configuration from YAML and back: what libyaml reads, compared with the table of keys. Only what
 * a configuration needs of YAML is accepted: mappings, lists and scalars; no anchors, aliases, tags or
 * second documents, so that nothing in it is larger than the file is. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config.h"
#include "server/config_keys.h"

#define DEPTH_MAX 6
#define SEEN_MAX 2048
#define RUNTIMES_SECTION "runtimes"

struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    const char *name; /* of the file */
    struct server_config *config;
    struct brig_error *err;
    size_t key_line;            /* of the key whose value is read; that may be on a later line */
    char path[CONFIG_NAME_MAX]; /* of the section we are in, with a dot at its end; or "" */
    const char *seen[SEEN_MAX]; /* whole names, to find what is given twice */
    size_t seen_lines[SEEN_MAX];
    size_t seen_count;
};

/* ---- Events ---- */

static size_t line_of(const struct reader *r)
{
    return r->event.start_mark.line + 1;
}

/* Fails with "FILE:LINE: …". */
#define fail_here(r, ...) fail_at(r, line_of(r), __VA_ARGS__)
__attribute__((format(printf, 3, 4))) static int fail_at(struct reader *r, size_t line,
                                                         const char *format, ...)
{
    autostr struct str text = {0};
    va_list args;
    va_start(args, format);
    str_vappendf(&text, format, args);
    va_end(args);
    return brig_fail(r->err, BRIG_E_INVALID, 0, "%s:%zu: %s", r->name, line,
                     text.data ? text.data : "");
}

static int fail_syntax(struct reader *r)
{
    const yaml_parser_t *parser = &r->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return brig_fail_nomem(r->err);
    if (parser->error == YAML_READER_ERROR)
        return brig_fail(r->err, BRIG_E_INVALID, 0, "%s: byte %zu: %s", r->name,
                         parser->problem_offset, parser->problem ? parser->problem : "not YAML");
    const char *problem = parser->problem ? parser->problem : "this is not YAML";
    /* What libyaml says of a tab, of which people think last. */
    bool odd = strstr(problem, "cannot start any token") != NULL;
    return fail_at(r, parser->problem_mark.line + 1, "%s%s", problem,
                   odd ? ". Indent with blanks, not tabs; quote what begins with @, % or `" : "");
}

/* The text that libyaml has read: keys may be in it. */
static void wipe_buffers(yaml_parser_t *parser)
{
    explicit_bzero(parser->raw_buffer.start,
                   (size_t)(parser->raw_buffer.end - parser->raw_buffer.start));
    explicit_bzero(parser->buffer.start, (size_t)(parser->buffer.end - parser->buffer.start));
}

static void drop_event(struct reader *r)
{
    if (!r->has_event)
        return;
    if (r->event.type == YAML_SCALAR_EVENT) /* it may be a key */
        explicit_bzero(r->event.data.scalar.value, r->event.data.scalar.length);
    yaml_event_delete(&r->event);
    r->has_event = false;
}

static bool has_anchor_or_tag(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor || event->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor || event->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor || event->data.mapping_start.tag;
    default:
        return false;
    }
}

/* The next event is in r->event then. */
static int next_event(struct reader *r)
{
    drop_event(r);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return fail_syntax(r);
    r->has_event = true;
    if (r->event.type == YAML_ALIAS_EVENT || has_anchor_or_tag(&r->event))
        return fail_here(r, "anchors, aliases and tags are not understood. Write the value itself");
    return 0;
}

/* The scalar's text; a NUL in it would hide the rest. */
static int scalar_text(struct reader *r, const char **ret_text)
{
    const char *text = (const char *)r->event.data.scalar.value;
    if (strlen(text) != r->event.data.scalar.length)
        return fail_here(r, "there is a NUL character in this value");
    *ret_text = text;
    return 0;
}

static bool is_null(const yaml_event_t *event)
{
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const char *text = (const char *)event->data.scalar.value;
    return strcmp(text, "") == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

/* ---- Names ---- */

static int remember(struct reader *r, const char *name)
{
    for (size_t i = 0; i < r->seen_count; i++)
        if (strcmp(r->seen[i], name) == 0)
            return fail_here(r, "'%s' is given twice; the first time in line %zu",
                             str_shown(name).text, r->seen_lines[i]);
    if (r->seen_count == SEEN_MAX)
        return fail_here(r, "there are more than %d keys", SEEN_MAX);
    const char *copy = arena_strdup(&r->config->arena, name);
    if (!copy)
        return brig_fail_nomem(r->err);
    r->seen[r->seen_count] = copy;
    r->seen_lines[r->seen_count++] = line_of(r);
    return 0;
}

/* The table and the base that a path is for, and the rest of the path within it. */
struct scope {
    const struct config_key *keys;
    size_t count;
    const char *prefix;
    struct runtime *runtime; /* or NULL */
};

static int fail_unknown(struct reader *r, const struct scope *scope, const char *name)
{
    char near[CONFIG_NAME_MAX];
    if (config_key_suggest(scope->keys, scope->count, scope->prefix, name, near))
        return fail_at(r, r->key_line, "unknown key '%s%s'. Did you mean '%s%s'?", r->path,
                       str_shown(name).text, r->path, near);
    autostr struct str known = {0};
    size_t length = strlen(scope->prefix);
    char last[CONFIG_NAME_MAX] = "";
    for (size_t i = 0; i < scope->count; i++) {
        const char *key = scope->keys[i].name;
        char part[CONFIG_NAME_MAX];
        if (strncmp(key, scope->prefix, length) != 0)
            continue;
        (void)snprintf(part, sizeof part, "%.*s", (int)strcspn(key + length, "."), key + length);
        if (strcmp(part, last) == 0)
            continue;
        str_appendf(&known, "%s%s", known.length ? ", " : "", part);
        memcpy(last, part, sizeof last);
    }
    if (r->path[0] == '\0')
        str_append(&known, ", " RUNTIMES_SECTION);
    return fail_at(r, r->key_line, "unknown key '%s%s'. Known here: %s", r->path,
                   str_shown(name).text, known.data ? known.data : "none");
}

/* ---- Values ---- */

static int wrong_type(struct reader *r, const struct config_key *key, const char *got)
{
    autostr struct str allowed = {0};
    config_value_describe(key, &allowed);
    /* The value itself may be a secret. */
    bool single = key->type == CONFIG_LIST || key->type == CONFIG_WORDS;
    return fail_here(r, "%s%s: a %s where there should be %s%s", r->path,
                     strrchr(key->name, '.') ? strrchr(key->name, '.') + 1 : key->name, got,
                     allowed.data ? allowed.data : "something else",
                     single ? ". Write it in brackets: [a, b]" : "");
}

static void *base_of(struct reader *r, const struct scope *scope)
{
    return scope->runtime ? (void *)scope->runtime : (void *)r->config;
}

static int set_scalar(struct reader *r, const struct scope *scope, const struct config_key *key)
{
    const char *text = NULL;
    int result = scalar_text(r, &text);
    if (result < 0)
        return result;
    struct brig_error why = {0};
    result = config_value_set(key, base_of(r, scope), &r->config->arena, text, &why);
    if (result < 0)
        return fail_here(r, "%s%s: %s", r->path, key->name + strlen(scope->prefix), why.message);
    return 0;
}

/* What is written instead may be a key, and is not repeated. */
static int fail_entry(struct reader *r)
{
    return fail_here(r,
                     "%sallowed_keys: an item is a key, or {key: KEY, workdir_roots: [PATH, …]} "
                     "with each of the two once",
                     r->path);
}

/* At the value of workdir_roots. */
static int read_roots(struct reader *r, struct config_list *roots)
{
    static const struct config_key key = {
        .type = CONFIG_LIST, .width = sizeof(struct config_list), .check = config_check_path};
    if (r->event.type != YAML_SEQUENCE_START_EVENT)
        return fail_entry(r);
    for (;;) {
        const char *text = NULL;
        struct brig_error why = {0};
        int result = next_event(r);
        if (result < 0 || r->event.type == YAML_SEQUENCE_END_EVENT)
            return result;
        if (r->event.type != YAML_SCALAR_EVENT || is_null(&r->event))
            return fail_entry(r);
        result = scalar_text(r, &text);
        if (result < 0)
            return result;
        result = config_value_set(&key, roots, &r->config->arena, text, &why);
        if (result < 0)
            return fail_here(r, "%sallowed_keys: workdir_roots: %s", r->path, why.message);
    }
}

static bool is_word(const yaml_event_t *event, const char *word)
{
    return event->type == YAML_SCALAR_EVENT && event->data.scalar.length == strlen(word) &&
           strcmp((const char *)event->data.scalar.value, word) == 0;
}

/* At a mapping in the list of API keys: a key with directories of its own for work_dir. */
static int read_api_key(struct reader *r, const struct scope *scope, const struct config_key *key)
{
    struct config_list *roots = NULL;
    bool named = false;
    for (;;) {
        int result = next_event(r);
        if (result < 0)
            return result;
        if (r->event.type == YAML_MAPPING_END_EVENT)
            break;
        bool is_key = is_word(&r->event, "key"), is_roots = is_word(&r->event, "workdir_roots");
        if ((!is_key && !is_roots) || (is_key && named) || (is_roots && roots))
            return fail_entry(r);
        result = next_event(r);
        if (result == 0 && is_roots) {
            roots = arena_alloc(&r->config->arena, sizeof *roots);
            result = roots ? read_roots(r, roots) : brig_fail_nomem(r->err);
        } else if (result == 0) {
            named = r->event.type == YAML_SCALAR_EVENT && !is_null(&r->event);
            result = named ? set_scalar(r, scope, key) : fail_entry(r);
        }
        if (result < 0)
            return result;
    }
    if (!named)
        return fail_entry(r);
    r->config->security.key_roots[r->config->security.allowed_keys.count - 1] = roots;
    return 0;
}

static int read_list(struct reader *r, const struct scope *scope, const struct config_key *key)
{
    if (key->type != CONFIG_LIST && key->type != CONFIG_WORDS)
        return wrong_type(r, key, "list");
    config_value_clear(key, base_of(r, scope));
    if (key->with_roots)
        memset(r->config->security.key_roots, 0, sizeof r->config->security.key_roots);
    for (;;) {
        int result = next_event(r);
        if (result < 0 || r->event.type == YAML_SEQUENCE_END_EVENT)
            return result;
        if (key->with_roots && r->event.type == YAML_MAPPING_START_EVENT) {
            result = read_api_key(r, scope, key);
            if (result < 0)
                return result;
            continue;
        }
        if (r->event.type != YAML_SCALAR_EVENT || is_null(&r->event))
            return wrong_type(r, key, "nested or empty item");
        result = set_scalar(r, scope, key);
        if (result < 0)
            return result;
    }
}

static int note_origin(struct reader *r, const struct scope *scope, const struct config_key *key,
                       size_t line)
{
    if (scope->runtime)
        return 0;
    const char *origin = arena_printf(&r->config->arena, "%s:%zu", r->name, line);
    if (!origin)
        return brig_fail_nomem(r->err);
    r->config->origins[key - config_keys] = origin;
    return 0;
}

/* At the value of a key. */
static int read_value(struct reader *r, const struct scope *scope, const struct config_key *key)
{
    size_t line = line_of(r);
    int result;
    if (is_null(&r->event))
        return 0; /* as if it were not there */
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        if (key->type == CONFIG_LIST || key->type == CONFIG_WORDS)
            return wrong_type(r, key, "single value");
        result = set_scalar(r, scope, key);
        break;
    case YAML_SEQUENCE_START_EVENT:
        result = read_list(r, scope, key);
        break;
    default:
        return wrong_type(r, key, "mapping");
    }
    return result < 0 ? result : note_origin(r, scope, key, line);
}

/* ---- Sections ---- */

static bool is_runtimes(const struct reader *r)
{
    return strcmp(r->path, RUNTIMES_SECTION ".") == 0;
}

static struct scope scope_of(const struct reader *r)
{
    static const char runtimes[] = RUNTIMES_SECTION ".";
    struct scope scope = {.keys = config_keys, .count = config_key_count, .prefix = r->path};
    if (!str_starts_with(r->path, runtimes) || is_runtimes(r))
        return scope;
    const char *name = r->path + strlen(runtimes);
    size_t length = strcspn(name, ".");
    scope.runtime = config_runtime_entry(r->config, name, length);
    scope.keys = config_runtime_keys;
    scope.count = config_runtime_key_count;
    scope.prefix = name + length + 1;
    return scope;
}

/* One level down, at a mapping that has been seen to begin: sets the path for it. */
static int descend(struct reader *r, const char *name, size_t *ret_length)
{
    size_t length = strlen(r->path);
    if (length + strlen(name) + 2 > sizeof r->path)
        return fail_here(r, "the name '%s' is too long", str_shown(name).text);
    *ret_length = length;
    (void)snprintf(r->path + length, sizeof r->path - length, "%s.", name);
    return 0;
}

/* Whether `name`, in the section we are in, is a section itself. */
static bool is_section(const struct reader *r, const struct scope *scope, const char *name)
{
    char whole[2 * CONFIG_NAME_MAX];
    if (r->path[0] == '\0' && strcmp(name, RUNTIMES_SECTION) == 0)
        return true;
    (void)snprintf(whole, sizeof whole, "%s%s", scope->prefix, name);
    return config_key_is_section(scope->keys, scope->count, whole);
}

static int begin_runtime(struct reader *r, const char *name)
{
    struct brig_error why = {0};
    int result = config_check_word(name, &why);
    if (result == 0 && strpbrk(name, ".:*"))
        result =
            brig_fail(&why, BRIG_E_INVALID, 0, "'%s' has one of . : * in it", str_shown(name).text);
    if (result == 0)
        result = config_runtime_begin(r->config, name, r->name, r->key_line, &why);
    return result < 0 ? fail_at(r, r->key_line, "runtimes: %s", why.message) : 0;
}

/* The key is in `name`; the event is its value. Sets *ret_down if a mapping has begun. */
static int read_pair(struct reader *r, const char *name, bool *ret_down)
{
    const struct scope scope = scope_of(r);
    char whole[2 * CONFIG_NAME_MAX];
    *ret_down = false;
    if (is_runtimes(r) || is_section(r, &scope, name)) {
        if (is_null(&r->event))
            return 0;
        if (r->event.type != YAML_MAPPING_START_EVENT)
            return fail_at(r, r->key_line,
                           "'%s%s' is a section: what belongs to it stands below it, indented",
                           r->path, str_shown(name).text);
        *ret_down = true;
        return is_runtimes(r) ? begin_runtime(r, name) : 0;
    }
    (void)snprintf(whole, sizeof whole, "%s%s", scope.prefix, name);
    const struct config_key *key = config_key_find(scope.keys, scope.count, whole);
    return key ? read_value(r, &scope, key) : fail_unknown(r, &scope, name);
}

/* At a key; reads it and its value. */
static int read_key(struct reader *r, size_t lengths[DEPTH_MAX], size_t *depth)
{
    const char *text = "";
    char name[CONFIG_NAME_MAX], whole[2 * CONFIG_NAME_MAX];
    bool down = false;
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_here(r, "a key should be a word");
    r->key_line = line_of(r);
    int result = scalar_text(r, &text);
    if (result == 0 && (strlen(text) >= sizeof name || strchr(text, '.')))
        result = fail_here(r, "unknown key '%s%s'. A section and its keys stand below each other",
                           r->path, str_shown(text).text);
    if (result < 0)
        return result;
    (void)snprintf(name, sizeof name, "%s", text);
    (void)snprintf(whole, sizeof whole, "%s%s", r->path, name);
    result = remember(r, whole);
    if (result == 0)
        result = next_event(r);
    if (result == 0)
        result = read_pair(r, name, &down);
    if (result < 0 || !down)
        return result;
    if (*depth == DEPTH_MAX)
        return fail_here(r, "sections lie too deep in each other");
    return descend(r, name, &lengths[(*depth)++]);
}

static int read_mappings(struct reader *r)
{
    size_t lengths[DEPTH_MAX] = {0}; /* of the path, to which it is cut when a section ends */
    size_t depth = 1;
    while (depth > 0) {
        int result = next_event(r);
        if (result < 0)
            return result;
        if (r->event.type == YAML_MAPPING_END_EVENT) {
            r->path[lengths[--depth]] = '\0';
            continue;
        }
        result = read_key(r, lengths, &depth);
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_document(struct reader *r)
{
    int result = next_event(r); /* the stream's start */
    if (result == 0)
        result = next_event(r);
    if (result < 0 || r->event.type == YAML_STREAM_END_EVENT)
        return result; /* an empty file is all defaults */
    result = next_event(r);
    if (result < 0)
        return result;
    if (r->event.type == YAML_MAPPING_START_EVENT)
        result = read_mappings(r);
    else if (!is_null(&r->event))
        result = fail_here(r, "there should be sections, such as 'server:', and keys below them");
    if (result == 0)
        result = next_event(r); /* the document's end */
    if (result == 0)
        result = next_event(r);
    if (result == 0 && r->event.type != YAML_STREAM_END_EVENT)
        result = fail_here(r, "there is a second document. One file has one");
    return result;
}

int config_yaml_read(const char *name, const void *text, size_t length,
                     struct server_config *config, struct brig_error *err)
{
    if (length > CONFIG_FILE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s: more than %zu KiB", name,
                         CONFIG_FILE_MAX >> 10);
    autofree struct reader *r = calloc(1, sizeof *r);
    if (!r || !yaml_parser_initialize(&r->parser))
        return brig_fail_nomem(err);
    r->name = name;
    r->config = config;
    r->err = err;
    yaml_parser_set_input_string(&r->parser, text, length);
    int result = read_document(r);
    drop_event(r);
    wipe_buffers(&r->parser);
    yaml_parser_delete(&r->parser);
    return result;
}

/* ---- Writing it, each value with where it came from ---- */

#define INDENT 2
#define COMMENT_COLUMN 50

static void pad(struct str *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        str_append_char(out, ' ');
}

/* The headings of sections that `name` is in and the name before it was not. Returns the depth. */
static size_t print_sections(const char *before, const char *name, size_t depth, struct str *out)
{
    size_t start = 0;
    for (size_t i = 0; name[i]; i++) {
        if (name[i] != '.')
            continue;
        if (strncmp(before, name, i + 1) != 0) {
            pad(out, depth * INDENT);
            str_appendf(out, "%.*s:\n", (int)(i - start), name + start);
        }
        start = i + 1;
        depth++;
    }
    return depth;
}

static void print_origin(size_t line_start, const char *origin, struct str *out)
{
    size_t width = out->length - line_start;
    pad(out, width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 1);
    str_appendf(out, "# %s\n", origin);
}

static void print_api_keys(const struct server_config *config, struct str *out)
{
    static const struct config_key list = {.type = CONFIG_LIST};
    const struct config_list *keys = &config->security.allowed_keys;
    str_append_char(out, '[');
    for (size_t i = 0; i < keys->count; i++) {
        const struct config_list *roots = config->security.key_roots[i];
        str_appendf(out, "%s%s\"%s\"", i ? ", " : "", roots ? "{key: " : "", keys->items[i]);
        if (!roots)
            continue;
        str_append(out, ", workdir_roots: ");
        config_value_print(&list, roots, out);
        str_append_char(out, '}');
    }
    str_append_char(out, ']');
}

static void print_secret(const struct server_config *config, const struct config_key *key,
                         struct str *out)
{
    if (key->type == CONFIG_LIST) {
        print_api_keys(config, out);
        return;
    }
    autostr struct str shown = {0};
    if (config->database.dsn)
        config_dsn_print(config->database.dsn, &shown);
    const struct server_config copy = {.database.dsn = shown.data ? shown.data : ""};
    config_value_print(key, &copy, out);
}

static void print_keys(const struct server_config *config, struct str *out)
{
    const char *before = "";
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        size_t depth = print_sections(before, key->name, 0, out), line_start = out->length;
        const char *dot = strrchr(key->name, '.');
        pad(out, depth * INDENT);
        str_appendf(out, "%s: ", dot ? dot + 1 : key->name);
        if (key->secret)
            print_secret(config, key, out);
        else
            config_value_print(key, config, out);
        print_origin(line_start, config->origins[i] ? config->origins[i] : "built in", out);
        before = key->name;
    }
}

static void print_runtime(const struct runtime *runtime, struct str *out)
{
    const char *before = "";
    size_t line_start = out->length;
    pad(out, INDENT);
    str_appendf(out, "%s:", runtime->name);
    print_origin(line_start, runtime->origin, out);
    for (size_t i = 0; i < config_runtime_key_count; i++) {
        const struct config_key *key = &config_runtime_keys[i];
        size_t depth = print_sections(before, key->name, 2, out);
        const char *dot = strrchr(key->name, '.');
        pad(out, depth * INDENT);
        str_appendf(out, "%s: ", dot ? dot + 1 : key->name);
        config_value_print(key, runtime, out);
        str_append_char(out, '\n');
        before = key->name;
    }
}

void config_print(const struct server_config *config, struct str *out)
{
    str_appendf(out, "# brigd's configuration%s%s\n", config->path ? ", from " : ": no file",
                config->path ? config->path : "");
    print_keys(config, out);
    str_append(out, "runtimes:\n");
    for (size_t i = 0; i < config->runtime_count; i++)
        print_runtime(&config->runtimes[i], out);
}
