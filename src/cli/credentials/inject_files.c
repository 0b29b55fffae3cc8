/* SPDX-License-Identifier: MIT */
/* The files that an injected credential comes from, which are hidden in the jail. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/identity.h"
#include "cli/settings/settings.h"
#include "git/outside_path.h"
#include "policy/policy.h"

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

/* Looks for the program as host_command() does. */
static int note_program(struct settings *settings, const char *name, const char *origin,
                        struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    autofree char *outside = NULL;
    int status = outside_path((const char *const *)environ, NULL, &outside, err);
    if (status < 0)
        return status;
    const char *list = outside;
    while (path_next_program(&list, name, path))
        if (access(path, X_OK) == 0)
            return note_path(settings, path, OTHER_FILE, origin, err);
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
    if (spec->source == INJECT_FILE && inject_file_path(spec, identity, path))
        status = note_path(settings, path, SECRET_FILE, origin, err);
    else if (spec->source == INJECT_COMMAND)
        status = note_command(settings, spec->where, identity, origin, err);
    if (status == 0 && spec->ca)
        status = note_path(settings, spec->ca, OTHER_FILE, origin, err);
    identity_leave(identity);
    return status;
}
