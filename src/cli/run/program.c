/* SPDX-License-Identifier: MIT */
/* The program of a profile: its place, its hosts, its arguments, and what the user is told. */
#include "cli/run/program.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settings/config.h"
#include "cli/settings/profile.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"

#define ARGUMENTS_MAX 64
#define ORIGIN_MAX (PROFILE_NAME_MAX + 16)

static int set_origin(const struct settings *settings, struct brig_error *err)
{
    char origin[ORIGIN_MAX];
    (void)snprintf(origin, sizeof origin, "profile %s", settings->profile->name);
    return brig_policy_origin(settings->policy, origin, err);
}

/* ---- Where the program is ---- */

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static bool find_in_path(const char *name, char path[static PATH_LENGTH_MAX + 1])
{
    const char *list = getenv("PATH");
    while (path_next_program(&list, name, path))
        if (path[0] == '/' && is_program(path))
            return true;
    return false;
}

/* The newest version of Node.js that nvm has installed and that has the program. */
static bool find_in_nvm(const char *home, const char *name, char path[static PATH_LENGTH_MAX + 1])
{
    char versions[PATH_LENGTH_MAX + 1], newest[NAME_MAX + 1] = "";
    if (!str_fill(versions, sizeof versions, home, "/.nvm/versions/node"))
        return false;
    autodir DIR *dir = opendir(versions);
    const struct dirent *item;
    while (dir && (item = readdir(dir)))
        if (item->d_name[0] == 'v' && strverscmp(item->d_name, newest) > 0 &&
            str_fill(path, PATH_LENGTH_MAX + 1, versions, "/", item->d_name, "/bin/", name) &&
            is_program(path))
            (void)snprintf(newest, sizeof newest, "%s", item->d_name);
    return newest[0] != '\0' &&
           str_fill(path, PATH_LENGTH_MAX + 1, versions, "/", newest, "/bin/", name);
}

/* Where installers put programs, without that every shell has the place in its PATH. */
static bool find_elsewhere(const char *home, const char *name,
                           char path[static PATH_LENGTH_MAX + 1])
{
    static const char *const places[] = {"/.local/bin/",   "/.npm-global/bin/", "/.volta/bin/",
                                         "/.bun/bin/",     "/.cargo/bin/",      "/.opencode/bin/",
                                         "/.claude/local/"};
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
        if (str_fill(path, PATH_LENGTH_MAX + 1, home, places[i], name) && is_program(path))
            return true;
    return find_in_nvm(home, name, path);
}

/* Puts the directory of a program at the end of the jail's PATH. */
static int add_to_path(const struct settings *settings, const char *program, struct brig_error *err)
{
    const char *list = getenv("PATH");
    autostr struct str text = {0};
    str_concat(&text, list && *list ? list : "/usr/local/bin:/usr/bin:/bin", ":");
    str_append_bytes(&text, program, (size_t)(strrchr(program, '/') - program));
    return text.failed ? brig_fail_nomem(err)
                       : brig_policy_setenv(settings->policy, "PATH", text.data, err);
}

/* ---- Making it visible ---- */

/* Whether the jail shows this path of the host without a grant. */
static bool is_shown(const struct settings *settings, const char *path)
{
    static const char *const system[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64"};
    bool in_home = path_is_beneath(settings->home, path);
    if (policy_rule_of(settings->policy, path))
        return true;
    if (settings->mode == BRIG_MODE_CASUAL)
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(system); i++)
        if (path_is_beneath(system[i], path))
            return true;
    return settings->policy->view == BRIG_VIEW_HOST && !in_home;
}

static int grant(const struct settings *settings, const char *source, const char *dest,
                 struct brig_error *err)
{
    if (is_shown(settings, dest))
        return 0;
    return brig_policy_grant(settings->policy, BRIG_READ_ONLY, source, dest, 0, err);
}

/* Whether a component of the path is the name, with or without a dot before it and something like
 * "-1.2" after it. */
static bool has_component(const char *path, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        const char *begin = at + (*at == '.');
        if (strncmp(begin, name, length) == 0 && !isalpha((unsigned char)begin[length]))
            return true;
    }
    return false;
}

/* Whether a directory is the program's own: a home contains other things than programs, so there
 * the name of the program must be in the path. */
static bool is_own_directory(const struct settings *settings, const struct identity *identity,
                             const char *path, const char *program)
{
    char home[PATH_LENGTH_MAX + 1];
    const char *below = path_resolve(settings->home, home) ? path_below(home, path) : path;
    return !workdir_is_precious(path, identity) &&
           (!below || has_component(below, strrchr(program, '/') + 1) ||
            has_component(below, settings->profile->name));
}

/* A package of Node.js: the links to programs and the interpreter are in PREFIX/bin. PREFIX itself
 * may be ~/.local or the home. */
static int show_packages(const struct settings *settings, const char *prefix,
                         struct brig_error *err)
{
    static const char *const parts[] = {"/bin", "/lib/node_modules"};
    char path[PATH_LENGTH_MAX + 1];
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && status == 0; i++)
        if (str_fill(path, sizeof path, prefix, parts[i]) && access(path, F_OK) == 0)
            status = grant(settings, path, path, err);
    return status;
}

/* Grants the program under its name and, if it is a link, the real file with the program's own
 * directory. A link in a directory that the jail can write to chooses nothing: the author of the
 * project or an earlier run may have made it. */
static int show(const struct settings *settings, const struct identity *identity,
                const char *program, struct brig_error *err)
{
    char real[PATH_LENGTH_MAX + 1];
    const struct policy_grant *rule = policy_rule_of(settings->policy, program);
    if ((rule && rule->access == BRIG_READ_WRITE) || !path_resolve(program, real))
        return 0;
    char *packages = strstr(real, "/lib/node_modules/");
    if (packages) {
        *packages = '\0';
        return show_packages(settings, real, err);
    }
    int status = grant(settings, real, program, err);
    if (status < 0 || strcmp(real, program) == 0)
        return status;
    char *slash = strrchr(real, '/');
    *slash = '\0';
    if (!is_own_directory(settings, identity, real, program))
        *slash = '/';
    return grant(settings, real, real, err);
}

int program_show(struct settings *settings, const struct identity *identity, const char *command,
                 struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    if (!settings->profile || !command || !settings->home)
        return 0;
    identity_enter(identity);
    bool plain = !strchr(command, '/');
    bool found = plain ? find_in_path(command, path)
                       : str_fill(path, sizeof path, command) && path[0] == '/' && is_program(path);
    bool elsewhere = !found && plain && find_elsewhere(settings->home, command, path);
    int status = found || elsewhere ? set_origin(settings, err) : 0;
    if (status == 0 && elsewhere)
        status = add_to_path(settings, path, err);
    if (status == 0 && (found || elsewhere))
        status = show(settings, identity, path, err);
    identity_leave(identity);
    return status;
}

/* ---- Hosts ---- */

int program_allow_hosts(struct settings *settings, struct brig_error *err)
{
    static const enum profile_word needed[] = {PROFILE_HOST_API, PROFILE_HOST_LOGIN};
    if (!settings->profile || settings->policy->network != BRIG_NET_ALLOW)
        return 0;
    int status = set_origin(settings, err);
    for (size_t i = 0; i < ARRAY_LENGTH(needed); i++) {
        char host[256];
        size_t at = 0, offset = 0;
        while (status == 0 &&
               profile_next_word(settings->profile, needed[i], &at, &offset, host, sizeof host))
            status = brig_policy_allow(settings->policy, host, err);
    }
    return status;
}

/* ---- Arguments ---- */

/* The value that a variable will have in the jail, or NULL. */
static const char *value_inside(const struct brig_policy *policy, const char *name, size_t length)
{
    const char *value = NULL;
    for (size_t i = 0; i < policy->env_count; i++)
        if (policy->env[i].kind == POLICY_ENV_SET && strlen(policy->env[i].name) == length &&
            memcmp(policy->env[i].name, name, length) == 0)
            value = policy->env[i].value;
    return value;
}

/* Replaces ${NAME}; false if a variable is unset. */
static bool expand(const struct brig_policy *policy, const char *text, struct str *out)
{
    for (const char *at = text; *at;) {
        size_t length = str_starts_with(at, "${") ? strcspn(at + 2, "}") : 0;
        if (length == 0 || at[2 + length] != '}') {
            str_append_char(out, *at++);
            continue;
        }
        const char *value = value_inside(policy, at + 2, length);
        if (!value)
            return false;
        str_append(out, value);
        at += length + 3;
    }
    return true;
}

static bool is_unnecessary(const struct profile *profile, const char *const *argv)
{
    char word[128];
    size_t at = 0, offset = 0;
    while (profile_next_word(profile, PROFILE_UNLESS, &at, &offset, word, sizeof word))
        for (size_t i = 1; argv[i]; i++)
            if (strcmp(argv[i], word) == 0 ||
                (str_starts_with(argv[i], word) && argv[i][strlen(word)] == '='))
                return true;
    return false;
}

/* Adds the words of one line, unless it uses a variable that is unset. */
static int add_line(const struct settings *settings, const char *line, struct program_words *to,
                    size_t *count, struct brig_error *err)
{
    autostr struct str text = {0};
    if (!expand(settings->policy, line, &text))
        return 0;
    if (text.failed)
        return brig_fail_nomem(err);
    char *rest = text.data;
    for (char *word; rest && (word = strsep(&rest, " \t"));) {
        if (!*word)
            continue;
        if (*count == ARGUMENTS_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0, "a profile adds at most %d arguments",
                             ARGUMENTS_MAX);
        int status = str_copy(word, &to->added[*count], err);
        if (status < 0)
            return status;
        ++*count;
    }
    return 0;
}

void program_words_done(struct program_words *words)
{
    for (size_t i = 0; words->added && words->added[i]; i++)
        free(words->added[i]);
    free(words->added);
    free((void *)words->words);
    *words = (struct program_words){0};
}

int program_words(const struct settings *settings, const char *const *argv,
                  struct program_words *ret_words, struct brig_error *err)
{
    size_t given = 0, added = 0, at = 0;
    while (argv[given])
        given++;
    *ret_words = (struct program_words){
        .words = calloc(given + ARGUMENTS_MAX + 1, sizeof *ret_words->words),
        .added = calloc(ARGUMENTS_MAX + 1, sizeof *ret_words->added),
    };
    int status = ret_words->words && ret_words->added ? 0 : brig_fail_nomem(err);
    bool has = settings->profile && given > 0;
    bool wanted = has && !is_unnecessary(settings->profile, argv);
    const char *line;
    /* A line with a variable says where a service is, which no argument of the user makes
     * unnecessary. */
    while (status == 0 && has && (line = profile_next(settings->profile, PROFILE_ARGUMENTS, &at)))
        if (wanted || strstr(line, "${"))
            status = add_line(settings, line, ret_words, &added, err);
    if (status < 0) {
        program_words_done(ret_words);
        return status;
    }
    size_t next = 0;
    for (size_t i = 0; i < given; i++) {
        ret_words->words[next++] = argv[i];
        for (size_t k = 0; i == 0 && k < added; k++)
            ret_words->words[next++] = ret_words->added[k];
    }
    return 0;
}

/* ---- Messages ---- */

/* Whether the jail gets the variable, or a credential in its place. */
static bool is_passed(const struct settings *settings, const char *name)
{
    const char *value = getenv(name);
    const struct policy_env *rule =
        policy_env_rule(settings->policy, name, strlen(name), value ? value : "");
    return !rule || rule->kind != POLICY_ENV_UNSET;
}

/* "ANTHROPIC_API_KEY was not passed; …" for each credential that the user has and the jail does not
 * get. */
static void tell_withheld(const struct settings *settings)
{
    struct profile_key key;
    size_t at = 0;
    while (profile_next_key(settings->profile, &at, &key)) {
        const char *value = getenv(key.name);
        if (!value || !*value || is_passed(settings, key.name) ||
            (key.placeholder[0] && is_passed(settings, key.placeholder)))
            continue;
        if (key.preset[0])
            message_note("%s was not passed; use --inject %s (it stays outside) or --setenv %s",
                         key.name, key.preset, key.name);
        else
            message_note("%s was not passed; use --setenv %s", key.name, key.name);
    }
}

static const char *network_text(const struct brig_policy *policy)
{
    switch (policy->network) {
    case BRIG_NET_OPEN:
        return "every public host, but not this machine and your local network";
    case BRIG_NET_ALLOW:
        return "only hosts that rules name";
    case BRIG_NET_HOST:
        return "everything that this machine reaches";
    default:
        return "none";
    }
}

/* Whether a variable with a credential of the agent is passed on. */
static bool has_passed_key(const struct settings *settings)
{
    struct profile_key key;
    size_t at = 0;
    while (profile_next_key(settings->profile, &at, &key))
        if (getenv(key.name) && is_passed(settings, key.name))
            return true;
    return false;
}

static void tell_credentials(const struct settings *settings)
{
    const struct brig_policy *policy = settings->policy;
    const struct profile *profile = settings->profile;
    if (policy->net.inject_count == 0 && profile_get(profile, PROFILE_OAUTH) &&
        !has_passed_key(settings))
        message_note("  credentials: none, also if you are logged in outside; brig login %s logs "
                     "in once for all projects",
                     profile->name);
    for (size_t i = 0; i < policy->net.inject_count; i++)
        message_note(
            "  credentials: requests to %s get yours outside the jail, which does not see it",
            policy->net.inject[i].name);
}

static void tell_all(const struct settings *settings)
{
    const struct profile *profile = settings->profile;
    const char *about = profile_get(profile, PROFILE_ABOUT), *note;
    autostr struct str undo = {0};
    size_t at = 0;
    message_note("%s: %s, in this project for the first time. brig explain %s shows the details",
                 profile->name, about ? about : "", profile->name);
    if (settings->checkpoint && !settings->review)
        str_concat(&undo, " (brig undo", jails_option(settings->jail).text, " restores it)");
    message_note("  it can change %s%s",
                 settings->nocwd    ? "nothing of yours"
                 : settings->review ? "a copy of this project, until you apply the changes"
                                    : "this project",
                 undo.length > 0 ? undo.data : "");
    message_note("  it sees %s; keys, tokens and other processes are hidden",
                 settings->mode == BRIG_MODE_CASUAL ? "a copy of your home that stays in the jail"
                                                    : "an empty home that stays in the jail");
    message_note("  network: %s", network_text(settings->policy));
    tell_credentials(settings);
    while ((note = profile_next(profile, PROFILE_NOTE, &at)))
        message_note("  %s", note);
}

void program_tell(const struct settings *settings, const struct identity *identity, bool remember)
{
    /* A log-in is not a run in a project, and needs no key. */
    if (!settings->profile || str_starts_with(settings->jail, SETTINGS_LOGIN_JAIL))
        return;
    const struct profile_text *text = profile_find(settings->profile->name);
    if (config_is_new_profile(settings->storage, settings->cwd, text->name, text->text, identity,
                              remember))
        tell_all(settings);
    tell_withheld(settings);
}
