/* SPDX-License-Identifier: MIT */
/* The files that credentials come from, which are hidden in the jail. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/inject.h"
#include "cli/settings.h"

/* The secret itself is hidden wherever it is. */
enum kind { SECRET_FILE, OTHER_FILE };

static bool is_in(const char *const *directories, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (path_is_beneath(directories[i], path))
            return true;
    return false;
}

/* Software and certificates that every user of the machine can read. Hidden, they would be missing inside. */
static bool is_public(const char *path, const struct stat *info)
{
    static const char *const system[] = {"/bin",       "/etc", "/lib",  "/lib32", "/lib64",
                                         "/nix/store", "/opt", "/sbin", "/usr"};
    return (info->st_mode & S_IROTH) && is_in(system, ARRAY_LENGTH(system), path);
}

/* A jail has these filesystems of its own. */
static bool is_kernels(const char *path)
{
    static const char *const kernels[] = {"/proc", "/sys"};
    return is_in(kernels, ARRAY_LENGTH(kernels), path);
}

/* In the home a mask also hides a file that takes the name later. A name with wildcards would be a pattern. */
static int hide_at_home(struct settings *settings, const char *path, const char *origin,
                        struct brig_error *err)
{
    autofree char *home = settings->home ? realpath(settings->home, NULL) : NULL;
    if (!home || strcmp(home, "/") == 0 || !path_is_beneath(home, path))
        return 0;
    const char *rest = path + strlen(home) + 1;
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
    struct settings_secret secret = {.dev = info->st_dev, .ino = info->st_ino};
    const char *const parts[] = {"inject, ", origin};
    int status = str_copy(path, &secret.path, err);
    if (status == 0)
        status = str_join(parts, ARRAY_LENGTH(parts), "", &secret.origin, err);
    if (status < 0) {
        free(secret.path);
        return status;
    }
    settings->secrets[settings->secret_count++] = secret;
    return hide_at_home(settings, path, secret.origin, err);
}

static int note_path(struct settings *settings, const char *path, enum kind kind,
                     const char *origin, struct brig_error *err)
{
    autofree char *real = realpath(path, NULL);
    struct stat info;
    if (!real && kind == SECRET_FILE && errno != ENOENT && !settings->dry_run)
        return brig_fail(err, BRIG_E_INVALID, errno, "cannot hide the secret in '%s'",
                         str_shown(path).text);
    if (!real || stat(real, &info) < 0 || !S_ISREG(info.st_mode) || is_kernels(real) ||
        (kind == OTHER_FILE && is_public(real, &info)))
        return 0;
    return note(settings, real, &info, origin, err);
}

/* ---- a line of shell ---- */

/* The file of a word; false if it is too long. */
static bool expand(const char *word, const char *home, char path[PATH_LENGTH_MAX + 1])
{
    static const char *const homes[] = {"~/", "$HOME/", "${HOME}/"};
    for (size_t i = 0; i < ARRAY_LENGTH(homes) && home; i++)
        if (str_starts_with(word, homes[i]))
            return str_fill(path, PATH_LENGTH_MAX + 1, home, word + strlen(homes[i]) - 1);
    return str_fill(path, PATH_LENGTH_MAX + 1, word);
}

/* As the shell looks for it. */
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

static int note_files(struct settings *settings, const struct inject_spec *spec,
                      const struct identity *identity, const char *origin, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    if (spec->source == INJECT_FILE && inject_file_path(spec, identity, path))
        status = note_path(settings, path, SECRET_FILE, origin, err);
    else if (spec->source == INJECT_COMMAND)
        status = note_command(settings, spec->where, identity, origin, err);
    return status == 0 && spec->ca ? note_path(settings, spec->ca, OTHER_FILE, origin, err)
                                   : status;
}

int inject_note_files(struct settings *settings, const struct inject_spec *spec,
                      const struct identity *identity, const char *origin, struct brig_error *err)
{
    identity_enter(identity);
    int status = note_files(settings, spec, identity, origin, err);
    identity_leave(identity);
    return status;
}
