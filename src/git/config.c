/* SPDX-License-Identifier: MIT */
#include "git/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "policy/defaults.h"
#include "policy/policy.h"

#define CONFIG_COPY "config.copy"
#define CONFIG_MAX ((off_t)4 << 20)

/* ---- pure ---- */

int config_strip_url(const char *url, struct str *ret_url)
{
    const char *scheme = strstr(url, "://");
    if (!scheme)
        return 0;
    const char *host = scheme + 3;
    const char *at = NULL;
    for (const char *c = host; *c && *c != '/' && *c != '?' && *c != '#'; c++)
        if (*c == '@')
            at = c;
    if (!at)
        return 0;
    bool web = strncasecmp(url, "http", 4) == 0;
    bool password = memchr(host, ':', (size_t)(at - host)) != NULL;
    if (!web && !password) /* ssh://git@host: a login name is not secret */
        return 0;
    str_append_bytes(ret_url, url, (size_t)(host - url));
    str_append(ret_url, at + 1);
    return 1;
}

/* Whether the text before "://" is http or https. */
static bool is_web(const char *text, const char *colon)
{
    size_t length = (size_t)(colon - text);
    return (length >= 4 && strncasecmp(colon - 4, "http", 4) == 0) ||
           (length >= 5 && strncasecmp(colon - 5, "https", 5) == 0);
}

void config_strip_text(const char *text, struct str *ret_text)
{
    const char *done = text;
    for (const char *colon = text; (colon = strstr(colon, "://"));) {
        const char *host = colon + 3;
        size_t length = strcspn(host, "/?#;\\\"' \t\r\n");
        const char *at = memrchr(host, '@', length);
        if (at && (is_web(text, colon) || memchr(host, ':', (size_t)(at - host)))) {
            str_append_bytes(ret_text, done, (size_t)(host - done));
            done = at + 1;
        }
        colon = host;
    }
    str_append(ret_text, done);
}

/* The variable of a key: its last part. */
static const char *variable_of(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

static bool begins(const char *key, const char *section)
{
    return strncasecmp(key, section, strlen(section)) == 0;
}

/* Whether this is a name of a remote or branch that cannot be mistaken for an option or a path. */
static bool is_plain_name(const char *name, size_t length)
{
    if (length == 0 || length > 200 || name[0] == '-' || name[0] == '.' || name[0] == '/')
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        if (!isalnum(c) && !strchr("._-/+@#", c))
            return false;
        if (c == '.' && i + 1 < length && name[i + 1] == '.')
            return false;
    }
    return true;
}

static bool is_plain_text(const char *value)
{
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == '"' || *c == '\\')
            return false;
    return *value && *value != '-' && strlen(value) < 2000;
}

/* Accepts https, http, ssh, git, and host:path; never a program (ext::) or a path of the host, and no password: for a
 * remote with one, --inject @git makes its host reachable in the next run, whatever the network rules say. */
static bool is_remote_url(const char *url)
{
    static const char *const schemes[] = {"https://", "http://", "ssh://", "git://"};
    autostr struct str stripped = {0};
    if (!is_plain_text(url) || strstr(url, "::") || config_strip_url(url, &stripped) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(schemes); i++)
        if (str_starts_with(url, schemes[i]))
            return url[strlen(schemes[i])] != '-' && url[strlen(schemes[i])] != '\0';
    const char *colon = strchr(url, ':'), *slash = strchr(url, '/');
    return colon && colon > url && colon[1] && (!slash || slash > colon) && !strstr(url, "://");
}

/* The name in "SECTION.NAME.VARIABLE"; 0 if there is none. */
static size_t name_length(const char *key, const char **ret_name)
{
    const char *dot = strchr(key, '.');
    const char *variable = variable_of(key);
    if (!dot || variable <= dot + 1)
        return 0;
    *ret_name = dot + 1;
    return (size_t)(variable - 1 - *ret_name);
}

bool config_is_remote(const char *key, const char *value)
{
    const char *name = NULL;
    size_t length = name_length(key, &name);
    return is_plain_name(name, length) && begins(key, "remote.") &&
           strcmp(variable_of(key), "url") == 0 && is_remote_url(value);
}

bool config_may_cross(const char *key, const char *value)
{
    const char *name = NULL, *variable = variable_of(key);
    size_t length = name_length(key, &name);
    if (!is_plain_name(name, length) || !begins(key, "branch."))
        return false;
    if (strcmp(variable, "remote") == 0)
        return strcmp(value, ".") == 0 || is_plain_name(value, strlen(value));
    if (strcmp(variable, "merge") == 0)
        return str_starts_with(value, "refs/") && is_plain_name(value, strlen(value));
    return strcmp(variable, "rebase") == 0 &&
           (strcmp(value, "true") == 0 || strcmp(value, "false") == 0);
}

/* ---- into the jail ---- */

/* Settings that name a file outside, or a program that would only fail inside. */
static bool is_of_outside(const char *key)
{
    return strcasecmp(key, "core.worktree") == 0 || strcasecmp(key, "core.fsmonitor") == 0;
}

/* Whether a variable of this name would not be passed on: github.token, sendemail.smtpPass. */
static bool is_filtered(const char *variable)
{
    for (const char *filter = policy_default_filters; *filter; filter = policy_next_default(filter))
        if (!strstr(filter, "://") && policy_filter_matches(filter, variable, strlen(variable), ""))
            return true;
    return false;
}

static bool is_secret(const char *key, const char *value, struct str *scratch)
{
    const char *variable = variable_of(key);
    if (is_filtered(variable))
        return true;
    /* A script that prints a password, or asks a program outside for one. */
    if (begins(key, "credential.") && value && value[0] == '!')
        return true;
    if (strcasecmp(variable, "proxy") == 0 && value && strchr(value, '@'))
        return true;
    if (begins(key, "http.") && strcasecmp(variable, "extraheader") == 0)
        return true;
    if (begins(key, "remote.") && strcasecmp(variable, "pushurl") == 0)
        return true;
    /* url.BASE.insteadOf: BASE may contain a token. */
    return begins(key, "url.") && config_strip_url(key + 4, scratch) > 0;
}

static int change(const struct git *git, int folder, const char *key, const char *value,
                  struct brig_error *err)
{
    const char *const unset[] = {"config", "--file", CONFIG_COPY, "--unset-all", key, NULL};
    const char *const set[] = {"config", "--file", CONFIG_COPY, "--replace-all", key, value, NULL};
    int status = git_run(git,
                         &(struct git_call){
                             .words = value ? set : unset,
                             .dir = folder,
                         },
                         err);
    /* Status 5: the key was removed before, because it was listed twice. */
    return status < 0 || status == 0 || status == 5
               ? (status < 0 ? status : 0)
               : brig_fail(err, BRIG_E_SETUP, 0, "git cannot change '%s' in a copy of the config",
                           str_shown(key).text);
}

static int sanitise_one(const struct git *git, int folder, const char *key, const char *value,
                        struct str *notes, struct brig_error *err)
{
    autostr struct str url = {0};
    if (is_of_outside(key))
        return change(git, folder, key, NULL, err);
    if (is_secret(key, value, &url)) {
        str_appendf(notes, "%s is not visible in the jail, because it may contain a credential\n",
                    begins(key, "url.") ? "a setting url.*.insteadOf" : str_shown(key).text);
        return change(git, folder, key, NULL, err);
    }
    if (!value || config_strip_url(value, &url) == 0)
        return 0;
    str_appendf(
        notes,
        "the credential in %s is not visible in the jail; to use it there, add --inject @git\n",
        str_shown(key).text);
    return url.failed ? brig_fail_nomem(err) : change(git, folder, key, url.data, err);
}

int config_sanitise(const struct git *git, int dir, const char *name, int folder,
                    struct str *ret_answer, struct brig_error *err)
{
    static const char *const list[] = {"config", "--file", CONFIG_COPY, "--no-includes",
                                       "-z",     "--list", NULL};
    struct stat info;
    autostr struct str text = {0};
    if (fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_size > CONFIG_MAX)
        return brig_fail(err, BRIG_E_SETUP, 0, "the git config is larger than %d MiB",
                         (int)(CONFIG_MAX >> 20));
    int status = copying_file(dir, name, folder, CONFIG_COPY, err);
    if (status > 0)
        status = git_run(git, &(struct git_call){.words = list, .dir = folder, .out = &text}, err);
    if (status > 0)
        status = brig_fail(err, BRIG_E_SETUP, 0, "git cannot read the repository's config");
    /* "key\nvalue\0", or "key\0" for a key without a value. */
    for (char *at = text.data; status == 0 && at && at < text.data + text.length;) {
        char *next = at + strlen(at) + 1;
        char *value = strchr(at, '\n');
        if (value)
            *value++ = '\0';
        status = sanitise_one(git, folder, at, value, ret_answer, err);
        at = next;
    }
    str_append_bytes(ret_answer, "", 1);
    autostr struct str made = {0};
    if (status == 0 && !files_read(folder, CONFIG_COPY, &made))
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot read the copy of the config");
    if (status == 0 && made.data) /* comments, and values with several URLs */
        config_strip_text(made.data, ret_answer);
    (void)unlinkat(folder, CONFIG_COPY, 0);
    return status == 0 && ret_answer->failed ? brig_fail_nomem(err) : status;
}

/* ---- out of the jail ---- */

#define NAMED_MAX 8      /* upstreams and new remotes that a message names */
#define CHANGES_MAX 2000 /* settings; the others stay in the jail */

/* The value of the pair at `at`, "key\nvalue\0", whose key gets a NUL at its end; "" if there is
 * none. */
static const char *split(char *at)
{
    char *value = strchr(at, '\n');
    if (!value)
        return "";
    *value = '\0';
    return value + 1;
}

/* The last value of a key in a list of settings, as git prints it; NULL if there is none. */
static const char *last_value(const struct str *list, const char *key)
{
    size_t length = strlen(key);
    const char *found = NULL;
    for (const char *at = NULL; (at = str_list_next(list, at));)
        if (strncmp(at, key, length) == 0 && (at[length] == '\n' || !at[length]))
            found = at[length] ? at + length + 1 : "";
    return found;
}

static bool has_remote(const struct str *list, const char *name)
{
    autostr struct str key = {0};
    str_concat(&key, "remote.", name, ".url");
    return !key.failed && last_value(list, key.data);
}

/* The key with another variable: branch.NAME.merge as branch.NAME.remote. */
static bool set_variable(const char *key, const char *variable, struct str *ret_key)
{
    str_append_bytes(ret_key, key, (size_t)(variable_of(key) - key));
    str_append(ret_key, variable);
    return !ret_key->failed;
}

/* The first change of a key; NULL if there is none. */
static const struct config_change *find_change(const struct config_changes *c, const char *key)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->items[i].key, key) == 0)
            return &c->items[i];
    return NULL;
}

/* Another variable of the branch that a key is about: its value outside, or the one that crosses. */
static const char *value_of(const struct config_changes *c, const char *key, const char *variable)
{
    autostr struct str whole = {0};
    if (!set_variable(key, variable, &whole))
        return NULL;
    const char *found = last_value(&c->before, whole.data);
    const struct config_change *item = found ? NULL : find_change(c, whole.data);
    return item && item->crosses ? item->new : found;
}

/* An upstream that the user has set is kept; a new one needs a remote that exists outside. */
static void judge(struct config_changes *c)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < c->count; i++) {
            struct config_change *item = &c->items[i];
            bool remote = strcmp(variable_of(item->key), "remote") == 0;
            if (remote != (pass == 0) || item->old || !config_may_cross(item->key, item->new))
                continue;
            item->crosses = remote
                                ? strcmp(item->new, ".") == 0 || has_remote(&c->before, item->new)
                                : value_of(c, item->key, "remote") != NULL;
        }
}

static bool is_same_file(int left, int right, const char *name)
{
    autostr struct str one = {0}, other = {0};
    return files_read(left, name, &one) && files_read(right, name, &other) &&
           one.length == other.length && one.length > 0 &&
           memcmp(one.data, other.data, one.length) == 0;
}

int config_find_changes(const struct git *git, const struct git_sealed *sealed, int base,
                        struct config_changes *ret_changes, struct brig_error *err)
{
    static const char script[] =
        "git config --file " GIT_SEALED_DIR "/config --no-includes -z --list";
    static const char *const list[] = {"config", "--file", "config", "--no-includes",
                                       "-z",     "--list", NULL};
    struct config_changes *c = ret_changes;
    if (is_same_file(sealed->dir, base, "config"))
        return 0;
    int status = git_run_sealed(git, sealed, script, &c->inside, err);
    if (status != 0) /* git cannot read the config: nothing crosses */
        return status < 0 ? status : 0;
    status = git_run(git, &(struct git_call){.words = list, .dir = base, .out = &c->before}, err);
    if (status < 0)
        return status;
    for (char *at = c->inside.data; at && at < c->inside.data + c->inside.length;) {
        char *next = at + strlen(at) + 1;
        bool known = str_list_has(&c->before, at);
        const char *value = split(at);
        if (!known && c->count == CHANGES_MAX)
            c->more++;
        else if (!known && !array_grow(&c->items, c->count))
            return brig_fail_nomem(err);
        else if (!known)
            c->items[c->count++] =
                (struct config_change){.key = at, .old = last_value(&c->before, at), .new = value};
        at = next;
    }
    judge(c);
    return 0;
}

void config_changes_done(struct config_changes *changes)
{
    free(changes->items);
    str_done(&changes->inside);
    str_done(&changes->before);
    *changes = (struct config_changes){0};
}

static bool is_variable(const struct config_change *item, const char *variable)
{
    return strcmp(variable_of(item->key), variable) == 0;
}

/* Whether a message names this change: of a branch with a new remote and a new branch there, the
 * message about the first names both. */
static bool is_named(const struct config_changes *c, const struct config_change *item)
{
    autostr struct str remote = {0};
    return item->crosses &&
           (!is_variable(item, "merge") || !set_variable(item->key, "remote", &remote) ||
            last_value(&c->before, remote.data));
}

/* Appends "feature now tracks origin/feature". */
static void append_upstream(const struct config_changes *c, const struct config_change *item,
                            struct str *text)
{
    static const char heads[] = "refs/heads/";
    const char *name = NULL;
    size_t length = name_length(item->key, &name);
    str_append_shown(text, name, length, "");
    if (is_variable(item, "rebase")) {
        str_concat(text, strcmp(item->new, "true") == 0 ? " is rebased" : " is merged",
                   " by git pull");
        return;
    }
    const char *remote = value_of(c, item->key, "remote"), *merge = value_of(c, item->key, "merge");
    bool both = merge && !str_equal(remote, ".");
    if (merge && str_starts_with(merge, heads))
        merge += strlen(heads);
    str_concat(text, " now tracks ", merge && !both ? "" : str_shown(remote ? remote : "").text,
               both ? "/" : "", str_shown(merge ? merge : "").text);
}

static void note_upstreams(const struct config_changes *c, struct str *notes)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        if (is_named(c, &c->items[i]) && ++count <= NAMED_MAX) {
            str_append(notes, count == 1 ? "git: " : ", ");
            append_upstream(c, &c->items[i], notes);
        }
    if (count > NAMED_MAX)
        str_appendf(notes, " and %zu more", count - NAMED_MAX);
    str_append(notes, count > 0 ? "\n" : "");
}

/* Whether a setting is part of a remote that is new and that `git remote add` would make. */
static bool is_of_new_remote(const struct config_changes *c, const struct config_change *item)
{
    autostr struct str url = {0}, fetch = {0};
    const char *name = NULL;
    size_t length = name_length(item->key, &name);
    if (!begins(item->key, "remote.") || !set_variable(item->key, "url", &url) ||
        last_value(&c->before, url.data))
        return false;
    const struct config_change *first = find_change(c, url.data);
    if (!first || !config_is_remote(url.data, first->new))
        return false;
    str_appendf(&fetch, "+refs/heads/*:refs/remotes/%.*s/*", (int)length, name);
    return item == first || (is_variable(item, "fetch") && str_equal(item->new, fetch.data));
}

/* A remote decides where the user's next push goes, so the user adds it, or not. */
static void note_remote(const struct config_change *item, const char *top, struct str *notes)
{
    const char *name = NULL;
    size_t length = name_length(item->key, &name);
    str_appendf(notes, "git: the new remote %.*s stays in the jail. To add it: git -C ",
                (int)length, name);
    str_append_word(notes, top);
    str_appendf(notes, " remote add %.*s ", (int)length, name);
    str_append_word(notes, item->new);
    str_append(notes, "\n");
}

void config_note(const struct config_changes *c, const char *top, struct str *notes)
{
    size_t remotes = 0, left = c->more;
    note_upstreams(c, notes);
    for (size_t i = 0; i < c->count; i++) {
        const struct config_change *item = &c->items[i];
        bool of_remote = is_of_new_remote(c, item);
        if (of_remote && is_variable(item, "url") && ++remotes <= NAMED_MAX)
            note_remote(item, top, notes);
        left += !item->crosses && !of_remote;
    }
    if (remotes > NAMED_MAX)
        str_appendf(notes, "git: %zu more new remotes stay in the jail\n", remotes - NAMED_MAX);
    if (left > 0)
        str_appendf(notes,
                    "git: %zu change%s to git config %s not transferred; use git config outside\n",
                    left, left == 1 ? "" : "s", left == 1 ? "was" : "were");
}

/* ---- settings that name files of the project ---- */

/* Converts a value to a path, for the caller to free: relative to a directory, "~/" to the home;
 * NULL if it is not a path. */
static char *find_path(const char *value, const char *directory, const char *home)
{
    char *path = NULL;
    bool of_home = value[0] == '~' && value[1] == '/' && home;
    return path_make_absolute(of_home ? home : directory, of_home ? value + 2 : value, &path,
                              NULL) == 0
               ? path
               : NULL;
}

/* Adds the file of a setting, which may also be created or changed later. */
static void append_path(struct str *states, struct str *paths, const char *value,
                        const char *directory, const char *home)
{
    autofree char *path = find_path(value, directory, home);
    if (!path)
        return;
    files_add_state(states, path);
    str_list_add(paths, path);
}

static bool is_include(const char *key)
{
    return strcasecmp(key, "include.path") == 0 ||
           (strncasecmp(key, "includeif.", 10) == 0 && strlen(key) > 5 &&
            strcasecmp(key + strlen(key) - 5, ".path") == 0);
}

static bool is_path_setting(const char *key)
{
    static const char *const keys[] = {"core.hookspath", "core.attributesfile", "init.templatedir",
                                       "commit.template"};
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        if (strcasecmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Whether the value of a setting is a command line, according to the last part of the key. */
static bool is_command(const char *key, const char *value)
{
    static const char *const variables[] = {"clean",    "smudge",     "process",
                                            "textconv", "command",    "cmd",
                                            "driver",   "program",    "helper",
                                            "pager",    "editor",     "external",
                                            "browser",  "diffFilter", "packObjectsHook",
                                            "gitProxy", "askPass",    "sshCommand",
                                            "tool",     "fsmonitor",  "defaultKeyCommand",
                                            "update"};
    const char *dot = strrchr(key, '.');
    if (strncasecmp(key, "alias.", 6) == 0)
        return value[0] == '!';
    if (strncasecmp(key, "pager.", 6) == 0)
        return true;
    for (size_t i = 0; dot && i < ARRAY_LENGTH(variables); i++)
        if (strcasecmp(dot + 1, variables[i]) == 0)
            return true;
    return false;
}

/* Adds the words of a command line that are files. The first word is a program; without a slash it
 * is looked for in PATH. */
static void append_words(struct str *states, struct str *paths, const char *value, const char *top,
                         const char *home)
{
    static const char separators[] = " \t\n;&|<>()'\"!`$={}";
    autofree char *text = strdup(value);
    char *rest = text;
    bool first = true;
    for (const char *word; text && (word = strsep(&rest, separators));) {
        struct stat info;
        bool program = first;
        if (!*word)
            continue;
        first = false;
        if (program && !strchr(word, '/'))
            continue;
        autofree char *path = find_path(word, top, home);
        if (path && (program || (stat(path, &info) == 0 && S_ISREG(info.st_mode))))
            append_path(states, paths, word, top, home);
        else if (path)
            files_add_state(states, path); /* it may be created later */
    }
}

/* The person who commits. */
struct author {
    struct str name, email;
};

/* Reads one "file:ORIGIN\0key\nvalue\0" of git's list. */
static void read_setting(const char *origin, const char *pair, const char *git_path,
                         const char *top, const char *home, struct str *states, struct str *paths)
{
    const char *value = strchr(pair, '\n');
    autofree char *whole = NULL;
    if (!value || !str_starts_with(origin, "file:") ||
        path_make_absolute(git_path, origin + 5, &whole, NULL) < 0)
        return;
    autofree char *key = strndup(pair, (size_t)(value++ - pair));
    files_add_state(states, whole);
    if (!key) {
        states->failed = true;
    } else if (is_include(key)) {
        *strrchr(whole, '/') = '\0';
        append_path(states, paths, value, whole[0] ? whole : "/", home);
    } else if (is_path_setting(key) && *value) {
        append_path(states, paths, value, top, home);
    } else if (is_command(key, value)) {
        append_words(states, paths, value, top, home);
    }
}

/* Keeps the last value of user.name and user.email: git uses the last one, too. */
static void read_author(const char *pair, struct author *author)
{
    static const char name[] = "user.name\n", email[] = "user.email\n";
    struct str *to = str_starts_with(pair, name)    ? &author->name
                     : str_starts_with(pair, email) ? &author->email
                                                    : NULL;
    if (to) {
        to->length = 0;
        str_append(to, strchr(pair, '\n') + 1);
    }
}

/* Asks git for its configuration in a repository, or outside of any if `repo` is NULL. */
static int ask(const struct git *git, const char *top_path, const struct repo *repo,
               struct str *states, struct str *paths, struct author *author, struct brig_error *err)
{
    static const char *const words[] = {"config", "--show-origin", "-z", "--list", NULL};
    autostr struct str list = {0};
    autoclose int root = repo ? -1 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *home = git_variable(git->environment, "HOME");
    const struct {
        const char *directory, *name;
    } usual[] = {{home, "/.gitconfig"},
                 {home, "/.config/git/config"},
                 {git_variable(git->environment, "XDG_CONFIG_HOME"), "/git/config"}};
    struct git_call call = {.words = words, .out = &list};
    call.dir = repo ? 0 : root;
    call.git_dir = repo ? repo->git_dir : 0;
    int status = git_run(git, &call, err);
    if (status < 0)
        return status;
    files_add_state(states, "/etc/gitconfig");
    for (size_t i = 0; i < ARRAY_LENGTH(usual); i++) {
        char path[PATH_LENGTH_MAX + 1];
        if (usual[i].directory && str_fill(path, sizeof path, usual[i].directory, usual[i].name))
            files_add_state(states, path);
    }
    for (const char *at = NULL, *pair;
         (at = str_list_next(&list, at)) && (pair = str_list_next(&list, at)); at = pair) {
        read_setting(at, pair, repo ? repo->git_path : "/", top_path, home, states, paths);
        read_author(pair, author);
    }
    return states->failed || paths->failed || author->name.failed || author->email.failed
               ? brig_fail_nomem(err)
               : 0;
}

/* Appends a setting as git writes it. */
static void append_quoted(struct str *text, const char *variable, const struct str *value)
{
    if (value->length == 0)
        return;
    str_concat(text, "\t", variable, " = \"");
    for (const char *c = value->data; *c; c++)
        if (*c == '\n')
            str_append(text, "\\n");
        else if (*c == '"' || *c == '\\')
            str_appendf(text, "\\%c", *c);
        else
            str_append_char(text, *c);
    str_append(text, "\"\n");
}

static void write_author(const struct author *author, struct str *text)
{
    if (author->name.length > 0 || author->email.length > 0)
        str_append(text, "[user]\n");
    append_quoted(text, "name", &author->name);
    append_quoted(text, "email", &author->email);
}

/* Asks, and writes the answer: the paths, an empty text, and the configuration of the author. */
static int ask_all(const struct git *git, const char *top_path, const struct repo *repo, int cache,
                   const char *name, struct str *ret_answer, struct brig_error *err)
{
    autostr struct str states = {0};
    struct author author = {0};
    int status = ask(git, top_path, repo, &states, ret_answer, &author, err);
    str_append_bytes(ret_answer, "", 1);
    write_author(&author, ret_answer);
    str_done(&author.name);
    str_done(&author.email);
    if (status == 0)
        files_write_answer(cache, name, &states, ret_answer);
    return status;
}

int outward_find(const struct git *git, int cache, const char *top_path, const struct repo *repo,
                 struct str *ret_paths, struct str *ret_author, struct brig_error *err)
{
    autostr struct str answer = {0};
    char name[2 * FILES_ID_MAX + 16], top[FILES_ID_MAX], home[FILES_ID_MAX] = "";
    const char *home_path = git_variable(git->environment, "HOME"), *at = NULL;
    if (!files_identify(AT_FDCWD, top_path, top))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot look at '%s'",
                         str_shown(top_path).text);
    (void)files_identify(AT_FDCWD, home_path ? home_path : "/", home);
    (void)snprintf(name, sizeof name, "settings-%s-%s", top, home);
    int status = files_read_answer(cache, name, &answer)
                     ? 0
                     : ask_all(git, top_path, repo, cache, name, &answer, err);
    while (status == 0 && (at = str_list_next(&answer, at)) && *at)
        if (ret_paths)
            str_list_add(ret_paths, at);
    if (at && ret_author)
        str_append_bytes(ret_author, at + 1, answer.length - (size_t)(at + 1 - answer.data));
    bool failed =
        answer.failed || (ret_paths && ret_paths->failed) || (ret_author && ret_author->failed);
    return status == 0 && failed ? brig_fail_nomem(err) : status;
}
