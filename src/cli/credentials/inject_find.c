/* SPDX-License-Identifier: MIT */
/* Credentials in the configuration of tools: the token of npm's registry, and passwords in the URLs
 * of pip's index and of git's remotes. The files are the user's own; those of a project, which a
 * jail can write, are not read. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/host_command.h"
#include "cli/identity.h"
#include "cli/settings/settings.h"
#include "git/git.h"
#include "policy/policy.h"

#define NPM_REGISTRY "https://registry.npmjs.org/"

/* ---- URLs ---- */

/* The parts of "SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/PATH]"; slices of it. */
struct url {
    const char *scheme, *user, *password, *host, *path;
    size_t scheme_length, user_length, password_length, host_length, path_length;
};

/* False if it is not http or https. */
static bool url_split(const char *text, struct url *ret)
{
    *ret = (struct url){.scheme = text};
    ret->scheme_length = strcspn(text, ":");
    bool web = (ret->scheme_length == 5 && strncasecmp(text, "https", 5) == 0) ||
               (ret->scheme_length == 4 && strncasecmp(text, "http", 4) == 0);
    if (!web || !str_starts_with(text + ret->scheme_length, "://"))
        return false;
    const char *at = text + ret->scheme_length + 3;
    size_t length = strcspn(at, "/?#");
    const char *sign = memrchr(at, '@', length);
    if (sign) {
        const char *colon = memchr(at, ':', (size_t)(sign - at));
        ret->user = at;
        ret->user_length = (size_t)((colon ? colon : sign) - at);
        ret->password = colon ? colon + 1 : NULL;
        ret->password_length = colon ? (size_t)(sign - colon - 1) : 0;
        length -= (size_t)(sign + 1 - at);
        at = sign + 1;
    }
    ret->host = at;
    ret->host_length = length;
    ret->path = at + length;
    ret->path_length = strcspn(ret->path, "?#");
    return length > 0;
}

/* Appends the name of the service. An address has none, so it gets one that does not exist. */
static void append_name(struct str *to, const char *host, size_t length)
{
    bool v6 = host[0] == '[', v4 = strspn(host, "0123456789.") >= length;
    for (size_t i = 0; i < length && v4; i++)
        str_append_char(to, host[i] == '.' ? '-' : host[i]);
    if (!v4 && !v6)
        str_append_bytes(to, host, length);
    if (v4 || v6)
        str_append(to, v6 ? "ipv6.invalid" : ".ip.invalid");
}

/* Fills in the service: its name, its upstream, and the path as the suffix of the variable. */
static int set_service(struct inject_spec *spec, const struct url *url, struct brig_error *err)
{
    autostr struct str all = {0};
    size_t name_length = strcspn(url->host, ":/?#"), upstream, path, user;
    append_name(&all, url->host, name_length);
    str_append_char(&all, '\0');
    upstream = all.length;
    str_append_bytes(&all, url->scheme, url->scheme_length);
    str_append(&all, "://");
    str_append_bytes(&all, url->host, url->host_length);
    str_append_char(&all, '\0');
    path = all.length;
    str_append_bytes(&all, url->path, url->path_length);
    str_append_char(&all, '\0');
    user = all.length;
    percent_decode(&all, url->user ? url->user : "", url->user_length);
    int status = str_take(&all, &spec->found, err);
    if (status < 0)
        return status;
    spec->name = spec->found;
    spec->upstream = spec->found + upstream;
    spec->suffix = spec->found + path;
    spec->user = spec->found + user;
    spec->source = INJECT_GIVEN;
    return 0;
}

int inject_from_url(const char *text, struct inject_spec *spec, struct brig_error *err)
{
    struct url url;
    if (!url_split(text, &url) || url.password_length == 0)
        return 0;
    struct str secret = {0};
    str_reserve(&secret, url.password_length + 2);
    percent_decode(&secret, url.password, url.password_length);
    int status = str_take(&secret, &spec->secret, err);
    spec->form = INJECT_BASIC;
    if (status == 0)
        status = set_service(spec, &url, err);
    return status < 0 ? status : 1;
}

/* ---- npm ---- */

/* The value of a line "KEY = VALUE", without quotes; false if it has another key. */
static bool line_value(const char *line, size_t length, const char *key, size_t key_length,
                       const char **ret_value, size_t *ret_length)
{
    const char *end = line + length, *equals = memchr(line, '=', length);
    while (line < end && isspace((unsigned char)*line))
        line++;
    if (!equals || (size_t)(equals - line) < key_length || strncmp(line, key, key_length) != 0)
        return false;
    for (const char *at = line + key_length; at < equals; at++)
        if (!isspace((unsigned char)*at))
            return false;
    const char *value = equals + 1;
    while (value < end && (isspace((unsigned char)*value) || *value == '"' || *value == '\''))
        value++;
    while (end > value && (isspace((unsigned char)end[-1]) || end[-1] == '"' || end[-1] == '\''))
        end--;
    *ret_value = value;
    *ret_length = (size_t)(end - value);
    return *ret_length > 0;
}

/* The last value of a key in a text of lines. */
static bool find_value(const char *text, const char *key, size_t key_length, const char **ret_value,
                       size_t *ret_length)
{
    bool found = false;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        found |= line_value(line, length, key, key_length, ret_value, ret_length);
        line += length + (line[length] == '\n');
    }
    return found;
}

/* Appends a value of an .npmrc, in which ${NAME} is a variable. */
static void append_value(struct str *to, const char *value, size_t length,
                         const char *(*variable)(const char *name))
{
    for (size_t i = 0; i < length; i++) {
        const char *end = i + 2 < length && value[i] == '$' && value[i + 1] == '{'
                              ? memchr(value + i, '}', length - i)
                              : NULL;
        char name[128];
        size_t size = end ? (size_t)(end - value) - i - 2 : 0;
        if (!end || size >= sizeof name) {
            str_append_char(to, value[i]);
            continue;
        }
        memcpy(name, value + i + 2, size);
        name[size] = '\0';
        const char *text = variable(name);
        str_append(to, text ? text : "");
        i += size + 2;
    }
}

/* Looks for "//HOST/PATH/:KEY", as npm does also for the directories above. */
static bool find_scoped(const char *text, const struct url *url, const char *key,
                        const char **ret_value, size_t *ret_length)
{
    size_t path = url->path_length;
    for (;;) {
        while (path > 0 && url->path[path - 1] == '/')
            path--;
        autostr struct str name = {0};
        str_append(&name, "//");
        str_append_bytes(&name, url->host, url->host_length + path);
        str_concat(&name, "/:", key);
        if (name.failed)
            return false;
        if (find_value(text, name.data, name.length, ret_value, ret_length))
            return true;
        if (path == 0)
            return false;
        while (path > 0 && url->path[path - 1] != '/')
            path--;
    }
}

int inject_from_npmrc(const char *text, const char *(*variable)(const char *name),
                      struct inject_spec *spec, struct brig_error *err)
{
    autostr struct str registry = {0};
    struct str secret = {0};
    struct url url;
    const char *value = NPM_REGISTRY;
    size_t length = strlen(NPM_REGISTRY);
    (void)find_value(text, "registry", strlen("registry"), &value, &length);
    append_value(&registry, value, length, variable);
    if (registry.failed)
        return brig_fail_nomem(err);
    if (!url_split(registry.data, &url))
        return 0;
    bool bearer = find_scoped(text, &url, "_authToken", &value, &length);
    if (!bearer && !find_scoped(text, &url, "_auth", &value, &length))
        return 0;
    str_reserve(&secret, POLICY_SECRET_MAX + 1);
    str_append(&secret, bearer ? "" : "Basic ");
    append_value(&secret, value, length, variable);
    int status = str_take(&secret, &spec->secret, err);
    spec->form = bearer ? INJECT_BEARER : INJECT_PLAIN;
    if (status == 0)
        status = set_service(spec, &url, err);
    if (status == 0 && url.path_length > 1) /* packages are below the registry */
        spec->paths[0] = spec->suffix;
    return status < 0 ? status : 1;
}

/* ---- pip ---- */

int inject_pip_index(const char *text, char **ret_url, struct brig_error *err)
{
    static const char *const keys[] = {"index-url", "index_url"};
    const char *value;
    size_t length;
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        if (find_value(text, keys[i], strlen(keys[i]), &value, &length)) {
            autostr struct str url = {0};
            str_append_bytes(&url, value, length);
            int status = str_take(&url, ret_url, err);
            return status < 0 ? status : 1;
        }
    return 0;
}

/* ---- Files ---- */

static const char *variable_of_user(const char *name)
{
    return getenv(name);
}

static int find_npm(struct inject_spec *spec, const struct identity *identity,
                    struct brig_error *err)
{
    const char *named = getenv("NPM_CONFIG_USERCONFIG");
    char path[PATH_LENGTH_MAX + 1];
    char *text = host_read_file(identity->host_home, named && named[0] == '/' ? named : ".npmrc",
                                identity, path);
    int status = text ? inject_from_npmrc(text, variable_of_user, spec, err) : 0;
    policy_free_secret(text);
    return status;
}

static int find_pip(struct inject_spec *spec, const struct identity *identity,
                    struct brig_error *err)
{
    static const char *const files[] = {".config/pip/pip.conf", ".pip/pip.conf", "/etc/pip.conf"};
    const char *given = getenv("PIP_INDEX_URL");
    int status = given ? inject_from_url(given, spec, err) : 0;
    for (size_t i = 0; status == 0 && !given && i < ARRAY_LENGTH(files); i++) {
        char path[PATH_LENGTH_MAX + 1], *url = NULL;
        char *text = host_read_file(identity->host_home, files[i], identity, path);
        if (text)
            status = inject_pip_index(text, &url, err);
        if (status > 0)
            status = inject_from_url(url, spec, err);
        policy_free_secret(url);
        policy_free_secret(text);
    }
    return status;
}

int inject_find(struct inject_spec *spec, const struct identity *identity, struct brig_error *err)
{
    const char *value = spec->source == INJECT_ENV ? getenv(spec->where) : "other";
    int status = 0;
    if ((value && *value) || spec->finder == INJECT_NOWHERE || !identity->host_home)
        return 0;
    switch (spec->finder) {
    case INJECT_NPMRC:
        status = find_npm(spec, identity, err);
        break;
    case INJECT_PIP_CONF:
        status = find_pip(spec, identity, err);
        break;
    case INJECT_NOWHERE:
        break;
    }
    if (status != 0)
        return status < 0 ? status : 0;
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "the variable '%s' is not set, and %s has no credential", spec->where,
                     spec->finder == INJECT_NPMRC ? "~/.npmrc" : "the index URL of pip");
}

/* ---- git ---- */

/* Whether a credential for this server was added before: the first one counts. */
static bool is_added(const struct brig_policy *policy, const char *upstream)
{
    static const char scheme[] = "https://";
    for (size_t i = 0; i < policy->net.inject_count; i++) {
        const struct policy_inject *inject = &policy->net.inject[i];
        bool same = inject->upstream ? strcmp(inject->upstream, upstream) == 0
                                     : str_starts_with(upstream, scheme) &&
                                           strcmp(upstream + strlen(scheme), inject->name) == 0;
        if (same)
            return true;
    }
    return false;
}

/* 1 if the URL has a password, else 0. */
static int add_remote(struct settings *settings, const char *url, const struct identity *identity,
                      const char *origin, struct brig_error *err)
{
    struct inject_spec spec = {.header = "authorization"};
    autofree char *from = NULL;
    int status = inject_from_url(url, &spec, err);
    if (status > 0 && !is_added(settings->policy, spec.upstream)) {
        spec.suffix = NULL;
        status = str_make(&from, err, spec.upstream, "/");
        spec.git = from;
        if (status == 0)
            status = inject_apply_spec(settings, &spec, identity, origin, err);
        status = status < 0 ? status : 1;
    }
    inject_done(&spec);
    return status;
}

/* The output of `git config --null --get-regexp`: "KEY\nVALUE\0" for each remote. */
static int add_remotes(struct settings *settings, const struct str *list,
                       const struct identity *identity, const char *origin, struct brig_error *err)
{
    int status = 0, added = 0;
    for (size_t at = 0; status >= 0 && at < list->length;) {
        const char *row = list->data + at, *value = strchr(row, '\n');
        if (value)
            status = add_remote(settings, value + 1, identity, origin, err);
        added += status > 0;
        at += strlen(row) + 1;
    }
    return status < 0 ? status : added;
}

int inject_git_remotes(struct settings *settings, const struct identity *identity,
                       const char *origin, struct brig_error *err)
{
    static const char *const words[] = {"config", "--null", "--get-regexp",
                                        "^remote\\..*\\.(url|pushurl)$", NULL};
    struct git git = {0};
    struct str list = {0};
    const struct git_user user = {.uid = identity->host_uid, .gid = identity->host_gid};
    int status = git_find(&git, (const char *const *)environ, settings->policy, user, err);
    if (status == 0 && git.program && settings->cwd_fd >= 0)
        status = git_run(
            &git, &(struct git_call){.words = words, .dir = settings->cwd_fd, .out = &list}, err);
    if (status >= 0 && list.data)
        status = add_remotes(settings, &list, identity, origin, err);
    else if (status >= 0)
        status = 0;
    if (list.data)
        explicit_bzero(list.data, list.length);
    str_done(&list);
    git_done(&git);
    if (status == 0 && !settings->dry_run)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "@git: no remote of the repository here has a password in its URL");
    return status < 0 ? status : 0;
}
