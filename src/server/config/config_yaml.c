/* SPDX-License-Identifier: MIT */
/* Reads and writes the configuration as YAML: compares libyaml's events with the key table. Accepts
 * only mappings, lists and scalars; no aliases, tags or second documents. Builds no tree, and
 * refuses an unknown section where it begins. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "server/config/config.h"
#include "server/config/config_keys.h"

#define RUNTIMES_SECTION "runtimes"

/* A key or section that was already read. */
struct seen {
    const struct seen *next;
    size_t line;
    const char *path;
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current event */
    size_t line;        /* its line */
    size_t documents;
    const char *name; /* the file's name */
    struct server_config *config;
    struct brig_error *err;
    const struct seen *seen;
    /* The current key, "server.listen"; the current section, ending in a dot; or "". */
    char path[CONFIG_NAME_MAX];
};

/* ---- Events ---- */

/* Fails with "FILE:LINE: …". */
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
#define fail(r, ...) fail_at(r, (r)->line, __VA_ARGS__)

static int fail_syntax(struct reader *r)
{
    const yaml_parser_t *parser = &r->parser;
    const char *problem = parser->problem ? parser->problem : "this is not YAML";
    if (parser->error == YAML_MEMORY_ERROR)
        return brig_fail_nomem(r->err);
    if (parser->error == YAML_READER_ERROR)
        return brig_fail(r->err, BRIG_E_INVALID, 0, "%s: byte %zu: %s", r->name,
                         parser->problem_offset, problem);
    /* libyaml reports this for a tab, too. */
    bool odd = strstr(problem, "cannot start any token") != NULL;
    return fail_at(r, parser->problem_mark.line + 1, "%s%s", problem,
                   odd ? ". Indent with blanks, not tabs; quote what begins with @, % or `" : "");
}

static bool has_alias_or_tag(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return true;
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

static const char *text_of(const struct reader *r)
{
    return (const char *)r->event.data.scalar.value;
}

static bool is_event(const struct reader *r, yaml_event_type_t type)
{
    return r->event.type == type;
}

/* The event may contain keys. */
static void wipe_event(struct reader *r)
{
    if (is_event(r, YAML_SCALAR_EVENT))
        explicit_bzero(r->event.data.scalar.value, r->event.data.scalar.length);
    yaml_event_delete(&r->event);
}

/* Also wipes the text that libyaml has buffered. */
static void wipe_parser(struct reader *r)
{
    yaml_parser_t *parser = &r->parser;
    wipe_event(r);
    explicit_bzero(parser->raw_buffer.start,
                   (size_t)(parser->raw_buffer.end - parser->raw_buffer.start));
    explicit_bzero(parser->buffer.start, (size_t)(parser->buffer.end - parser->buffer.start));
    yaml_parser_delete(parser);
}

static int next(struct reader *r)
{
    wipe_event(r);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return fail_syntax(r);
    r->line = r->event.start_mark.line + 1;
    r->documents += is_event(r, YAML_DOCUMENT_START_EVENT);
    if (has_alias_or_tag(&r->event))
        return fail(r, "anchors, aliases and tags are not understood. Write the value itself");
    if (r->documents > 1)
        return fail(r, "there is a second document. One file has one");
    if (is_event(r, YAML_SCALAR_EVENT) && strlen(text_of(r)) != r->event.data.scalar.length)
        return fail(r, "there is a NUL character in this value");
    return 0;
}

static bool is_null(const struct reader *r)
{
    return is_event(r, YAML_SCALAR_EVENT) &&
           r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!text_of(r)[0] || str_equal(text_of(r), "~") || str_equal(text_of(r), "null"));
}

static bool is_value(const struct reader *r)
{
    return is_event(r, YAML_SCALAR_EVENT) && !is_null(r);
}

/* ---- Values ---- */

static int set_scalar(struct reader *r, const struct config_key *key, void *base)
{
    struct brig_error why = {0};
    if (config_value_set(key, base, &r->config->arena, text_of(r), &why) < 0)
        return fail(r, "%s: %s", r->path, why.message);
    return 0;
}

/* Does not repeat the value: it may be a secret. */
static int wrong_type(struct reader *r, const struct config_key *key, const char *got)
{
    autostr struct str allowed = {0};
    config_value_describe(key, &allowed);
    bool list = key->type == CONFIG_LIST || key->type == CONFIG_WORDS;
    return fail(r, "%s: a %s where there should be %s%s", r->path, got,
                allowed.data ? allowed.data : "something else",
                list ? ". Write it in brackets: [a, b]" : "");
}

static int read_api_key(struct reader *r, const struct config_key *key);

/* Reads items up to the end of the list. */
static int read_items(struct reader *r, const struct config_key *key, void *base)
{
    int result = next(r);
    while (result == 0 && !is_event(r, YAML_SEQUENCE_END_EVENT)) {
        if (key->is_api_keys && is_event(r, YAML_MAPPING_START_EVENT))
            result = read_api_key(r, key);
        else
            result =
                is_value(r) ? set_scalar(r, key, base) : wrong_type(r, key, "nested or empty item");
        if (result == 0)
            result = next(r);
    }
    return result;
}

static int read_roots(struct reader *r, struct config_api_key *item)
{
    static const struct config_key roots_key = {.type = CONFIG_LIST, .check = config_check_path};
    struct config_list *roots = arena_alloc(&r->config->arena, sizeof *roots);
    item->roots = roots;
    return roots ? read_items(r, &roots_key, roots) : brig_fail_nomem(r->err);
}

/* What an item of the list of API keys may contain, as bits. */
enum { ITEM_KEY = 1 << 0, ITEM_ROOTS = 1 << 1, ITEM_OTHER = 1 << 2 };

/* Returns the bit of the member, or 0 if it is unknown. */
static unsigned item_bit(const struct config_key *member, const char *name)
{
    if (member)
        return ITEM_OTHER << (member - config_api_key_keys);
    return str_equal(name, "key") ? ITEM_KEY : str_equal(name, "workdir_roots") ? ITEM_ROOTS : 0;
}

/* Reads one member; r is at its name. Returns 1 if it is unknown, there twice, or not a value. */
static int read_item_member(struct reader *r, const struct config_key *key,
                            struct config_api_key *item, unsigned *seen)
{
    const char *name = is_value(r) ? text_of(r) : "";
    const struct config_key *member =
        config_key_find(config_api_key_keys, config_api_key_key_count, name);
    unsigned bit = item_bit(member, name);
    size_t length = strlen(r->path);
    bool fresh = bit && !(*seen & bit);
    int result = next(r);
    if (result < 0)
        return result;
    if (!fresh || !(bit == ITEM_ROOTS ? is_event(r, YAML_SEQUENCE_START_EVENT) : is_value(r)))
        return 1;
    *seen |= bit;
    if (bit == ITEM_KEY)
        return set_scalar(r, key, r->config);
    (void)snprintf(r->path + length, sizeof r->path - length, ": %s",
                   member ? member->name : "workdir_roots");
    result = member ? set_scalar(r, member, item) : read_roots(r, item);
    r->path[length] = '\0';
    return result;
}

/* A mapping in the list of API keys. */
static int read_api_key(struct reader *r, const struct config_key *key)
{
    struct config_api_key item = {0};
    unsigned seen = 0;
    int result = next(r);
    while (result == 0 && !is_event(r, YAML_MAPPING_END_EVENT)) {
        result = read_item_member(r, key, &item, &seen);
        if (result == 0)
            result = next(r);
    }
    if (result < 0)
        return result;
    /* The wrong text may be a key, so it is not repeated. */
    if (result > 0 || !(seen & ITEM_KEY))
        return fail(
            r,
            "%s: an item is a key, or {key: KEY, name: NAME, rate_limit_rps: N, "
            "rate_limit_burst: N, max_priority: N, workdir_roots: [PATH, …]} with each of them "
            "once",
            r->path);
    r->config->security.keys[r->config->security.allowed_keys.count - 1] = item;
    return 0;
}

static int read_value(struct reader *r, const struct config_key *key, void *base)
{
    bool list = key->type == CONFIG_LIST || key->type == CONFIG_WORDS;
    size_t line = r->line;
    if (is_null(r))
        return 0; /* as if the key were absent */
    if (!is_event(r, list ? YAML_SEQUENCE_START_EVENT : YAML_SCALAR_EVENT))
        return wrong_type(r, key,
                          is_event(r, YAML_MAPPING_START_EVENT)    ? "mapping"
                          : is_event(r, YAML_SEQUENCE_START_EVENT) ? "list"
                                                                   : "single value");
    if (list)
        config_value_clear(key, base);
    if (key->is_api_keys)
        memset(r->config->security.keys, 0, sizeof r->config->security.keys);
    int result = list ? read_items(r, key, base) : set_scalar(r, key, base);
    if (result < 0 || base != r->config)
        return result;
    const char *origin = arena_printf(&r->config->arena, "%s:%zu", r->name, line);
    r->config->origins[key - config_keys] = origin;
    return origin ? 0 : brig_fail_nomem(r->err);
}

/* ---- Sections ---- */

/* The table for the current path, the path's name in it, and the object to fill. */
struct scope {
    const struct config_key *keys;
    size_t count;
    const char *name;
    void *base;
};

static struct scope scope_of(struct reader *r)
{
    const char *runtime = r->path + strlen(RUNTIMES_SECTION ".");
    size_t length = str_starts_with(r->path, RUNTIMES_SECTION ".") ? strcspn(runtime, ".") : 0;
    if (length == 0 || !runtime[length])
        return (struct scope){config_keys, config_key_count, r->path, r->config};
    return (struct scope){config_runtime_keys, config_runtime_key_count, runtime + length + 1,
                          config_runtime_entry(r->config, runtime, length)};
}

static bool is_runtime(const struct reader *r)
{
    return str_starts_with(r->path, RUNTIMES_SECTION ".") &&
           !strchr(r->path + strlen(RUNTIMES_SECTION "."), '.');
}

/* Shortens the path to its section. */
static void leave(struct reader *r)
{
    size_t length = strlen(r->path);
    while (length > 0 && r->path[length - 1] != '.')
        length--;
    r->path[length] = '\0';
}

static int fail_unknown(struct reader *r, const struct scope *scope, size_t line)
{
    autostr struct str hint = {0};
    char section[CONFIG_NAME_MAX], shown[CONFIG_NAME_MAX];
    const char *dot = strrchr(scope->name, '.'), *last = dot ? dot + 1 : scope->name;
    (void)snprintf(section, sizeof section, "%.*s", (int)(last - scope->name), scope->name);
    (void)snprintf(shown, sizeof shown, "%.*s", (int)(last - r->path), r->path);
    config_key_hint(scope->keys, scope->count, section, shown, last, &hint);
    if (hint.failed)
        return brig_fail_nomem(r->err);
    return fail_at(r, line, "unknown key '%s'. %s%s", str_shown(r->path).text, hint.data,
                   shown[0] || str_ends_with(hint.data, "?") ? "" : ", " RUNTIMES_SECTION);
}

static int begin_runtime(struct reader *r, size_t line)
{
    struct brig_error why = {0};
    const char *name = r->path + strlen(RUNTIMES_SECTION ".");
    int result = config_check_word(name, &why);
    if (result == 0 && strpbrk(name, ":*"))
        result = brig_fail(&why, BRIG_E_INVALID, 0, "'%s' has one of . : * in it", name);
    if (result == 0)
        result = config_runtime_begin(r->config, name, r->name, line, &why);
    return result < 0 ? fail_at(r, line, "runtimes: %s", why.message) : 0;
}

/* Appends the name of a key or section to the path. */
static int read_name(struct reader *r)
{
    if (!is_event(r, YAML_SCALAR_EVENT))
        return fail(r, "a key should be a word");
    size_t length = strlen(r->path);
    if (length + strlen(text_of(r)) + 2 > sizeof r->path || strchr(text_of(r), '.'))
        return fail(r, "unknown key '%s%s'. A section and its keys stand below each other", r->path,
                    str_shown(text_of(r)).text);
    (void)snprintf(r->path + length, sizeof r->path - length, "%s", text_of(r));
    for (const struct seen *seen = r->seen; seen; seen = seen->next)
        if (strcmp(seen->path, r->path) == 0)
            return fail(r, "'%s' is given twice; the first time in line %zu",
                        str_shown(r->path).text, seen->line);
    struct seen *seen = arena_alloc(&r->config->arena, sizeof *seen);
    const char *path = arena_strdup(&r->config->arena, r->path);
    if (!seen || !path)
        return brig_fail_nomem(r->err);
    *seen = (struct seen){.next = r->seen, .line = r->line, .path = path};
    r->seen = seen;
    return 0;
}

/* Reads a key and its value, or enters a section. */
static int read_pair(struct reader *r)
{
    size_t line = r->line;
    int result = read_name(r);
    if (result == 0)
        result = next(r);
    if (result < 0)
        return result;
    const struct scope scope = scope_of(r);
    if (strcmp(r->path, RUNTIMES_SECTION) != 0 && !is_runtime(r) &&
        !config_key_is_section(scope.keys, scope.count, scope.name)) {
        const struct config_key *key = config_key_find(scope.keys, scope.count, scope.name);
        result = key ? read_value(r, key, scope.base) : fail_unknown(r, &scope, line);
        leave(r);
        return result;
    }
    if (is_null(r)) {
        leave(r);
        return 0;
    }
    if (!is_event(r, YAML_MAPPING_START_EVENT))
        return fail_at(r, line, "'%s' is a section: what belongs to it stands below it, indented",
                       str_shown(r->path).text);
    result = is_runtime(r) ? begin_runtime(r, line) : 0;
    size_t length = strlen(r->path);
    (void)snprintf(r->path + length, sizeof r->path - length, ".");
    return result;
}

/* Reads up to the end of the outermost mapping, which has begun. */
static int read_sections(struct reader *r)
{
    for (;;) {
        int result = next(r);
        if (result < 0)
            return result;
        if (!is_event(r, YAML_MAPPING_END_EVENT)) {
            result = read_pair(r);
            if (result < 0)
                return result;
        } else if (r->path[0] == '\0') {
            return 0;
        } else {
            r->path[strlen(r->path) - 1] = '\0';
            leave(r);
        }
    }
}

static int read_stream(struct reader *r)
{
    int result = next(r);
    while (result == 0 && !is_event(r, YAML_STREAM_END_EVENT)) {
        /* An empty file means all defaults. */
        if (is_event(r, YAML_MAPPING_START_EVENT))
            result = read_sections(r);
        else if (is_event(r, YAML_SEQUENCE_START_EVENT) || is_value(r))
            result = fail(r, "there should be sections, such as 'server:', and keys below them");
        if (result == 0)
            result = next(r);
    }
    return result;
}

int config_yaml_read(const char *name, const void *text, size_t length,
                     struct server_config *config, struct brig_error *err)
{
    struct reader r = {.name = name, .config = config, .err = err};
    if (length > CONFIG_FILE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s: more than %zu KiB", name,
                         CONFIG_FILE_MAX >> 10);
    if (!yaml_parser_initialize(&r.parser))
        return brig_fail_nomem(err);
    yaml_parser_set_input_string(&r.parser, text, length);
    int result = read_stream(&r);
    wipe_parser(&r);
    return result;
}

/* ---- Printing, each value with its origin ---- */

#define INDENT 2
#define COMMENT_COLUMN 50

static void pad(struct str *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        str_append_char(out, ' ');
}

/* Prints the headings of sections that contain `name` but not the name before it. Returns the
 * depth. */
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

/* Prints the origin at the end of the line. */
static void print_origin(struct str *out, const char *origin)
{
    const char *line = out->data ? strrchr(out->data, '\n') : NULL;
    size_t width = line ? strlen(line + 1) : 0;
    pad(out, width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 1);
    str_appendf(out, "# %s\n", origin);
}

static void print_api_key(const char *key, const struct config_api_key *item, struct str *out)
{
    static const struct config_key list = {.type = CONFIG_LIST};
    static const struct config_api_key plain = {0};
    if (memcmp(item, &plain, sizeof plain) == 0) {
        str_concat(out, "\"", key, "\"");
        return;
    }
    str_concat(out, "{key: \"", key, "\"");
    if (item->name)
        str_concat(out, ", name: \"", item->name, "\"");
    if (item->rate_limit_rps)
        str_concat(out, ", rate_limit_rps: ", str_number(item->rate_limit_rps).text);
    if (item->rate_limit_burst)
        str_concat(out, ", rate_limit_burst: ", str_number(item->rate_limit_burst).text);
    if (item->max_priority)
        str_concat(out, ", max_priority: ", str_number(item->max_priority).text);
    if (item->roots) {
        str_append(out, ", workdir_roots: ");
        config_value_print(&list, item->roots, out);
    }
    str_append_char(out, '}');
}

static void print_api_keys(const struct server_config *config, struct str *out)
{
    const struct config_list *keys = &config->security.allowed_keys;
    str_append_char(out, '[');
    for (size_t i = 0; i < keys->count; i++) {
        str_append(out, i ? ", " : "");
        print_api_key(keys->items[i], &config->security.keys[i], out);
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
    const struct server_config copy = {.database.dsn = shown.data ? shown.data : "",
                                       .callback.secret = ""};
    config_value_print(key, &copy, out);
}

/* Prints the name of a key, after the headings of its sections. */
static void print_name(const char *before, const char *name, size_t depth, struct str *out)
{
    const char *dot = strrchr(name, '.');
    pad(out, print_sections(before, name, depth, out) * INDENT);
    str_appendf(out, "%s: ", dot ? dot + 1 : name);
}

static void print_keys(const struct server_config *config, struct str *out)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct config_key *key = &config_keys[i];
        print_name(i ? key[-1].name : "", key->name, 0, out);
        if (key->secret)
            print_secret(config, key, out);
        else
            config_value_print(key, config, out);
        print_origin(out, config->origins[i] ? config->origins[i] : "built in");
    }
}

static void print_runtime(const struct runtime *runtime, struct str *out)
{
    pad(out, INDENT);
    str_appendf(out, "%s:", runtime->name);
    print_origin(out, runtime->origin);
    for (size_t i = 0; i < config_runtime_key_count; i++) {
        const struct config_key *key = &config_runtime_keys[i];
        print_name(i ? key[-1].name : "", key->name, 2, out);
        config_value_print(key, runtime, out);
        str_append_char(out, '\n');
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
