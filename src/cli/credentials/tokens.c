/* SPDX-License-Identifier: MIT */
/* Searches for tokens. */
#include "cli/credentials/tokens.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/credentials/inject.h"
#include "cli/identity.h"
#include "cli/report.h"
#include "cli/run/masks.h"
#include "cli/run/setup.h"
#include "cli/settings/config.h"
#include "git/git.h"
#include "policy/policy.h"
#include "policy/startup.h"

#define TIME_MS 300       /* after which the search before a run ends */
#define ASKED_MS 10000    /* and one that the user asked for */
#define ENTRIES_MAX 2000  /* of directories that are looked at */
#define SHOWN_ONCE_MAX 4  /* lines before the first run */
#define NAMES_SHOWN_MAX 6 /* variables in one line */

struct search {
    const struct tokens_query *query;
    struct startup_rules rules;
    uint64_t until_ms;
    size_t entries, told;
};

static bool is_over(const struct search *search)
{
    return search->told >= TOKENS_MAX || search->entries >= ENTRIES_MAX ||
           clock_now_ms() > search->until_ms;
}

static void tell(struct search *search, const struct token *token)
{
    search->told++;
    search->query->tell(search->query->context, token);
}

/* ---- files ---- */

static void append_names(struct str *out, const struct str *names)
{
    size_t count = 0;
    for (const char *name = NULL; (name = str_list_next(names, name));)
        if (*name && count++ < NAMES_SHOWN_MAX)
            str_concat(out, count > 1 ? ", " : "", name);
    if (count > NAMES_SHOWN_MAX)
        str_append(out, ", …");
}

/* Reads a regular file that is not too large, and finds the variables in it. */
static bool read_names(const struct search *search, const char *path, struct startup_text *ret_text)
{
    const struct startup_filter filter = {search->rules.items, search->rules.count};
    autostr struct str text = {0};
    struct stat info;
    autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
           read_all(fd, STARTUP_FILE_MAX, &text) == 0 && text.length <= STARTUP_FILE_MAX &&
           startup_hide(&filter, 1, text.data, text.length, ret_text, NULL) == 0;
}

/* The path for a message: below the home with a tilde. */
static void append_path(struct str *out, const char *home, const char *path)
{
    const char *below = home ? path_below(home, path) : NULL;
    str_concat(out, below ? "~/" : "", str_shown(below ? below : path).text);
}

static void add_startup_remedy(struct str *out, const struct str *names)
{
    const char *first = NULL, *preset = NULL;
    for (const char *name = NULL; !preset && (name = str_list_next(names, name));) {
        first = first || !*name ? first : name;
        preset = inject_preset_for(name);
    }
    if (preset)
        str_concat(out, "to use one in a jail: --inject ", preset);
    else if (first)
        str_concat(out, "to use one in a jail: --setenv ", first);
    else
        str_append(out, "keep the password in a credential helper");
}

static void look_at_startup(struct search *search, const char *path)
{
    const char *home = search->query->identity->host_home;
    struct startup_text text = {0};
    autostr struct str where = {0}, names = {0}, remedy = {0};
    if (!read_names(search, path, &text) || text.hidden == 0) {
        startup_text_done(&text);
        return;
    }
    append_path(&where, home, path);
    append_names(&names, &text.names);
    add_startup_remedy(&remedy, &text.names);
    startup_text_done(&text);
    if (!where.failed && !names.failed && !remedy.failed)
        tell(search, &(struct token){"startup", where.data, names.length ? names.data : "",
                                     "jails see the file without these lines", remedy.data});
}

static void search_startup(struct search *search)
{
    const char *home = search->query->identity->host_home;
    for (size_t i = 0; home && i < startup_name_count && !is_over(search); i++) {
        char pattern[PATH_LENGTH_MAX + 1];
        glob_t found = {0};
        if (!str_fill(pattern, sizeof pattern, home, "/", startup_names[i]))
            continue;
        if (glob(pattern, GLOB_NOSORT | GLOB_NOESCAPE, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc && !is_over(search); k++)
                look_at_startup(search, found.gl_pathv[k]);
        globfree(&found);
    }
}

/* ---- .env ---- */

static bool is_env(const char *name)
{
    static const char *const examples[] = {".example", ".sample", ".template", ".dist"};
    if (strncmp(name, ".env", 4) != 0 || (name[4] && name[4] != '.'))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(examples); i++)
        if (str_ends_with(name, examples[i]))
            return false;
    return true;
}

static void look_at_env(struct search *search, const char *path)
{
    const struct tokens_query *query = search->query;
    const char *home = query->identity->host_home, *here = path_below(query->cwd, path);
    const char *below = home ? path_below(home, path) : NULL;
    struct startup_text text = {0};
    autostr struct str where = {0}, names = {0}, remedy = {0};
    if ((query->is_hidden && query->is_hidden(query->context, path)) ||
        !read_names(search, path, &text) || text.hidden == 0) {
        startup_text_done(&text);
        return;
    }
    if (here)
        str_concat(&where, "./", str_shown(here).text);
    else
        append_path(&where, home, path);
    append_names(&names, &text.names);
    startup_text_done(&text);
    autofree char *relative = NULL;
    if (here && str_make(&relative, NULL, "./", here) < 0)
        remedy.failed = true;
    str_append(&remedy, here || !below ? "to hide it: --mask " : "to hide it: brig mask ");
    str_append_word(&remedy, relative ? relative : below ? below : path);
    if (!where.failed && !names.failed && !remedy.failed)
        tell(search, &(struct token){"env", where.data, names.length ? names.data : "",
                                     here ? "a jail here can read it" : "a casual jail can read it",
                                     remedy.data});
}

static void search_files(struct search *search, const char *path)
{
    autodir DIR *dir = opendir(path);
    for (const struct dirent *item; dir && !is_over(search) && (item = readdir(dir));) {
        char file[PATH_LENGTH_MAX + 1];
        search->entries++;
        if (is_env(item->d_name) && str_fill(file, sizeof file, path, "/", item->d_name))
            look_at_env(search, file);
    }
}

/* Looks at the files of the directories in a directory. */
static void search_below(struct search *search, const char *path, const char *except)
{
    autodir DIR *dir = opendir(path);
    for (const struct dirent *item; dir && !is_over(search) && (item = readdir(dir));) {
        char below[PATH_LENGTH_MAX + 1];
        search->entries++;
        if (item->d_type == DT_DIR && item->d_name[0] != '.' &&
            str_fill(below, sizeof below, path, "/", item->d_name) && !str_equal(below, except))
            search_files(search, below);
    }
}

/* The directories beside the project, if they are projects, too: not those of the system. */
static void search_siblings(struct search *search)
{
    const struct tokens_query *query = search->query;
    char above[PATH_LENGTH_MAX + 1];
    char *slash = str_fill(above, sizeof above, query->cwd) ? strrchr(above, '/') : NULL;
    if (!slash || slash == above)
        return;
    *slash = '\0';
    const char *home = query->identity->host_home;
    if (home && path_is_beneath(home, above))
        search_below(search, above, query->cwd);
}

/* ---- git ---- */

/* A line of `git config --get-regexp`: "remote.NAME.url URL". */
static void look_at_remote(struct search *search, const char *line, size_t length)
{
    const struct startup_filter filter = {search->rules.items, search->rules.count};
    autofree char *text = strndup(line, length);
    char *url = text ? strchr(text, ' ') : NULL;
    autostr struct str where = {0};
    if (!url || !startup_filter_hides(&filter, "", 0, url))
        return;
    *url = '\0';
    char *name = text + strlen("remote."), *end = strrchr(text, '.');
    if (end < name)
        return;
    *end = '\0';
    bool github = strstr(url + 1, "@github.com/");
    str_concat(&where, "git remote ", str_shown(name).text);
    if (!where.failed)
        tell(search,
             &(struct token){"remote", where.data, "", "jails get the remote without the password",
                             github ? "to use it in a jail: --inject @github"
                                    : "to use it in a jail: --inject"});
}

static void search_remotes(struct search *search)
{
    static const char *const words[] = {
        "config", "--local", "--no-includes", "--get-regexp", "^remote\\..*\\.(push)?url$", NULL};
    const struct tokens_query *query = search->query;
    const struct identity *identity = query->identity;
    bool other = geteuid() == 0 && identity->host_uid != (uid_t)-1;
    struct git_user user = {other ? identity->host_uid : (uid_t)-1,
                            other ? identity->host_gid : (gid_t)-1};
    struct git git = {0};
    autostr struct str out = {0};
    autoclose int dir = open(query->cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || faccessat(dir, ".git", F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
        git_find(&git, (const char *const *)environ, query->policy, user, NULL) < 0)
        return;
    const struct git_call call = {.words = words, .dir = dir, .out = &out, .own_settings = true};
    if (git.program && git_run(&git, &call, NULL) == 0)
        for (size_t at = 0; at < out.length && !is_over(search);) {
            size_t length = strcspn(out.data + at, "\n");
            look_at_remote(search, out.data + at, length);
            at += length + 1;
        }
    git_done(&git);
}

void tokens_find(const struct tokens_query *query)
{
    uint64_t time_ms = query->remotes ? ASKED_MS : TIME_MS; /* runs tell about remotes elsewhere */
    struct search search = {.query = query, .until_ms = clock_now_ms() + time_ms};
    if (startup_rules_init(query->policy, &search.rules, NULL) < 0)
        return;
    bool project = query->project && !workdir_is_precious(query->cwd, query->identity);
    identity_enter(query->identity);
    if (project) {
        search_files(&search, query->cwd);
        search_below(&search, query->cwd, NULL);
    }
    if (query->startup)
        search_startup(&search);
    if (project && query->siblings)
        search_siblings(&search);
    identity_leave(query->identity);
    if (project && query->remotes)
        search_remotes(&search);
    startup_rules_done(&search.rules);
}

void tokens_append_line(struct str *out, const struct token *token)
{
    bool named = *token->names;
    str_concat(out, token->where, named ? " sets " : " has a URL with a password", token->names,
               ": ", token->state, "; ", token->remedy);
}

/* ---- before a run ---- */

struct showing {
    const struct setup *setup;
    struct masks masks;
    size_t shown, more;
};

static bool is_masked(void *context, const char *path)
{
    const struct showing *showing = context;
    const struct settings *settings = &showing->setup->settings;
    const char *home = showing->setup->identity.host_home;
    const char *below = home ? path_below(home, path) : NULL;
    for (size_t i = 0; i < settings->policy->grant_count; i++)
        if (settings->policy->grants[i].access == BRIG_MASK &&
            path_is_beneath(settings->policy->grants[i].source, path))
            return true;
    return below && mask_find(&showing->masks.rules, below) >= 0;
}

/* Whether the jail has the working directory. */
static bool has_project(const struct setup *setup)
{
    const struct brig_policy *policy = setup->settings.policy;
    for (size_t i = 0; i < policy->grant_count; i++)
        if (policy->grants[i].access != BRIG_MASK &&
            path_is_beneath(policy->grants[i].source, setup->cwd))
            return true;
    return false;
}

static void show(void *context, const struct token *token)
{
    struct showing *showing = context;
    autostr struct str line = {0};
    if (showing->shown == SHOWN_ONCE_MAX) {
        showing->more++;
        return;
    }
    showing->shown++;
    tokens_append_line(&line, token);
    if (!line.failed)
        message_note("%s", line.data);
}

void tokens_show_once(const struct setup *setup)
{
    const struct settings *settings = &setup->settings;
    struct showing showing = {.setup = setup};
    enum policy_home home = policy_mode_row(settings->mode)->home;
    bool casual = home == POLICY_HOME_OVERLAY;
    if (home == POLICY_HOME_SCRATCH || !setup->identity.host_home || settings->dry_run ||
        settings->unmount || !config_is_new_project(&setup->config, setup->cwd, &setup->identity) ||
        masks_resolve(settings, &showing.masks, NULL) < 0)
        return;
    /* A run tells about remotes in any case: see guard_begin(). */
    tokens_find(&(struct tokens_query){.identity = &setup->identity,
                                       .policy = settings->policy,
                                       .cwd = setup->cwd,
                                       .startup = casual,
                                       .project = has_project(setup),
                                       .siblings = casual,
                                       .is_hidden = is_masked,
                                       .tell = show,
                                       .context = &showing});
    if (showing.more > 0)
        message_note("and %zu more; `brig doctor` lists them. This is said once for this project",
                     showing.more);
    masks_done(&showing.masks);
}
