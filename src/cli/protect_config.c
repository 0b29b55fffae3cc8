/* SPDX-License-Identifier: MIT */
/* What a repository's settings name: other settings, and where its hooks are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/gitfile.h"
#include "cli/message.h"
#include "cli/protect_parts.h"
#include "cli/settings.h"

enum config_section { CONFIG_OTHER, CONFIG_CORE, CONFIG_INCLUDE };

static const char *skip_blanks_of(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* "[core]" at `at`: where the rest of the line begins. */
static const char *skip_section(const char *at, const char *end, enum config_section *ret_section)
{
    const char *name = ++at;
    bool quoted = false;
    while (at < end && *at != ']' && *at != ' ' && *at != '\t' && *at != '.')
        at++;
    size_t length = (size_t)(at - name);
    *ret_section = CONFIG_OTHER;
    if (length == 4 && strncasecmp(name, "core", 4) == 0 && at < end && *at == ']')
        *ret_section = CONFIG_CORE;
    if ((length == 7 && strncasecmp(name, "include", 7) == 0) ||
        (length == 9 && strncasecmp(name, "includeif", 9) == 0))
        *ret_section = CONFIG_INCLUDE;
    for (; at < end && (quoted || *at != ']'); at++) {
        if (quoted && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            quoted = !quoted;
    }
    return at < end ? at + 1 : end;
}

/* The value in "= VALUE", by the parser of core.worktree, which has the same form. */
static bool parse_value(const char *at, size_t length, char ret_value[GITFILE_PATH_SIZE])
{
    static const char before[] = "[core]\nworktree";
    char text[sizeof before + GITFILE_PATH_SIZE];
    if (length > GITFILE_PATH_SIZE)
        return false;
    memcpy(text, before, sizeof before - 1);
    memcpy(text + sizeof before - 1, at, length);
    return gitfile_parse_worktree(text, sizeof before - 1 + length, ret_value) != 0;
}

/* An absolute path without "." and "..", by its text alone: the links in it are protected on the way
 * to it. False if it is too long. */
static bool resolve(const char *base, const char *value, char ret_path[PATH_LENGTH_MAX + 1])
{
    char text[2 * PATH_LENGTH_MAX + 2];
    int length = value[0] == '/' ? snprintf(text, sizeof text, "%s", value)
                                 : snprintf(text, sizeof text, "%s/%s", base, value);
    size_t used = 0;
    if (length < 0 || (size_t)length >= sizeof text)
        return false;
    for (const char *at = text; *at;) {
        at += strspn(at, "/");
        size_t part = strcspn(at, "/");
        if (part == 2 && memcmp(at, "..", 2) == 0) {
            while (used > 0 && ret_path[--used] != '/')
                continue;
        } else if (part > 0 && !(part == 1 && *at == '.')) {
            if (used + 1 + part > PATH_LENGTH_MAX)
                return false;
            ret_path[used++] = '/';
            memcpy(ret_path + used, at, part);
            used += part;
        }
        at += part;
    }
    ret_path[used] = '\0';
    return true;
}

static int protect_target(struct protect_scan *scan, const char *path, enum protect_hold hold,
                          struct brig_error *err)
{
    for (size_t i = 0; i < scan->root_count; i++) {
        const char *root = scan->roots[i].path;
        size_t length = strlen(root);
        if (path_is_beneath(path, root)) {
            message_warning("git's settings name '%s', which is granted: the run can plant the "
                            "files git looks for there",
                            root);
            continue;
        }
        if (!path_is_beneath(root, path) || path[length] != '/')
            continue;
        const char *rest = path + length + 1;
        int status = protect_add_path(scan, root, rest, rest, hold, err);
        if (status < 0)
            return status;
    }
    return 0;
}

/* What a path in git's settings means: "~/" is the home. False for somebody else's. */
static bool resolve_value(const struct protect_scan *scan, const char *base, const char *value,
                          char ret_path[PATH_LENGTH_MAX + 1])
{
    if (value[0] != '~')
        return resolve(base, value, ret_path);
    const char *rest = value + 1 + strspn(value + 1, "/");
    if (!scan->settings->home || (value[1] && value[1] != '/'))
        return false;
    return resolve(scan->settings->home, *rest ? rest : ".", ret_path);
}

/* Git 2.52 does not mind if such a file is missing; it is still that file. */
static const char *skip_optional(const char *value)
{
    static const char optional[] = ":(optional)";
    const size_t length = sizeof optional - 1;
    return strncmp(value, optional, length) == 0 ? value + length : value;
}

/* One variable of a file in `dir`: what it names is protected, and read as well if it is included. */
static int read_variable_of(struct protect_scan *scan, const char *top, const char *dir,
                            const char *at, const char *end, enum config_section section,
                            struct protect_todo *todo, struct brig_error *err)
{
    const char *name = section == CONFIG_CORE ? "hooksPath" : "path";
    size_t length = strlen(name);
    if ((size_t)(end - at) <= length || strncasecmp(at, name, length) != 0 || !at[length] ||
        !strchr(" \t=", at[length]))
        return 0;
    char value[GITFILE_PATH_SIZE], path[PATH_LENGTH_MAX + 1];
    bool understood = parse_value(at + length, (size_t)(end - at) - length, value);
    const char *named = understood ? skip_optional(value) : "";
    if (strncmp(named, "%(prefix)/", 10) == 0) /* where git itself is installed */
        return 0;
    if (!understood || !resolve_value(scan, section == CONFIG_CORE ? top : dir, named, path)) {
        message_warning(
            "cannot read a %s in git's settings in '%s': the files it names are not protected",
            name, dir);
        return 0;
    }
    if (section == CONFIG_CORE)
        return protect_target(scan, path, PROTECT_HOLD_DIRECTORY, err);
    if (todo->count < PROTECT_CONFIG_FILES_MAX && (todo->paths[todo->count] = strdup(path)))
        todo->count++;
    else
        message_warning("'%s' is included in too many settings to be read", path);
    return protect_target(scan, path, PROTECT_HOLD_FILE, err);
}

int protect_config_text(struct protect_scan *scan, const char *top, const char *dir,
                        const char *text, size_t length, struct protect_todo *todo,
                        struct brig_error *err)
{
    static const char mark[] =
        "\xef\xbb\xbf"; /* some editors begin a file with it, and git skips it */
    const size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    enum config_section section = CONFIG_OTHER;
    int status = 0;
    for (const char *line = text + skipped, *all = text + length; line < all && status == 0;) {
        const char *newline = memchr(line, '\n', (size_t)(all - line));
        const char *end = newline ? newline : all;
        line = skip_blanks_of(line, end);
        if (line < end && *line == '[')
            line = skip_blanks_of(skip_section(line, end, &section), end);
        if (section != CONFIG_OTHER)
            status = read_variable_of(scan, top, dir, line, end, section, todo, err);
        line = newline ? newline + 1 : all;
    }
    return status;
}

static int read_config(struct protect_scan *scan, const char *top, const char *file,
                       struct protect_todo *todo, struct brig_error *err)
{
    autoclose int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return 0;
    bool fits = info.st_size <= GITFILE_CONFIG_MAX;
    autofree char *text = malloc(fits ? (size_t)info.st_size + 1 : 1);
    autofree char *dir = strndup(file, (size_t)(strrchr(file, '/') - file));
    if (!text || !dir)
        return brig_fail_nomem(err);
    ssize_t length = fits ? pread(fd, text, (size_t)info.st_size + 1, 0) : -1;
    if (length != info.st_size) {
        message_warning("'%s' cannot be read or is too long: the files it names are not protected",
                        file);
        return 0;
    }
    return protect_config_text(scan, top, dir, text, (size_t)length, todo, err);
}

int protect_config(struct protect_scan *scan, const char *top, const char *git_dir,
                   struct brig_error *err)
{
    static const char *const names[] = {"config", "config.worktree"};
    struct protect_todo todo = {0};
    int status = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(names) && status == 0; i++) {
        const char *const parts[] = {git_dir, names[i]};
        status = str_join(parts, ARRAY_LENGTH(parts), "/", &todo.paths[todo.count], err);
        if (status == 0)
            todo.count++;
    }
    for (size_t i = 0; i < todo.count && status == 0; i++)
        status = read_config(scan, top, todo.paths[i], &todo, err);
    for (size_t i = 0; i < todo.count; i++)
        free(todo.paths[i]);
    return status;
}
