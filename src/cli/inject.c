/* SPDX-License-Identifier: MIT */
/* Credentials that the broker adds outside: parses the requests, reads the secrets, finds the files
 * to hide, and adds them to the policy. */
#include "cli/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "policy/policy.h"

/* The value of the variable from which a program takes its key: not empty, because many programs
 * require one. */
#define PLACEHOLDER "injected-by-brig"
/* Replaces the secret in a dry run, which reads none. */
#define UNREAD "unread"

/* Services whose clients use well-known variables for the address and the key. */
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
    const char *word; /* including its colon */
    enum inject_source source;
} sources[] = {
    {"env:", INJECT_ENV}, {"file:", INJECT_FILE}, {"fd:", INJECT_FD}, {"cmd:", INJECT_COMMAND}};

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

const char *inject_preset_for(const char *variable)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        if (presets[i].spec.source == INJECT_ENV && strcmp(presets[i].spec.where, variable) == 0)
            return presets[i].name;
    return NULL;
}

static const struct inject_spec *find_preset(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(presets); i++)
        if (strcmp(presets[i].name, name) == 0)
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

#define COMMAND_ENDS "\n;|&(`" /* a program name follows these */
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
        /* Assignments may precede the program. */
        words->inner = words->inner || !taken || !strchr(words->text, '=');
        if (taken)
            return true;
    }
}

/* ---- Sources of secrets: a variable, a file, a descriptor, a program ---- */

#define ROOM (POLICY_SECRET_MAX + 2) /* the end of a line, and one byte to detect excess */
#define EXIT_NO_EXEC 127

static int from_variable(const char *name, char **ret_secret, struct brig_error *err)
{
    const char *value = getenv(name);
    if (!value || !*value)
        return brig_fail(err, BRIG_E_INVALID, 0, "the variable '%s' is not set",
                         str_shown(name).text);
    return str_copy(value, ret_secret, err);
}

/* Reads everything, up to the maximum length of a secret. */
static int read_secret(int fd, const char *what, char **ret_secret, struct brig_error *err)
{
    char *text = calloc(1, ROOM + 1);
    size_t length = 0;
    ssize_t count = 1;
    if (!text)
        return brig_fail_nomem(err);
    while (length < ROOM && count != 0) {
        count = read(fd, text + length, ROOM - length);
        if (count < 0 && errno != EINTR)
            break;
        length += count > 0 ? (size_t)count : 0;
    }
    int failed = count < 0 ? errno : 0;
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    if (failed == 0 && length > 0 && length <= POLICY_SECRET_MAX && strlen(text) == length) {
        *ret_secret = text;
        return 0;
    }
    explicit_bzero(text, ROOM);
    free(text);
    return brig_fail(err, BRIG_E_INVALID, failed, "no secret of 1 to %d bytes without NUL in '%s'",
                     POLICY_SECRET_MAX, str_shown(what).text);
}

/* The path of file:, with "~/" expanded; false if it is too long. */
static bool file_path(const struct inject_spec *spec, const struct identity *identity,
                      char path[static PATH_LENGTH_MAX + 1])
{
    bool at_home = str_starts_with(spec->where, "~/") && identity->host_home;
    return str_fill(path, PATH_LENGTH_MAX + 1, at_home ? identity->host_home : "",
                    spec->where + at_home);
}

static int from_file(const struct inject_spec *spec, const struct identity *identity,
                     char **ret_secret, struct brig_error *err)
{
    char full[PATH_LENGTH_MAX + 1];
    const char *path = spec->where;
    bool fits = file_path(spec, identity, full);
    identity_enter(identity);
    autoclose int fd = fits ? open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    int failed = fits ? errno : ENAMETOOLONG;
    identity_leave(identity);
    if (fd < 0)
        return brig_fail(err, BRIG_E_INVALID, failed, "cannot read the secret in '%s'",
                         str_shown(path).text);
    return read_secret(fd, path, ret_secret, err);
}

static int from_number(const char *text, char **ret_secret, struct brig_error *err)
{
    uint64_t number = 0;
    int status = parse_uint(text, INT32_MAX, PARSE_ZERO_OK, &number, err);
    if (status < 0)
        return status;
    if (fcntl((int)number, F_GETFD) < 0)
        return brig_fail(err, BRIG_E_INVALID, 0, "file descriptor %s is not open", text);
    status = read_secret((int)number, text, ret_secret, err);
    (void)close((int)number); /* so that no other program reads it */
    return status;
}

/* Executes the command with the ids of the user for whom brig acts. */
static __attribute__((noreturn)) void execute(const char *line, const struct identity *identity,
                                              int output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        identity_become(identity) == 0)
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(EXIT_NO_EXEC);
}

static int from_command(const char *line, const struct identity *identity, char **ret_secret,
                        struct brig_error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot make a pipe");
    autoclose int input = pair[0];
    autoclose int output = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        execute(line, identity, output);
    if (pid < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot run '%s'", str_shown(line).text);
    (void)close(take_fd(&output));
    int status = read_secret(input, line, ret_secret, err), ended = 0;
    (void)close(take_fd(&input)); /* a program that continues to write gets SIGPIPE */
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return status;
    if (status == 0)
        policy_free_secret(take_ptr(ret_secret));
    return brig_fail(err, BRIG_E_INVALID, 0, "'%s' failed, and so gave no secret",
                     str_shown(line).text);
}

int inject_read_secret(const struct inject_spec *spec, const struct identity *identity,
                       char **ret_secret, struct brig_error *err)
{
    switch (spec->source) {
    case INJECT_ENV:
        return from_variable(spec->where, ret_secret, err);
    case INJECT_FILE:
        return from_file(spec, identity, ret_secret, err);
    case INJECT_FD:
        return from_number(spec->where, ret_secret, err);
    case INJECT_COMMAND:
        return from_command(spec->where, identity, ret_secret, err);
    }
    return brig_fail(err, BRIG_E_INVALID, 0, "no such source");
}

/* ---- The files of credentials, which are hidden in the jail ---- */

/* A file with the secret itself is hidden wherever it is. */
enum kind { SECRET_FILE, OTHER_FILE };

/* Whether a file need not be hidden: software and certificates that are world-readable, and that
 * would be missing inside. */
static bool is_public(const char *path, const struct stat *info)
{
    static const char *const system[] = {"/bin",       "/etc", "/lib",  "/lib32", "/lib64",
                                         "/nix/store", "/opt", "/sbin", "/usr"};
    bool found = false;
    for (size_t i = 0; i < ARRAY_LENGTH(system); i++)
        found = found || path_is_beneath(system[i], path);
    return found && (info->st_mode & S_IROTH);
}

/* In the home a mask also hides a file that gets this name later. A name with wildcards would be a
 * pattern. */
static int hide_at_home(struct settings *settings, const char *path, const char *origin,
                        struct brig_error *err)
{
    char home[PATH_LENGTH_MAX + 1];
    const char *rest =
        settings->home && path_resolve(settings->home, home) ? path_below(home, path) : NULL;
    if (!rest || strcmp(home, "/") == 0)
        return 0;
    if (strpbrk(rest, "*?[\\") || rest[0] == '~')
        return 0;
    int status = brig_policy_origin(settings->policy, origin, err);
    return status < 0 ? status : settings_hide_in_home(settings, rest, err);
}

static int note(struct settings *settings, const char *path, const struct stat *info,
                const char *origin, struct brig_error *err)
{
    for (size_t i = 0; i < settings->secret_count; i++)
        if (strcmp(settings->secrets[i].path, path) == 0)
            return 0;
    if (settings->secret_count == SETTINGS_SECRETS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "credentials come from too many files: at most %d can be hidden",
                         SETTINGS_SECRETS_MAX);
    struct settings_secret *secret = &settings->secrets[settings->secret_count++];
    *secret = (struct settings_secret){.dev = info->st_dev, .ino = info->st_ino};
    int status = str_copy(path, &secret->path, err);
    if (status == 0)
        status = str_make(&secret->origin, err, "inject, ", origin);
    return status < 0 ? status : hide_at_home(settings, path, secret->origin, err);
}

static int note_path(struct settings *settings, const char *path, enum kind kind,
                     const char *origin, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    struct stat info;
    bool found = path_resolve(path, real);
    if (!found && kind == SECRET_FILE && errno != ENOENT && !settings->dry_run)
        return brig_fail(err, BRIG_E_INVALID, errno, "cannot hide the secret in '%s'",
                         str_shown(path).text);
    /* A jail has its own /proc and /sys. */
    if (!found || stat(real, &info) < 0 || !S_ISREG(info.st_mode) ||
        path_is_beneath("/proc", real) || path_is_beneath("/sys", real) ||
        (kind == OTHER_FILE && is_public(real, &info)))
        return 0;
    return note(settings, real, &info, origin, err);
}

/* ---- a shell command ---- */

/* The path of a word; false if it is too long. */
static bool expand(const char *word, const char *home, char path[PATH_LENGTH_MAX + 1])
{
    static const char *const homes[] = {"~/", "$HOME/", "${HOME}/"};
    for (size_t i = 0; i < ARRAY_LENGTH(homes) && home; i++)
        if (str_starts_with(word, homes[i]))
            return str_fill(path, PATH_LENGTH_MAX + 1, home, word + strlen(homes[i]) - 1);
    return str_fill(path, PATH_LENGTH_MAX + 1, word);
}

/* Looks for the program as the shell does. */
static int note_program(struct settings *settings, const char *name, const char *origin,
                        struct brig_error *err)
{
    const char *rest = getenv("PATH");
    while (rest && *rest) {
        char path[PATH_LENGTH_MAX + 1];
        size_t length = strcspn(rest, ":");
        autostr struct str directory = {0};
        str_append_bytes(&directory, rest, length);
        if (directory.failed)
            return brig_fail_nomem(err);
        if (str_fill(path, sizeof path, length ? directory.data : ".", "/", name) &&
            access(path, X_OK) == 0)
            return note_path(settings, path, OTHER_FILE, origin, err);
        rest += length + (rest[length] == ':');
    }
    return 0;
}

static int note_words(struct settings *settings, const char *line, bool whole, const char *home,
                      const char *origin, struct brig_error *err)
{
    struct inject_words words = {.rest = line, .whole = whole};
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    while (status == 0 && inject_next_word(&words)) {
        if (words.program && !strchr(words.text, '/'))
            status = note_program(settings, words.text, origin, err);
        else if (expand(words.text, home, path))
            status = note_path(settings, path, OTHER_FILE, origin, err);
    }
    return status;
}

static int note_command(struct settings *settings, const char *line,
                        const struct identity *identity, const char *origin, struct brig_error *err)
{
    const char *home = getenv("HOME");
    home = home && *home ? home : identity->host_home;
    int status = note_words(settings, line, true, home, origin, err);
    return status < 0 ? status : note_words(settings, line, false, home, origin, err);
}

int inject_note_files(struct settings *settings, const struct inject_spec *spec,
                      const struct identity *identity, const char *origin, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    identity_enter(identity);
    if (spec->source == INJECT_FILE && file_path(spec, identity, path))
        status = note_path(settings, path, SECRET_FILE, origin, err);
    else if (spec->source == INJECT_COMMAND)
        status = note_command(settings, spec->where, identity, origin, err);
    if (status == 0 && spec->ca)
        status = note_path(settings, spec->ca, OTHER_FILE, origin, err);
    identity_leave(identity);
    return status;
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

/* Redirects git by variables of its configuration. */
static int redirect_git(struct brig_policy *policy, size_t index, const char *from,
                        struct brig_error *err)
{
    char url[POLICY_INJECT_URL_MAX], key[POLICY_INJECT_URL_MAX + 32];
    policy_inject_url(&policy->net.inject[index], url);
    (void)snprintf(key, sizeof key, "url.%s/.insteadOf", url);
    int status = brig_policy_setenv(policy, "GIT_CONFIG_COUNT", "1", err);
    if (status == 0)
        status = brig_policy_setenv(policy, "GIT_CONFIG_KEY_0", key, err);
    return status == 0 ? brig_policy_setenv(policy, "GIT_CONFIG_VALUE_0", from, err) : status;
}

/* Sets the secret's variable to a placeholder, or removes it from the jail's environment. */
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

/* Whether an optional credential can be used: it has a secret, a network to use it on, and no other request for its
 * name. */
static bool is_wanted(const struct settings *settings, const char *text)
{
    const struct brig_policy *policy = settings->policy;
    struct inject_spec spec = {0};
    if (!policy_has_door(policy) || inject_parse(text, &spec, NULL) < 0)
        return policy_has_door(policy); /* a mistake is reported later */
    const char *value = spec.source == INJECT_ENV ? getenv(spec.where) : spec.where;
    bool wanted = value && *value && (spec.source != INJECT_FILE || access(value, R_OK) == 0);
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
