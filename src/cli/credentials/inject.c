/* SPDX-License-Identifier: MIT */
/* Credentials that the broker adds outside: the presets, the syntax of a request, and the policy. */
#include "cli/credentials/inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cli/credentials/oauth.h"
#include "cli/settings/options.h"
#include "cli/settings/profile.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"

/* The value of the variable from which a program takes its key: not empty, because many programs
 * require one. */
#define PLACEHOLDER "injected-by-brig"
/* Replaces the secret in a dry run, which reads none. */
#define UNREAD "unread"

/* The only host with which gh speaks plain HTTP. Its API is at api.HOST. */
#define GH_SITE "github.localhost"

/* Services whose clients use well-known variables for the address and the key. */
static const struct {
    const char *name; /* rows of one preset are adjacent */
    struct inject_spec spec;
} presets[] = {
    {"@anthropic",
     {.name = "api.anthropic.com",
      .header = "x-api-key",
      .where = "ANTHROPIC_API_KEY",
      .placeholder = "ANTHROPIC_API_KEY",
      .variable = "ANTHROPIC_BASE_URL",
      .strip = {"authorization"}}},
    {"@openai",
     {.name = "api.openai.com",
      .header = "authorization",
      .form = INJECT_BEARER,
      .where = "OPENAI_API_KEY",
      .placeholder = "OPENAI_API_KEY",
      .variable = "OPENAI_BASE_URL",
      .suffix = "/v1",
      .also = {{"OPENAI_API_BASE", "/v1", false}},
      .file = "~/.codex/auth.json",
      .content = "{\"OPENAI_API_KEY\":\"" PLACEHOLDER "\"}"}},
    {"@gemini",
     {.name = "generativelanguage.googleapis.com",
      .header = "x-goog-api-key",
      .where = "GEMINI_API_KEY",
      .placeholder = "GEMINI_API_KEY",
      .variable = "GOOGLE_GEMINI_BASE_URL",
      .strip = {"authorization"},
      .file = "~/.gemini/settings.json", /* with only the URL it would ask how to log in */
      .content = "{\"security\":{\"auth\":{\"selectedType\":\"gemini-api-key\"}}}"}},
    {"@openrouter",
     {.name = "openrouter.ai",
      .header = "authorization",
      .form = INJECT_BEARER,
      .where = "OPENROUTER_API_KEY",
      .placeholder = "OPENROUTER_API_KEY",
      .variable = "OPENROUTER_BASE_URL",
      .suffix = "/api/v1",
      .also = {{"OPENROUTER_API_BASE", "/api/v1", false}, {"OPENROUTER_HOST", "", false}}}},
    {"@github",
     {.name = "github.com",
      .header = "authorization",
      .form = INJECT_BASIC,
      .user = "x-access-token",
      .where = "GITHUB_TOKEN",
      .site = GH_SITE,
      .git = "https://github.com/"}},
    {"@github",
     {.name = "api.github.com",
      .header = "authorization",
      .form = INJECT_BEARER,
      .where = "GITHUB_TOKEN",
      .placeholder = "GH_TOKEN",
      .site = "api." GH_SITE,
      .variable = "GITHUB_API_URL",
      .also = {{"GITHUB_GRAPHQL_URL", "/graphql", false}, {"GH_HOST", GH_SITE, true}}}},
    {"@claude",
     {.name = "api.anthropic.com",
      .header = "authorization",
      .form = INJECT_BEARER,
      .source = INJECT_OAUTH,
      .where = "claude",
      .placeholder = "CLAUDE_CODE_OAUTH_TOKEN",
      .variable = "ANTHROPIC_BASE_URL",
      .strip = {"x-api-key"},
      .file = "~/.claude.json", /* else its first start asks api.anthropic.com itself */
      .content = "{\"hasCompletedOnboarding\":true}"}},
    {"@codex",
     {.name = "chatgpt.com",
      .header = "authorization",
      .form = INJECT_BEARER,
      .source = INJECT_OAUTH,
      .where = "codex",
      .variable = "OPENAI_BASE_URL",
      .suffix = "/backend-api/codex",
      .also = {{"CHATGPT_BASE_URL", "/backend-api/", false}},
      .file = "~/.codex/auth.json"}},
    {"@npm",
     {.name = "registry.npmjs.org",
      .header = "authorization",
      .form = INJECT_BEARER,
      .where = "NPM_TOKEN",
      .finder = INJECT_NPMRC,
      .variable = "npm_config_registry",
      .suffix = "/",
      .also = {{"npm_config_replace_registry_host", "always", true}}}},
    {"@pypi",
     {.name = "pypi.org",
      .header = "authorization",
      .form = INJECT_BASIC,
      .user = "__token__",
      .where = "PYPI_TOKEN",
      .finder = INJECT_PIP_CONF,
      .variable = "PIP_INDEX_URL",
      .suffix = "/simple/"}},
};
#define PRESETS                                                                                    \
    "@anthropic, @claude, @openai, @codex, @gemini, @openrouter, @github, @git, @npm and @pypi"
/* Every remote with a password in its URL. */
#define GIT_PRESET "@git"

static const struct {
    const char *word; /* including its colon */
    enum inject_source source;
} sources[] = {
    {"env:", INJECT_ENV},     {"file:", INJECT_FILE},   {"fd:", INJECT_FD},
    {"cmd:", INJECT_COMMAND}, {"oauth:", INJECT_OAUTH},
};

/* ---- parsing ---- */

static int refuse_source(const char *text, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' does not say where the secret comes from: write env:VARIABLE, "
                     "file:PATH, fd:NUMBER or cmd:COMMAND, after bearer: or basic:USER: if needed",
                     str_shown(text).text);
}

/* Parses "[bearer:|basic:USER:]SOURCE:WHERE"; with a preset the form may be omitted. */
static int parse_source(char *text, struct inject_spec *spec, struct brig_error *err)
{
    char *at = text;
    if (str_starts_with(at, "bearer:")) {
        spec->form = INJECT_BEARER;
        at += strlen("bearer:");
    } else if (str_starts_with(at, "basic:")) {
        char *colon = strchr(at + strlen("basic:"), ':');
        if (!colon)
            return refuse_source(text, err);
        spec->form = INJECT_BASIC;
        spec->user = at + strlen("basic:");
        *colon = '\0';
        at = colon + 1;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(sources); i++) {
        if (!str_starts_with(at, sources[i].word))
            continue;
        spec->source = sources[i].source;
        spec->where = at + strlen(sources[i].word);
        return *spec->where ? 0 : refuse_source(text, err);
    }
    return refuse_source(text, err);
}

static int add_word(const char *words[INJECT_WORDS_MAX + 1], const char *word,
                    struct brig_error *err)
{
    size_t count = 0;
    while (words[count])
        count++;
    if (count == INJECT_WORDS_MAX)
        return option_fail_too_many(word, INJECT_WORDS_MAX, err);
    words[count] = word;
    return 0;
}

static int add_words(const char *words[INJECT_WORDS_MAX + 1], char *list, struct brig_error *err)
{
    int status = 0;
    for (char *word; status == 0 && (word = strsep(&list, ","));)
        if (*word)
            status = add_word(words, word, err);
    return status;
}

#define WORDS "url=, upstream=, methods=, path=, strip= and ca="

static int parse_word(char *word, struct inject_spec *spec, struct brig_error *err)
{
    char *value = strchr(word, '=');
    if (!value)
        return nearest_fail(word, WORDS, err);
    *value++ = '\0';
    if (strcmp(word, "url") == 0)
        spec->variable = value;
    else if (strcmp(word, "upstream") == 0)
        spec->upstream = value;
    else if (strcmp(word, "ca") == 0)
        spec->ca = value;
    else if (strcmp(word, "methods") == 0)
        return add_words(spec->methods, value, err);
    else if (strcmp(word, "path") == 0)
        return add_word(spec->paths, value, err);
    else if (strcmp(word, "strip") == 0)
        return add_words(spec->strip, value, err);
    else
        return nearest_fail(word, WORDS, err);
    return 0;
}

const char *inject_preset_at(size_t index, const char **ret_about)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++) {
        if ((i > 0 && strcmp(presets[i].name, presets[i - 1].name) == 0) || index-- > 0)
            continue;
        *ret_about = presets[i].spec.name;
        return presets[i].name;
    }
    *ret_about = "passwords in the remotes of this repository";
    return index == 0 ? GIT_PRESET : NULL;
}

const char *inject_preset_for(const char *variable)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        if (presets[i].spec.source == INJECT_ENV && strcmp(presets[i].spec.where, variable) == 0)
            return presets[i].name;
    return NULL;
}

static const struct inject_spec *find_preset(const char *name, size_t row)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        if (strcmp(presets[i].name, name) == 0 && row-- == 0)
            return &presets[i].spec;
    return NULL;
}

/* Takes a word up to the next blank; a shell command takes everything that is left. */
static char *next_word(char **rest)
{
    if (!*rest)
        return NULL;
    *rest += strspn(*rest, " \t");
    if (**rest == '\0')
        return NULL;
    char *word = *rest;
    size_t length = strcspn(word, " \t");
    char saved = word[length];
    word[length] = '\0';
    bool line = strstr(word, "cmd:") != NULL;
    word[length] = saved;
    *rest = line || saved == '\0' ? NULL : word + length + 1;
    if (!line)
        word[length] = '\0';
    return word;
}

/* 1 after the last row of a preset. */
static int parse_first(char **rest, size_t row, struct inject_spec *spec, struct brig_error *err)
{
    char *text = spec->text, *name = next_word(rest);
    if (!name)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the value is empty; write NAME HEADER=SOURCE, or @PRESET");
    if (name[0] == '@') {
        const struct inject_spec *preset = find_preset(name, row);
        if (!preset)
            return row > 0 ? 1 : nearest_fail(name, PRESETS, err);
        *spec = *preset;
        spec->text = text;
        return 0;
    }
    if (row > 0)
        return 1;
    spec->name = name;
    char *header = next_word(rest);
    char *equals = header ? strchr(header, '=') : NULL;
    if (!equals)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "'%s' lacks the header: write NAME HEADER=SOURCE, as "
                         "'api.example.com authorization=bearer:env:API_KEY'",
                         str_shown(name).text);
    *equals = '\0';
    spec->header = header;
    return parse_source(equals + 1, spec, err);
}

int inject_parse(const char *text, size_t row, struct inject_spec *ret_spec, struct brig_error *err)
{
    struct inject_spec spec = {0};
    int status = str_copy(text, &spec.text, err);
    if (status < 0)
        return status;
    char *rest = spec.text;
    status = parse_first(&rest, row, &spec, err);
    for (char *word; status == 0 && (word = next_word(&rest));)
        status = strcspn(word, ":") < strcspn(word, "=") ? parse_source(word, &spec, err)
                                                         : parse_word(word, &spec, err);
    if (status != 0) {
        inject_done(&spec);
        return status;
    }
    *ret_spec = spec;
    return 0;
}

void inject_done(struct inject_spec *spec)
{
    policy_free_secret(spec->secret);
    free(spec->found);
    free(spec->text);
    *spec = (struct inject_spec){0};
}

/* ---- the policy ---- */

int inject_dress(const struct inject_spec *spec, const char *secret, char **ret_value,
                 struct brig_error *err)
{
    struct str plain = {0}, value = {0};
    /* Reserve everything at once: growing would leave copies of the secret behind. */
    size_t room = 2 * (strlen(secret) + (spec->user ? strlen(spec->user) : 0)) + 64;
    str_reserve(&plain, room);
    str_reserve(&value, room);
    if (spec->form == INJECT_BASIC) {
        str_concat(&plain, spec->user, ":", secret);
        str_append(&value, "Basic ");
        base64_append(&value, plain.data ? plain.data : "", plain.length);
    } else {
        str_concat(&value, spec->form == INJECT_BEARER ? "Bearer " : "", secret);
    }
    value.failed = value.failed || plain.failed;
    if (plain.data)
        explicit_bzero(plain.data, plain.capacity);
    str_done(&plain);
    int status = str_take(&value, ret_value, err);
    str_done(&value);
    return status;
}

/* The number of settings that git takes from the jail's environment: those of the user, and those
 * of other credentials. */
static unsigned long count_git_settings(const struct brig_policy *policy)
{
    static const char name[] = "GIT_CONFIG_COUNT=";
    autofree char **env = NULL;
    if (policy_environment(policy, (const char *const *)environ, &env, NULL) < 0)
        return 0;
    for (size_t i = 0; env[i]; i++)
        if (str_starts_with(env[i], name))
            return strtoul(env[i] + strlen(name), NULL, 10);
    return 0;
}

/* Redirects git by variables of its configuration. */
static int redirect_git(struct brig_policy *policy, size_t index, const char *from,
                        struct brig_error *err)
{
    char url[POLICY_INJECT_URL_MAX], setting[POLICY_INJECT_URL_MAX + 32];
    char count[32], key[48], value[48];
    unsigned long last = count_git_settings(policy);
    const struct policy_inject *inject = &policy->net.inject[index];
    policy_inject_url(inject, url);
    (void)snprintf(setting, sizeof setting, "url.%s%s/.insteadOf", inject->site ? "http://" : "",
                   inject->site ? inject->site : url);
    (void)snprintf(count, sizeof count, "%lu", last + 1);
    (void)snprintf(key, sizeof key, "GIT_CONFIG_KEY_%lu", last);
    (void)snprintf(value, sizeof value, "GIT_CONFIG_VALUE_%lu", last);
    int status = brig_policy_setenv(policy, "GIT_CONFIG_COUNT", count, err);
    if (status == 0)
        status = brig_policy_setenv(policy, key, setting, err);
    return status == 0 ? brig_policy_setenv(policy, value, from, err) : status;
}

static int set_also(struct brig_policy *policy, const struct inject_spec *spec, size_t index,
                    struct brig_error *err)
{
    char url[POLICY_INJECT_URL_MAX];
    int status = 0;
    policy_inject_url(&policy->net.inject[index], url);
    for (size_t i = 0; status == 0 && i < INJECT_ALSO_MAX && spec->also[i].name; i++) {
        autofree char *value = NULL;
        status = str_make(&value, err, spec->also[i].fixed ? "" : url, spec->also[i].text);
        if (status == 0)
            status = brig_policy_setenv(policy, spec->also[i].name, value, err);
    }
    return status;
}

/* Sets the secret's variable to a placeholder, or removes it from the jail's environment. */
static int hide_secret(struct brig_policy *policy, const struct inject_spec *spec,
                       struct brig_error *err)
{
    int status =
        spec->placeholder ? brig_policy_setenv(policy, spec->placeholder, PLACEHOLDER, err) : 0;
    bool replaced = spec->placeholder && strcmp(spec->placeholder, spec->where) == 0;
    return status == 0 && spec->source == INJECT_ENV && !replaced
               ? brig_policy_unsetenv(policy, spec->where, err)
               : status;
}

int inject_add_to_policy(struct brig_policy *policy, const struct inject_spec *spec,
                         const char *value, struct brig_error *err)
{
    struct brig_inject inject = {.size = sizeof(struct brig_inject),
                                 .name = spec->name,
                                 .header = spec->header,
                                 .value = value,
                                 .upstream = spec->upstream,
                                 .variable = spec->variable,
                                 .suffix = spec->suffix,
                                 .ca = spec->ca,
                                 .methods = spec->methods[0] ? spec->methods : NULL,
                                 .paths = spec->paths[0] ? spec->paths : NULL,
                                 .strip = spec->strip[0] ? spec->strip : NULL,
                                 .site = spec->site};
    size_t index = policy->net.inject_count;
    int status = hide_secret(policy, spec, err);
    if (status == 0)
        status = brig_policy_inject(policy, &inject, err);
    if (status == 0)
        status = set_also(policy, spec, index, err);
    return status == 0 && spec->git ? redirect_git(policy, index, spec->git, err) : status;
}

static void add_placeholder(struct settings *settings, const struct inject_spec *spec)
{
    if (spec->file && spec->content && settings->prelude_count < SETTINGS_PRELUDES_MAX)
        settings->preludes[settings->prelude_count++] =
            (struct settings_prelude){.path = spec->file, .text = spec->content};
}

/* Appends base64 as RFC 4648, 5 has it, without padding. */
static void append_url64(struct str *to, const char *text)
{
    size_t start = to->length;
    base64_append(to, text, strlen(text));
    while (!to->failed && to->length > start && to->data[to->length - 1] == '=')
        to->data[--to->length] = '\0';
    for (size_t i = start; !to->failed && i < to->length; i++)
        to->data[i] = to->data[i] == '+' ? '-' : (to->data[i] == '/' ? '_' : to->data[i]);
}

/* Codex reads the account from its file: tokens that say who the user is, and open nothing. */
static int write_codex_file(const char *account, char **ret_text, struct brig_error *err)
{
    autostr struct str claims = {0}, token = {0}, text = {0};
    if (strpbrk(account, "\"'\\"))
        return brig_fail(err, BRIG_E_INVALID, 0, "the account of the credential is malformed");
    str_concat(&claims, "{\"exp\":4102444800,\"email\":\"" PLACEHOLDER "\",",
               "\"https://api.openai.com/auth\":{\"chatgpt_account_id\":\"", account,
               "\",\"chatgpt_plan_type\":\"pro\"}}");
    append_url64(&token, "{\"alg\":\"none\"}");
    str_append(&token, ".");
    append_url64(&token, claims.data ? claims.data : "");
    str_append(&token, ".");
    append_url64(&token, PLACEHOLDER);
    const char *jwt = token.data ? token.data : "";
    str_concat(&text,
               "{\"auth_mode\":\"chatgpt\",\"OPENAI_API_KEY\":null,\"tokens\":{\"id_token\":\"",
               jwt, "\",\"access_token\":\"", jwt, "\",\"refresh_token\":\"" PLACEHOLDER,
               "\",\"account_id\":\"", account, "\"},\"last_refresh\":\"2999-01-01T00:00:00Z\"}");
    text.failed = text.failed || token.failed || claims.failed;
    return str_take(&text, ret_text, err);
}

static int take_token(struct settings *settings, struct inject_spec *spec,
                      const struct identity *identity, char **ret_secret, struct brig_error *err)
{
    autofree char *account = NULL;
    int status = oauth_take(settings, identity, spec->where, ret_secret, &account, err);
    if (status == 0 && spec->file && !spec->content && !settings->account_file) {
        status = write_codex_file(account ? account : "", &settings->account_file, err);
        spec->content = settings->account_file;
    }
    return status;
}

int inject_apply_spec(struct settings *settings, struct inject_spec *spec,
                      const struct identity *identity, const char *origin, struct brig_error *err)
{
    char *secret = NULL, *value = NULL;
    int status = 0;
    if (settings->dry_run)
        status = str_copy(UNREAD, &secret, err);
    else
        status = spec->source == INJECT_OAUTH ? take_token(settings, spec, identity, &secret, err)
                                              : inject_read_secret(spec, identity, &secret, err);
    if (status == 0)
        status = inject_dress(spec, secret, &value, err);
    if (status == 0)
        status = inject_add_to_policy(settings->policy, spec, value, err);
    if (status == 0 && spec->source == INJECT_OAUTH && !settings->dry_run)
        status = oauth_make_live(settings, err);
    if (status == 0)
        status = inject_note_files(settings, spec, identity, origin, err);
    if (status == 0)
        add_placeholder(settings, spec);
    policy_free_secret(secret);
    policy_free_secret(value);
    return status;
}

/* 1 after the last row. */
static int apply_row(struct settings *settings, const struct settings_inject *asked, size_t row,
                     const struct identity *identity, struct brig_error *err)
{
    struct inject_spec spec = {0};
    int status = inject_parse(asked->text, row, &spec, err);
    if (status != 0)
        return status;
    char placeholder[PROFILE_VARIABLE_MAX];
    if (settings->profile && spec.placeholder &&
        profile_placeholder(settings->profile, spec.placeholder, placeholder))
        spec.placeholder = placeholder;
    status = inject_find(&spec, identity, settings->dry_run ? NULL : err);
    if (status == 0 || settings->dry_run)
        status = inject_apply_spec(settings, &spec, identity, asked->origin, err);
    inject_done(&spec);
    return status;
}

static int apply_one(struct settings *settings, const struct settings_inject *asked,
                     const struct identity *identity, struct brig_error *err)
{
    int status = brig_policy_origin(settings->policy, asked->origin, err);
    if (status == 0 && strcmp(asked->text, GIT_PRESET) == 0)
        status = inject_git_remotes(settings, identity, asked->origin, err);
    else
        for (size_t row = 0; status == 0; row++)
            status = apply_row(settings, asked, row, identity, err);
    return status < 0 ? brig_wrap(err, status, "inject") : 0;
}

/* Whether an optional credential can be used: it has a secret, a network to use it on, and no other request for its
 * name. */
static bool is_wanted(const struct settings *settings, const char *text)
{
    const struct brig_policy *policy = settings->policy;
    struct inject_spec spec = {0};
    if (str_starts_with(settings->jail, SETTINGS_LOGIN_JAIL))
        return false;
    if (!policy_has_door(policy) || inject_parse(text, 0, &spec, NULL) < 0)
        return policy_has_door(policy); /* a mistake is reported later */
    const char *value = spec.source == INJECT_ENV ? getenv(spec.where) : spec.where;
    bool wanted = value && *value && (spec.source != INJECT_FILE || access(value, R_OK) == 0);
    if (spec.source == INJECT_OAUTH)
        wanted = oauth_is_kept(settings, spec.where);
    for (size_t i = 0; i < policy->net.inject_count; i++)
        wanted = wanted && strcmp(policy->net.inject[i].name, spec.name) != 0;
    inject_done(&spec);
    return wanted;
}

int inject_apply(struct settings *settings, const struct identity *identity, struct brig_error *err)
{
    int status = 0;
    /* Keep the secrets out of core dumps of brig, too. The limit is 1, because with 0 the kernel
     * would still pipe a core to a handler. */
    const struct rlimit none = {1, 1};
    if (!settings->dry_run)
        (void)setrlimit(RLIMIT_CORE, &none);
    /* Those that the user asks for come first. */
    for (int optional = 0; optional < 2; optional++)
        for (size_t i = 0; status == 0 && i < settings->inject_count; i++)
            if (settings->injects[i].optional == optional &&
                (!optional || is_wanted(settings, settings->injects[i].text)))
                status = apply_one(settings, &settings->injects[i], identity, err);
    return status;
}
