/* SPDX-License-Identifier: MIT */
/* Mirrors of package registries that the user has configured. */
#include "cli/mirrors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/settings.h"
#include "policy/policy.h"

#define FILES_MAX 4
#define NAMES_MAX 4
#define FILE_LENGTH_MAX 65536

/* Where each tool has it. Files are relative to the home directory. */
static const struct mirror_tool {
    unsigned tool;
    const char *name;
    const char *files[FILES_MAX];
    const char *keys[NAMES_MAX];
    const char *variables[NAMES_MAX];
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
     {"CARGO_REGISTRY_INDEX"}},
    {NET_TOOL_GO, "Go", {".config/go/env"}, {"GOPROXY"}, {"GOPROXY"}},
};

/* ---- reading ---- */

/* One address at a "://"; false if it is none of ours. */
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

bool mirrors_is_key(const char *line, size_t length, const char *const *keys, size_t *ret_value)
{
    const char *equals = memchr(line, '=', length);
    if (!equals)
        return false;
    const char *begin = line, *end = equals;
    while (begin < end && strchr(" \t\"", *begin))
        begin++;
    while (end > begin && strchr(" \t\"", end[-1]))
        end--;
    const char *scope = memrchr(begin, ':', (size_t)(end - begin));
    begin = scope ? scope + 1 : begin;
    size_t size = (size_t)(end - begin);
    for (; *keys; keys++)
        if (strlen(*keys) == size && strncasecmp(*keys, begin, size) == 0) {
            *ret_value = (size_t)(equals + 1 - line);
            return true;
        }
    return false;
}

/* ---- allowing ---- */

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

/* A value may go on in lines that are indented. */
static int allow_in_text(struct settings *settings, const struct mirror_tool *tool,
                         const char *text, const char *origin, struct brig_error *err)
{
    bool ours = false;
    int status = 0;
    for (const char *line = text; *line && status == 0;) {
        size_t length = strcspn(line, "\n"), value = 0;
        bool indented = line[0] == ' ' || line[0] == '\t';
        if (!indented || memchr(line, '=', length))
            ours = mirrors_is_key(line, length, tool->keys, &value);
        if (ours)
            status = allow_all(settings, tool, line + value, length - value, origin, err);
        line += length + (line[length] == '\n');
    }
    return status;
}

/* The file's text, or NULL. With the user's rights. */
static char *read_file(const char *path, const struct identity *identity)
{
    identity_enter(identity);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    char *text = fd >= 0 ? calloc(1, FILE_LENGTH_MAX + 1) : NULL;
    if (text && read(fd, text, FILE_LENGTH_MAX) < 0)
        text[0] = '\0';
    identity_leave(identity);
    return text;
}

static int look(struct settings *settings, const struct mirror_tool *tool,
                const struct identity *identity, struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < NAMES_MAX && tool->variables[i] && status == 0; i++) {
        const char *value = getenv(tool->variables[i]);
        if (value)
            status = allow_all(settings, tool, value, strlen(value), tool->variables[i], err);
    }
    for (size_t i = 0; i < FILES_MAX && tool->files[i] && status == 0; i++) {
        char path[PATH_LENGTH_MAX + 64];
        bool absolute = tool->files[i][0] == '/';
        (void)snprintf(path, sizeof path, "%s%s%s", absolute ? "" : settings->home,
                       absolute ? "" : "/", tool->files[i]);
        autofree char *text = read_file(path, identity);
        if (text)
            status = allow_in_text(settings, tool, text, path, err);
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
