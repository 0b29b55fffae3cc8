/* SPDX-License-Identifier: MIT */
/* The configuration from YAML and back: what libyaml reads, compared with the table of keys. Only what
 * a configuration needs of YAML is accepted: mappings, lists and scalars; no aliases, tags or second
 * documents, so that nothing in it is larger than the file is. */
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
#define RUNTIMES_SECTION "runtimes"

struct reader {
    yaml_parser_t parser;
    yaml_document_t document;
    const char *name; /* of the file */
    struct server_config *config;
    struct brig_error *err;
    char path[CONFIG_NAME_MAX]; /* of the section we are in, with a dot at its end; or "" */
};

/* ---- Nodes ---- */

/* Fails with "FILE:LINE: …". */
__attribute__((format(printf, 3, 4))) static int fail_at(struct reader *r, yaml_mark_t mark,
                                                         const char *format, ...)
{
    autostr struct str text = {0};
    va_list args;
    va_start(args, format);
    str_vappendf(&text, format, args);
    va_end(args);
    return brig_fail(r->err, BRIG_E_INVALID, 0, "%s:%zu: %s", r->name, mark.line + 1,
                     text.data ? text.data : "");
}
#define fail(r, node, ...) fail_at(r, (node)->start_mark, __VA_ARGS__)

static int fail_syntax(struct reader *r)
{
    const yaml_parser_t *parser = &r->parser;
    const char *problem = parser->problem ? parser->problem : "this is not YAML";
    if (parser->error == YAML_MEMORY_ERROR)
        return brig_fail_nomem(r->err);
    if (parser->error == YAML_READER_ERROR)
        return brig_fail(r->err, BRIG_E_INVALID, 0, "%s: byte %zu: %s", r->name,
                         parser->problem_offset, problem);
    /* libyaml says this of a tab, too. */
    bool odd = strstr(problem, "cannot start any token") != NULL;
    return fail_at(r, parser->problem_mark, "%s%s", problem,
                   odd ? ". Indent with blanks, not tabs; quote what begins with @, % or `" : "");
}

/* Wipes the text that libyaml has read: keys may be in it. */
static void close_parser(yaml_parser_t *parser)
{
    explicit_bzero(parser->raw_buffer.start,
                   (size_t)(parser->raw_buffer.end - parser->raw_buffer.start));
    explicit_bzero(parser->buffer.start, (size_t)(parser->buffer.end - parser->buffer.start));
    yaml_parser_delete(parser);
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

static int check_event(struct reader *r, const yaml_event_t *event, size_t *depth,
                       size_t *documents)
{
    *depth += event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
    *depth -= event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
    *documents += event->type == YAML_DOCUMENT_START_EVENT;
    if (has_alias_or_tag(event))
        return fail(r, event,
                    "anchors, aliases and tags are not understood. Write the value itself");
    if (*depth > DEPTH_MAX)
        return fail(r, event, "sections lie too deep in each other");
    if (*documents > 1)
        return fail(r, event, "there is a second document. One file has one");
    return event->type == YAML_SCALAR_EVENT &&
                   strlen((const char *)event->data.scalar.value) != event->data.scalar.length
               ? fail(r, event, "there is a NUL character in this value")
               : 0;
}

/* A look at the form, before a tree is built of it. */
static int check_form(struct reader *r, const void *text, size_t length)
{
    size_t depth = 0, documents = 0;
    bool end = false;
    int result = 0;
    if (!yaml_parser_initialize(&r->parser))
        return brig_fail_nomem(r->err);
    yaml_parser_set_input_string(&r->parser, text, length);
    while (result == 0 && !end) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) {
            result = fail_syntax(r);
            break;
        }
        end = event.type == YAML_STREAM_END_EVENT;
        result = check_event(r, &event, &depth, &documents);
        if (event.type == YAML_SCALAR_EVENT)
            explicit_bzero(event.data.scalar.value, event.data.scalar.length);
        yaml_event_delete(&event);
    }
    close_parser(&r->parser);
    return result;
}

static const yaml_node_t *node_of(struct reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

static const char *text_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static bool is_null(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!text_of(node)[0] || strcmp(text_of(node), "~") == 0 ||
            strcmp(text_of(node), "null") == 0);
}

static bool is_value(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE && !is_null(node);
}

/* ---- Values ---- */

/* The table and the object that the section we are in is for, and the section's name in it. */
struct scope {
    const struct config_key *keys;
    size_t count;
    const char *prefix;
    void *base;
};

static int set_scalar(struct reader *r, const struct scope *scope, const struct config_key *key,
                      const yaml_node_t *node)
{
    struct brig_error why = {0};
    if (config_value_set(key, scope->base, &r->config->arena, text_of(node), &why) < 0)
        return fail(r, node, "%s%s: %s", r->path, key->name + strlen(scope->prefix), why.message);
    return 0;
}

/* The value itself may be a secret, and is not repeated. */
static int wrong_type(struct reader *r, const struct scope *scope, const struct config_key *key,
                      const yaml_node_t *node, const char *got)
{
    autostr struct str allowed = {0};
    config_value_describe(key, &allowed);
    bool list = key->type == CONFIG_LIST || key->type == CONFIG_WORDS;
    return fail(r, node, "%s%s: a %s where there should be %s%s", r->path,
                key->name + strlen(scope->prefix), got,
                allowed.data ? allowed.data : "something else",
                list ? ". Write it in brackets: [a, b]" : "");
}

/* What is written instead may be a key, and is not repeated. */
static int fail_entry(struct reader *r, const yaml_node_t *node)
{
    return fail(r, node,
                "%sallowed_keys: an item is a key, or {key: KEY, workdir_roots: [PATH, …]} with "
                "each of the two once",
                r->path);
}

static int read_roots(struct reader *r, const yaml_node_t *node, struct config_list *roots)
{
    static const struct config_key key = {
        .name = "allowed_keys: workdir_roots", .type = CONFIG_LIST, .check = config_check_path};
    const struct scope scope = {.prefix = "", .base = roots};
    int result = 0;
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         result == 0 && item < node->data.sequence.items.top; item++) {
        const yaml_node_t *path = node_of(r, *item);
        result = is_value(path) ? set_scalar(r, &scope, &key, path) : fail_entry(r, path);
    }
    return result;
}

/* A mapping in the list of API keys: a key with directories of its own for work_dir. */
static int read_api_key(struct reader *r, const struct scope *scope, const struct config_key *key,
                        const yaml_node_t *entry)
{
    struct config_list *roots = NULL;
    bool named = false;
    for (yaml_node_pair_t *pair = entry->data.mapping.pairs.start;
         pair < entry->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = node_of(r, pair->key), *value = node_of(r, pair->value);
        const char *word = name->type == YAML_SCALAR_NODE ? text_of(name) : "";
        int result = 0;
        if (strcmp(word, "key") == 0 && is_value(value) && !named) {
            named = true;
            result = set_scalar(r, scope, key, value);
        } else if (strcmp(word, "workdir_roots") == 0 && value->type == YAML_SEQUENCE_NODE &&
                   !roots) {
            roots = arena_alloc(&r->config->arena, sizeof *roots);
            result = roots ? read_roots(r, value, roots) : brig_fail_nomem(r->err);
        } else {
            result = fail_entry(r, name);
        }
        if (result < 0)
            return result;
    }
    if (!named)
        return fail_entry(r, entry);
    r->config->security.key_roots[r->config->security.allowed_keys.count - 1] = roots;
    return 0;
}

static int read_list(struct reader *r, const struct scope *scope, const struct config_key *key,
                     const yaml_node_t *list)
{
    config_value_clear(key, scope->base);
    if (key->with_roots)
        memset(r->config->security.key_roots, 0, sizeof r->config->security.key_roots);
    for (yaml_node_item_t *at = list->data.sequence.items.start; at < list->data.sequence.items.top;
         at++) {
        const yaml_node_t *item = node_of(r, *at);
        int result = key->with_roots && item->type == YAML_MAPPING_NODE
                         ? read_api_key(r, scope, key, item)
                     : is_value(item) ? set_scalar(r, scope, key, item)
                                      : wrong_type(r, scope, key, item, "nested or empty item");
        if (result < 0)
            return result;
    }
    return 0;
}

static int read_value(struct reader *r, const struct scope *scope, const struct config_key *key,
                      const yaml_node_t *node)
{
    bool list = key->type == CONFIG_LIST || key->type == CONFIG_WORDS;
    if (is_null(node))
        return 0; /* as if it were not there */
    if (node->type != (list ? YAML_SEQUENCE_NODE : YAML_SCALAR_NODE))
        return wrong_type(r, scope, key, node,
                          node->type == YAML_MAPPING_NODE    ? "mapping"
                          : node->type == YAML_SEQUENCE_NODE ? "list"
                                                             : "single value");
    int result = list ? read_list(r, scope, key, node) : set_scalar(r, scope, key, node);
    if (result < 0 || scope->base != r->config)
        return result;
    const char *origin =
        arena_printf(&r->config->arena, "%s:%zu", r->name, node->start_mark.line + 1);
    r->config->origins[key - config_keys] = origin;
    return origin ? 0 : brig_fail_nomem(r->err);
}

/* ---- Sections ---- */

static bool is_runtimes(const struct reader *r)
{
    return strcmp(r->path, RUNTIMES_SECTION ".") == 0;
}

static struct scope scope_of(const struct reader *r)
{
    struct scope scope = {config_keys, config_key_count, r->path, r->config};
    if (!str_starts_with(r->path, RUNTIMES_SECTION ".") || is_runtimes(r))
        return scope;
    const char *name = r->path + strlen(RUNTIMES_SECTION ".");
    size_t length = strcspn(name, ".");
    return (struct scope){config_runtime_keys, config_runtime_key_count, name + length + 1,
                          config_runtime_entry(r->config, name, length)};
}

static int fail_unknown(struct reader *r, const struct scope *scope, const yaml_node_t *name)
{
    autostr struct str hint = {0};
    config_key_hint(scope->keys, scope->count, scope->prefix, r->path, text_of(name), &hint);
    if (hint.failed)
        return brig_fail_nomem(r->err);
    return fail(r, name, "unknown key '%s%s'. %s%s", r->path, str_shown(text_of(name)).text,
                hint.data,
                r->path[0] || str_ends_with(hint.data, "?") ? "" : ", " RUNTIMES_SECTION);
}

static int begin_runtime(struct reader *r, const yaml_node_t *name)
{
    struct brig_error why = {0};
    int result = config_check_word(text_of(name), &why);
    if (result == 0 && strpbrk(text_of(name), ".:*"))
        result = brig_fail(&why, BRIG_E_INVALID, 0, "'%s' has one of . : * in it",
                           str_shown(text_of(name)).text);
    if (result == 0)
        result = config_runtime_begin(r->config, text_of(name), r->name, name->start_mark.line + 1,
                                      &why);
    return result < 0 ? fail(r, name, "runtimes: %s", why.message) : 0;
}

static int check_name(struct reader *r, const yaml_node_t *mapping, const yaml_node_pair_t *pair,
                      const yaml_node_t *name)
{
    if (name->type != YAML_SCALAR_NODE)
        return fail(r, name, "a key should be a word");
    if (strlen(r->path) + strlen(text_of(name)) + 2 > sizeof r->path || strchr(text_of(name), '.'))
        return fail(r, name, "unknown key '%s%s'. A section and its keys stand below each other",
                    r->path, str_shown(text_of(name)).text);
    for (const yaml_node_pair_t *other = mapping->data.mapping.pairs.start; other < pair; other++) {
        const yaml_node_t *before = node_of(r, other->key);
        if (strcmp(text_of(before), text_of(name)) == 0)
            return fail(r, name, "'%s%s' is given twice; the first time in line %zu", r->path,
                        str_shown(text_of(name)).text, before->start_mark.line + 1);
    }
    return 0;
}

/* A key and its value. If that is a section, it is in *ret_section and the path leads to it. */
static int read_pair(struct reader *r, const yaml_node_t *mapping, const yaml_node_pair_t *pair,
                     const yaml_node_t **ret_section)
{
    const struct scope scope = scope_of(r);
    const yaml_node_t *name = node_of(r, pair->key), *value = node_of(r, pair->value);
    char whole[2 * CONFIG_NAME_MAX];
    int result = check_name(r, mapping, pair, name);
    if (result < 0)
        return result;
    (void)snprintf(whole, sizeof whole, "%s%s", scope.prefix, text_of(name));
    bool runtimes = r->path[0] == '\0' && strcmp(text_of(name), RUNTIMES_SECTION) == 0;
    if (!runtimes && !is_runtimes(r) && !config_key_is_section(scope.keys, scope.count, whole)) {
        const struct config_key *key = config_key_find(scope.keys, scope.count, whole);
        return key ? read_value(r, &scope, key, value) : fail_unknown(r, &scope, name);
    }
    if (is_null(value))
        return 0;
    if (value->type != YAML_MAPPING_NODE)
        return fail(r, name, "'%s%s' is a section: what belongs to it stands below it, indented",
                    r->path, str_shown(text_of(name)).text);
    result = is_runtimes(r) ? begin_runtime(r, name) : 0;
    size_t length = strlen(r->path);
    (void)snprintf(r->path + length, sizeof r->path - length, "%s.", text_of(name));
    *ret_section = value;
    return result;
}

static int read_sections(struct reader *r, const yaml_node_t *root)
{
    struct {
        const yaml_node_t *node;
        const yaml_node_pair_t *next;
        size_t path_length; /* to which the path is cut at its end */
    } levels[DEPTH_MAX + 1] = {{root, root->data.mapping.pairs.start, 0}};
    for (size_t depth = 1; depth > 0;) {
        const yaml_node_t *node = levels[depth - 1].node, *section = NULL;
        size_t length = strlen(r->path);
        if (levels[depth - 1].next == node->data.mapping.pairs.top) {
            r->path[levels[--depth].path_length] = '\0';
            continue;
        }
        int result = read_pair(r, node, levels[depth - 1].next++, &section);
        if (result < 0)
            return result;
        if (!section)
            continue;
        levels[depth].node = section;
        levels[depth].next = section->data.mapping.pairs.start;
        levels[depth++].path_length = length;
    }
    return 0;
}

/* Keys may be in it. */
static void close_document(yaml_document_t *document)
{
    for (yaml_node_t *node = document->nodes.start; node < document->nodes.top; node++)
        if (node->type == YAML_SCALAR_NODE)
            explicit_bzero(node->data.scalar.value, node->data.scalar.length);
    yaml_document_delete(document);
}

static int read_document(struct reader *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root || is_null(root))
        return 0; /* an empty file is all defaults */
    if (root->type != YAML_MAPPING_NODE)
        return fail(r, root, "there should be sections, such as 'server:', and keys below them");
    return read_sections(r, root);
}

int config_yaml_read(const char *name, const void *text, size_t length,
                     struct server_config *config, struct brig_error *err)
{
    struct reader r = {.name = name, .config = config, .err = err};
    if (length > CONFIG_FILE_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0, "%s: more than %zu KiB", name,
                         CONFIG_FILE_MAX >> 10);
    int result = check_form(&r, text, length);
    if (result < 0)
        return result;
    if (!yaml_parser_initialize(&r.parser))
        return brig_fail_nomem(err);
    yaml_parser_set_input_string(&r.parser, text, length);
    if (yaml_parser_load(&r.parser, &r.document)) {
        result = read_document(&r);
        close_document(&r.document);
    } else {
        result = fail_syntax(&r);
    }
    close_parser(&r.parser);
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
