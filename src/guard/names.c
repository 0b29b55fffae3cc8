/* SPDX-License-Identifier: MIT */
#include "guard/names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "guard/files.h"

const struct names_row names_rows[] = {
    {".envrc", "direnv"},
    {".vscode", "Visual Studio Code"},
    {".idea", "JetBrains editors"},
    {".zed", "Zed"},
    {".devcontainer", "tools for development containers"},
    {".devcontainer.json", "tools for development containers"},
    {".husky", "husky"},
    {".mcp.json", "agents that use MCP"},
    {".claude/settings.json", "Claude Code"},
    {".claude/settings.local.json", "Claude Code"},
    {".claude/hooks", "Claude Code"},
    {".codex", "Codex"},
    {".cursor", "Cursor"},
    {".gemini", "Gemini CLI"},
    {".qwen", "Qwen Code"},
    {".opencode", "opencode"},
    {"opencode.json", "opencode"},
    {".windsurf", "Windsurf"},
    {".roo", "Roo Code"},
    {".aider.conf.yml", "aider"},
    {".hg/hgrc", "Mercurial"},
    {".brig.conf", "brig"},
};
const size_t names_count = ARRAY_LENGTH(names_rows);

/* 1 if a name is a row or a directory above one, -1 if it is inside a row, else 0. */
static int relation(const char *name, const char *row)
{
    size_t length = strlen(name), row_length = strlen(row);
    if (strncmp(name, row, length) == 0 && (!row[length] || row[length] == '/'))
        return 1;
    return strncmp(name, row, row_length) == 0 && name[row_length] == '/' ? -1 : 0;
}

int names_check(const char *name, struct brig_error *err)
{
    if (name[0] == '/' || strcmp(name, ".git") == 0)
        return 0;
    if (str_starts_with(name, ".git/"))
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "--unprotect: '%s' is in the git directory, which is private as a whole. Use "
            "--unprotect .git for the real one",
            str_shown(name).text);
    for (size_t i = 0; i < names_count; i++) {
        int related = relation(name, names_rows[i].path);
        if (related > 0)
            return 0;
        if (related < 0)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "--unprotect: '%s' is inside '%s', which is protected as a whole",
                             str_shown(name).text, names_rows[i].path);
    }
    return brig_fail(err, BRIG_E_INVALID, 0,
                     "--unprotect: '%s' is not a protected path, such as .git, .vscode or .envrc",
                     str_shown(name).text);
}

bool names_is_excepted(const char *const *excepted, size_t count, const char *top, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        const char *one = excepted[i];
        size_t length = strlen(one);
        char whole[PATH_LENGTH_MAX + 1];
        (void)snprintf(whole, sizeof whole, "%s/%s", strcmp(top, "/") == 0 ? "" : top, path);
        if (one[0] == '/'
                ? path_is_beneath(one, whole)
                : strncmp(one, path, length) == 0 && (!path[length] || path[length] == '/'))
            return true;
    }
    return false;
}

/* ---- outward ---- */

/*  */

#define ANSWER_MAX ((size_t)1 << 20)

/* The files git reads, with the state they had: "PATH\0STATE\0" each, an empty text, and the paths found. A file
 * that is missing is recorded too, because it may appear. */
static void append_state(struct str *text, const char *path)
{
    struct stat info = {0};
    bool there = stat(path, &info) == 0;
    str_append_bytes(text, path, strlen(path) + 1);
    str_appendf(text, "%d-%jx-%jx-%jx-%jx.%lx", there, (uintmax_t)info.st_dev,
                (uintmax_t)info.st_ino, (uintmax_t)info.st_size, (uintmax_t)info.st_ctim.tv_sec,
                info.st_ctim.tv_nsec);
    str_append_bytes(text, "", 1);
}

/* Whether all files are as they were; then *ret_paths are the paths after the list. */
static bool is_current(const char *text, size_t length, const char **ret_paths)
{
    const char *at = text, *end = text + length;
    while (at < end && *at) {
        autostr struct str now = {0};
        const char *state = at + strlen(at) + 1;
        if (state >= end)
            return false;
        size_t used = (size_t)(state + strlen(state) + 1 - at);
        append_state(&now, at);
        if (now.failed || now.length != used || memcmp(now.data, at, used) != 0)
            return false;
        at += used;
    }
    *ret_paths = at + 1;
    return at < end && at > text;
}

/* A value as a path, for the caller to free: relative to a directory, "~/" to the home; NULL if it is none. */
static char *find_path(const char *value, const char *directory, const char *home)
{
    char *path = NULL;
    bool of_home = value[0] == '~' && value[1] == '/' && home;
    return path_make_absolute(of_home ? home : directory, of_home ? value + 2 : value, &path,
                              NULL) == 0
               ? path
               : NULL;
}

/* The file of a setting, which may also appear or change later. */
static void append_path(struct str *states, struct str *paths, const char *value,
                        const char *directory, const char *home)
{
    autofree char *path = find_path(value, directory, home);
    if (!path)
        return;
    append_state(states, path);
    str_append_bytes(paths, path, strlen(path) + 1);
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

/* Settings whose value is a command line; of a name with several parts the last one says so. */
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

/* The words of a command line that are files. The first one is a program, and if it has no slash, it is looked for in
 * PATH. */
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
            append_state(states, path); /* it may appear */
    }
}

/* One "file:ORIGIN\0key\nvalue\0" of git's list. */
static void read_setting(const char *origin, char *pair, const char *git_path, const char *top,
                         const char *home, struct str *states, struct str *paths)
{
    char *value = strchr(pair, '\n');
    if (!value || strncmp(origin, "file:", 5) != 0)
        return;
    *value++ = '\0';
    const char *file = origin + 5;
    autofree char *whole = NULL;
    if (path_make_absolute(git_path, file, &whole, NULL) < 0)
        return;
    append_state(states, whole);
    if (is_include(pair)) {
        char directory[PATH_LENGTH_MAX + 1];
        (void)snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(whole, '/') - whole),
                       whole);
        append_path(states, paths, value, directory[0] ? directory : "/", home);
    } else if (is_path_setting(pair) && *value) {
        append_path(states, paths, value, top, home);
    } else if (is_command(pair, value)) {
        append_words(states, paths, value, top, home);
    }
}

static int ask(const struct git *git, const char *top_path, const struct repo *repo,
               struct str *states, struct str *paths, struct brig_error *err)
{
    static const char *const words[] = {"config", "--show-origin", "-z", "--list", NULL};
    autostr struct str list = {0};
    const char *home = git_variable(git->environment, "HOME");
    const struct {
        const char *directory, *name;
    } usual[] = {{home, "/.gitconfig"},
                 {home, "/.config/git/config"},
                 {git_variable(git->environment, "XDG_CONFIG_HOME"), "/git/config"}};
    int status = git_run(
        git, &(struct git_call){.words = words, .git_dir = repo->git_dir, .out = &list}, err);
    if (status < 0)
        return status;
    append_state(states, "/etc/gitconfig");
    for (size_t i = 0; i < ARRAY_LENGTH(usual); i++) {
        char path[PATH_LENGTH_MAX + 1];
        if (usual[i].directory && str_fill(path, sizeof path, usual[i].directory, usual[i].name))
            append_state(states, path);
    }
    for (char *at = list.data; at && at < list.data + list.length;) {
        char *pair = at + strlen(at) + 1;
        if (pair >= list.data + list.length)
            break;
        char *next = pair + strlen(pair) + 1;
        read_setting(at, pair, repo->git_path, top_path, home, states, paths);
        at = next;
    }
    return states->failed || paths->failed ? brig_fail_nomem(err) : 0;
}

int outward_find(const struct git *git, int cache, int top, const char *top_path,
                 const struct repo *repo, struct str *ret_paths, struct brig_error *err)
{
    struct stat info, home_info = {0};
    char name[80] = "";
    const char *home = git_variable(git->environment, "HOME");
    autofree char *text = malloc(ANSWER_MAX);
    if (!text || fstat(top, &info) < 0)
        return brig_fail_nomem(err);
    if (home)
        (void)stat(home, &home_info);
    (void)snprintf(name, sizeof name, "outward-%jx-%jx-%jx", (uintmax_t)info.st_dev,
                   (uintmax_t)info.st_ino, (uintmax_t)home_info.st_ino);
    autoclose int old = cache < 0 ? -1 : openat(cache, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = old < 0 ? 0 : read(old, text, ANSWER_MAX);
    const char *paths;
    if (length > 0 && text[length - 1] == '\0' && is_current(text, (size_t)length, &paths)) {
        if (paths < text + length)
            str_append_bytes(ret_paths, paths, (size_t)(text + length - paths));
        return ret_paths->failed ? brig_fail_nomem(err) : 0;
    }
    autostr struct str states = {0};
    int status = ask(git, top_path, repo, &states, ret_paths, err);
    if (status < 0 || cache < 0)
        return status;
    str_append_bytes(&states, "", 1);
    str_append_bytes(&states, ret_paths->data, ret_paths->length);
    if (!states.failed && states.length < ANSWER_MAX)
        (void)files_write(cache, name, states.data, states.length, NULL);
    return 0;
}
