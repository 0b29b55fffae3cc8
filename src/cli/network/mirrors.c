/* SPDX-License-Identifier: MIT */
/* Package registry mirrors: from the user's files and environment, never from a file of the
 * project. */
#include "cli/network/mirrors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/host_command.h"
#include "cli/report.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"

#define FILES_MAX 4
#define NAMES_MAX 4

/* Where each tool configures its mirror. Files are relative to the home directory; the jail does
 * not see them, because they may contain passwords. So a key that has a variable as well is set in
 * the jail by that variable, without a password. */
static const struct mirror_tool {
    unsigned tool;
    const char *name;
    const char *files[FILES_MAX];
    const char *keys[NAMES_MAX];
    const char *variables[NAMES_MAX]; /* those of the keys first */
} tools[] = {
    {NET_TOOL_NPM, "npm", {".npmrc"}, {"registry"}, {"npm_config_registry", "NPM_CONFIG_REGISTRY"}},
    {NET_TOOL_PYPI,
     "PyPI",
     {".config/pip/pip.conf", ".pip/pip.conf", "/etc/pip.conf"},
     {"index-url", "extra-index-url"},
     {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL"}},
    {NET_TOOL_CRATES,
     "crates.io",
     {".cargo/config.toml", ".cargo/config"},
     {"registry", "index"},
     {NULL, NULL, "CARGO_REGISTRY_INDEX"}},
    {NET_TOOL_GO, "Go", {".config/go/env"}, {"GOPROXY"}, {"GOPROXY"}},
};

/* Parses one URL around "://"; false if it is not http or https. */
static bool read_url(const char *scheme_end, size_t before, const char *end, size_t *ret_size,
                     char rule[MIRRORS_RULE_MAX])
{
    const char *host = scheme_end + 3;
    size_t size = 0;
    while (host + size < end && !strchr("/?# \t\r\n\"',|", host[size]))
        size++;
    *ret_size = size;
    bool tls = before >= 5 && memcmp(scheme_end - 5, "https", 5) == 0;
    bool plain = before >= 4 && memcmp(scheme_end - 4, "http", 4) == 0;
    const char *user = memrchr(host, '@', size);
    size -= user ? (size_t)(user + 1 - host) : 0;
    host = user ? user + 1 : host;
    if ((!tls && !plain) || size == 0 || size + 8 > MIRRORS_RULE_MAX)
        return false;
    bool has_port = memchr(host, ':', size) && host[size - 1] != ']';
    (void)snprintf(rule, MIRRORS_RULE_MAX, "%.*s%s", (int)size, host,
                   has_port ? "" : (tls ? ":443" : ":80"));
    return true;
}

bool mirrors_next_url(const char *text, size_t length, size_t *at, char rule[MIRRORS_RULE_MAX])
{
    const char *found;
    while ((found = memmem(text + *at, length - *at, "://", 3))) {
        size_t size = 0;
        bool ours = read_url(found, (size_t)(found - text) - *at, text + length, &size, rule);
        *at = (size_t)(found + 3 + size - text);
        if (ours)
            return true;
    }
    return false;
}

int mirrors_find_key(const char *line, size_t length, const char *const *keys, size_t *ret_value)
{
    const char *equals = memchr(line, '=', length);
    if (!equals)
        return -1;
    const char *begin = line, *end = equals;
    while (begin < end && strchr(" \t\"", *begin))
        begin++;
    while (end > begin && strchr(" \t\"", end[-1]))
        end--;
    const char *scope = memrchr(begin, ':', (size_t)(end - begin));
    begin = scope ? scope + 1 : begin;
    size_t size = (size_t)(end - begin);
    for (int i = 0; keys[i]; i++)
        if (strlen(keys[i]) == size && strncasecmp(keys[i], begin, size) == 0) {
            *ret_value = (size_t)(equals + 1 - line);
            return i;
        }
    return -1;
}

static int allow_all(struct settings *settings, const struct mirror_tool *tool, const char *text,
                     size_t length, const char *origin, struct brig_error *err)
{
    char rule[MIRRORS_RULE_MAX];
    size_t at = 0;
    int status = brig_policy_origin(settings->policy, origin, err);
    while (status == 0 && mirrors_next_url(text, length, &at, rule)) {
        if (brig_policy_allow(settings->policy, rule, NULL) < 0)
            message_warning("'%s' in %s cannot be allowed as a mirror", rule, origin);
        else
            message_note("a mirror of %s is allowed: %s (%s)", tool->name, rule, origin);
    }
    return status;
}

void mirrors_clean(const char *text, size_t length, struct str *out)
{
    static const char blanks[] = " \t\r\n\"'";
    while (length > 0 && strchr(blanks, text[length - 1]))
        length--;
    while (length > 0 && strchr(blanks, *text)) {
        text++;
        length--;
    }
    if (out->length > 0 && length > 0)
        str_append_char(out, ' ');
    for (size_t i = 0; i < length; i++) {
        bool after = i >= 3 && memcmp(text + i - 3, "://", 3) == 0;
        size_t host = 0;
        while (after && i + host < length && !strchr("/?# \t\r\n\"',|", text[i + host]))
            host++;
        const char *user = after ? memrchr(text + i, '@', host) : NULL;
        if (user)
            i = (size_t)(user + 1 - text);
        str_append_char(out, text[i]);
    }
}

/* The values that the jail gets as variables, by the index of the key or variable. */
struct mirror_values {
    struct str items[NAMES_MAX];
};

static void take_value(struct mirror_values *values, const struct mirror_tool *tool, size_t index,
                       const char *text, size_t length)
{
    if (tool->variables[index])
        mirrors_clean(text, length, &values->items[index]);
}

static bool is_set(const struct brig_policy *policy, const char *name)
{
    for (size_t i = 0; i < policy->env_count; i++)
        if (policy->env[i].kind == POLICY_ENV_SET && strcmp(policy->env[i].name, name) == 0)
            return true;
    return false;
}

/* Sets the variables, unless the user sets them. */
static int set_values(struct settings *settings, const struct mirror_tool *tool,
                      struct mirror_values *values, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        struct str *value = &values->items[i];
        if (status == 0 && value->failed)
            status = brig_fail_nomem(err);
        if (status == 0 && value->length > 0 && !is_set(settings->policy, tool->variables[i]))
            status = brig_policy_setenv(settings->policy, tool->variables[i], value->data, err);
        str_done(value);
    }
    return status;
}

/* A value may continue in indented lines. */
static int allow_in_text(struct settings *settings, const struct mirror_tool *tool,
                         const char *text, const char *origin, struct mirror_values *values,
                         struct brig_error *err)
{
    int status = 0, key = -1;
    for (const char *line = text; *line && status == 0;) {
        size_t length = strcspn(line, "\n"), value = 0;
        bool indented = line[0] == ' ' || line[0] == '\t';
        if (!indented || memchr(line, '=', length))
            key = mirrors_find_key(line, length, tool->keys, &value);
        if (key >= 0)
            status = allow_all(settings, tool, line + value, length - value, origin, err);
        if (key >= 0 && line[0] != '@') /* the registry of a scope has no variable */
            take_value(values, tool, (size_t)key, line + value, length - value);
        line += length + (line[length] == '\n');
    }
    return status;
}

static int look(struct settings *settings, const struct mirror_tool *tool,
                const struct identity *identity, struct brig_error *err)
{
    int status = 0;
    struct mirror_values values = {0}, given = {0};
    for (size_t i = 0; i < NAMES_MAX && status == 0; i++) {
        const char *value = tool->variables[i] ? getenv(tool->variables[i]) : NULL;
        if (!value)
            continue;
        status = allow_all(settings, tool, value, strlen(value), tool->variables[i], err);
        take_value(&given, tool, i, value, strlen(value));
    }
    if (status == 0)
        status = set_values(settings, tool, &given, err);
    for (size_t i = 0; i < FILES_MAX && tool->files[i] && status == 0; i++) {
        char path[PATH_LENGTH_MAX + 1];
        char *text = host_read_file(settings->home, tool->files[i], identity, path);
        if (text)
            status = allow_in_text(settings, tool, text, path, &values, err);
        policy_free_secret(text);
        if (status == 0)
            status = set_values(settings, tool, &values, err);
    }
    return status;
}

int mirrors_apply(struct settings *settings, const struct identity *identity,
                  struct brig_error *err)
{
    unsigned wanted = settings->policy->net.rules.mirrors;
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(tools) && status == 0; i++)
        if (wanted & tools[i].tool)
            status = look(settings, &tools[i], identity, err);
    return status;
}
