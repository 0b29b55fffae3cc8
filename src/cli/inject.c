/* SPDX-License-Identifier: MIT */
/* Credentials that are added outside: what was asked for, and what the policy is told of it. */
#include "cli/inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/str.h"
#include "cli/settings.h"
#include "policy/policy.h"

/* What a program finds in the variable it takes its key from: not empty, as many insist on one. */
#define PLACEHOLDER "injected-by-brig"
/* In a dry run nobody looks for the secret. */
#define UNREAD "unread"

/* Services with a usual way to be told where they are and who one is. */
static const struct {
    const char *name;
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
      .suffix = "/v1"}},
    {"@github",
     {.name = "github.com",
      .header = "authorization",
      .form = INJECT_BASIC,
      .user = "x-access-token",
      .where = "GITHUB_TOKEN",
      .git = "https://github.com/"}},
    {"@npm",
     {.name = "registry.npmjs.org",
      .header = "authorization",
      .form = INJECT_BEARER,
      .where = "NPM_TOKEN",
      .variable = "npm_config_registry",
      .suffix = "/"}},
    {"@pypi",
     {.name = "pypi.org",
      .header = "authorization",
      .form = INJECT_BASIC,
      .user = "__token__",
      .where = "PYPI_TOKEN",
      .variable = "PIP_INDEX_URL",
      .suffix = "/simple/"}},
};

static const struct {
    const char *word; /* with its colon */
    enum inject_source source;
} sources[] = {
    {"env:", INJECT_ENV}, {"file:", INJECT_FILE}, {"fd:", INJECT_FD}, {"cmd:", INJECT_COMMAND}};

/* ---- taking it apart ---- */

static int refuse_source(const char *text, struct brig_error *err)
{
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "'%s' does not say where the secret comes from: write env:VARIABLE, "
                     "file:PATH, fd:NUMBER or cmd:COMMAND, after bearer: or basic:USER: if needed",
                     str_shown(text).text);
}

/* "[bearer:|basic:USER:]SOURCE:WHERE"; of a preset the form may be left out. */
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
        return brig_fail(err, BRIG_E_INVALID, 0, "'%s' is one too many; at most %d are possible",
                         str_shown(word).text, INJECT_WORDS_MAX);
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

static const struct inject_spec *find_preset(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i].spec;
    return NULL;
}

static bool is_command(const char *word)
{
    return strstr(word, "cmd:") != NULL;
}

/* A word up to the next blank; a line of shell takes all that is left. */
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
    bool line = is_command(word);
    word[length] = saved;
    *rest = line || saved == '\0' ? NULL : word + length + 1;
    if (!line)
        word[length] = '\0';
    return word;
}

static int parse_first(char **rest, struct inject_spec *spec, struct brig_error *err)
{
    char *text = spec->text, *name = next_word(rest);
    if (!name)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "the value is empty; write NAME HEADER=SOURCE, or @PRESET");
    if (name[0] == '@') {
        const struct inject_spec *preset = find_preset(name);
        if (!preset)
            return nearest_fail(name, "@anthropic, @openai, @github, @npm and @pypi", err);
        *spec = *preset;
        spec->text = text;
        return 0;
    }
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

int inject_parse(const char *text, struct inject_spec *ret_spec, struct brig_error *err)
{
    struct inject_spec spec = {0};
    int status = str_copy(text, &spec.text, err);
    if (status < 0)
        return status;
    char *rest = spec.text;
    status = parse_first(&rest, &spec, err);
    for (char *word; status == 0 && (word = next_word(&rest));)
        status = strcspn(word, ":") < strcspn(word, "=") ? parse_source(word, &spec, err)
                                                         : parse_word(word, &spec, err);
    if (status < 0) {
        inject_done(&spec);
        return status;
    }
    *ret_spec = spec;
    return 0;
}

void inject_done(struct inject_spec *spec)
{
    free(spec->text);
    *spec = (struct inject_spec){0};
}

/* ---- the files that a command names ---- */

#define COMMAND_ENDS "\n;|&(`" /* a program stands after these */
#define WORD_ENDS " \t<>)" COMMAND_ENDS
#define PART_ENDS WORD_ENDS "\"'=:,@"

/* Takes the word at words->rest; false if it is empty or too long. */
static bool take_word(struct inject_words *words)
{
    const char *ends = words->whole ? WORD_ENDS : PART_ENDS;
    size_t length = 0;
    char quote = '\0';
    const char *at = words->rest;
    for (; *at; at++) {
        if (quote && *at == quote) {
            quote = '\0';
            continue;
        }
        if (!quote && words->whole && (*at == '"' || *at == '\'')) {
            quote = *at;
            continue;
        }
        if (!quote && strchr(ends, *at))
            break;
        if (*at == '\\' && quote != '\'' && at[1])
            at++;
        if (length < sizeof words->text)
            words->text[length++] = *at;
    }
    words->rest = at;
    if (length == 0 || length == sizeof words->text)
        return false;
    words->text[length] = '\0';
    return true;
}

bool inject_next_word(struct inject_words *words)
{
    const char *ends = words->whole ? WORD_ENDS : PART_ENDS;
    for (;;) {
        for (; *words->rest && strchr(ends, *words->rest); words->rest++)
            if (strchr(COMMAND_ENDS, *words->rest))
                words->inner = false;
        if (!*words->rest)
            return false;
        bool taken = take_word(words);
        words->program = !words->inner;
        /* Variables may be set before the program. */
        words->inner = words->inner || !taken || !strchr(words->text, '=');
        if (taken)
            return true;
    }
}

/* ---- telling the policy ---- */

int inject_dress(const struct inject_spec *spec, const char *secret, char **ret_value,
                 struct brig_error *err)
{
    struct str plain = {0}, value = {0};
    /* Room for all at once: growing would leave copies behind. */
    size_t room = 2 * (strlen(secret) + (spec->user ? strlen(spec->user) : 0)) + 64;
    plain.data = calloc(1, room);
    value.data = calloc(1, room);
    plain.capacity = value.capacity = room;
    int status = plain.data && value.data ? 0 : brig_fail_nomem(err);
    if (status == 0 && spec->form == INJECT_BASIC) {
        str_append(&plain, spec->user);
        str_append_char(&plain, ':');
        str_append(&plain, secret);
        str_append(&value, "Basic ");
        base64_append(&value, plain.data, plain.length);
    } else if (status == 0) {
        str_append(&value, spec->form == INJECT_BEARER ? "Bearer " : "");
        str_append(&value, secret);
    }
    if (plain.data)
        explicit_bzero(plain.data, room);
    str_done(&plain);
    if (status == 0)
        status = str_take(&value, ret_value, err);
    str_done(&value);
    return status;
}

/* git is told by variables to go another way. */
static int redirect_git(struct brig_policy *policy, size_t index, const char *from,
                        struct brig_error *err)
{
    char url[POLICY_INJECT_URL_MAX], key[POLICY_INJECT_URL_MAX + 32];
    policy_inject_url(index, url);
    (void)snprintf(key, sizeof key, "url.%s/.insteadOf", url);
    int status = brig_policy_setenv(policy, "GIT_CONFIG_COUNT", "1", err);
    if (status == 0)
        status = brig_policy_setenv(policy, "GIT_CONFIG_KEY_0", key, err);
    return status == 0 ? brig_policy_setenv(policy, "GIT_CONFIG_VALUE_0", from, err) : status;
}

/* What the jail must not have, it has not. */
static int hide_secret(struct brig_policy *policy, const struct inject_spec *spec,
                       struct brig_error *err)
{
    if (spec->placeholder)
        return brig_policy_setenv(policy, spec->placeholder, PLACEHOLDER, err);
    return spec->source == INJECT_ENV ? brig_policy_unsetenv(policy, spec->where, err) : 0;
}

int inject_add_to_policy(struct brig_policy *policy, const struct inject_spec *spec,
                         const char *value, struct brig_error *err)
{
    struct brig_inject inject = {.name = spec->name,
                                 .header = spec->header,
                                 .value = value,
                                 .upstream = spec->upstream,
                                 .variable = spec->variable,
                                 .suffix = spec->suffix,
                                 .ca = spec->ca,
                                 .methods = spec->methods[0] ? spec->methods : NULL,
                                 .paths = spec->paths[0] ? spec->paths : NULL,
                                 .strip = spec->strip[0] ? spec->strip : NULL};
    size_t index = policy->net.inject_count;
    int status = hide_secret(policy, spec, err);
    if (status == 0)
        status = brig_policy_inject(policy, &inject, err);
    return status == 0 && spec->git ? redirect_git(policy, index, spec->git, err) : status;
}

static int apply_one(struct settings *settings, const struct settings_inject *asked,
                     const struct identity *identity, struct brig_error *err)
{
    struct inject_spec spec = {0};
    char *secret = NULL, *value = NULL;
    int status = brig_policy_origin(settings->policy, asked->origin, err);
    if (status == 0)
        status = inject_parse(asked->text, &spec, err);
    if (status == 0)
        status = settings->dry_run ? str_copy(UNREAD, &secret, err)
                                   : inject_read_secret(&spec, identity, &secret, err);
    if (status == 0)
        status = inject_dress(&spec, secret, &value, err);
    if (status == 0)
        status = inject_add_to_policy(settings->policy, &spec, value, err);
    if (status == 0)
        status = inject_note_files(settings, &spec, identity, asked->origin, err);
    policy_free_secret(secret);
    policy_free_secret(value);
    inject_done(&spec);
    return status < 0 ? brig_wrap(err, status, "inject") : 0;
}

int inject_apply(struct settings *settings, const struct identity *identity, struct brig_error *err)
{
    int status = 0;
    /* No core of ours has them either: of one byte, as then a core that is piped is not made. */
    const struct rlimit none = {1, 1};
    if (settings->inject_count > 0 && !settings->dry_run)
        (void)setrlimit(RLIMIT_CORE, &none);
    for (size_t i = 0; status == 0 && i < settings->inject_count; i++)
        status = apply_one(settings, &settings->injects[i], identity, err);
    return status;
}
