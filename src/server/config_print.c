/* SPDX-License-Identifier: MIT */
/* The configuration as YAML that can be read again, each value with where it came from. */
#include <string.h>

#include "base/str.h"
#include "server/config.h"
#include "server/config_keys.h"

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
