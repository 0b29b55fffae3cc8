/* SPDX-License-Identifier: MIT */
/* Finds the reason why a change is a risk. */
#include "changes/show/risk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/diff/plain.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "held/names.h"
#include "held/risk_text.h"

#define TOKENS_MAX 64 /* credentials of one file that are compared with the user's file */
#define EXECUTABLE (S_IXUSR | S_IXGRP | S_IXOTH)
#define TOO_LARGE "a lock file that is too large to be read"

/* ---- the file itself ---- */

static const char *find_in_type(mode_t mode)
{
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return "a device node";
    if (S_ISFIFO(mode))
        return "a FIFO: a program that opens it waits";
    if (S_ISSOCK(mode))
        return "a socket";
    return NULL;
}

static bool has_capabilities(const struct change *change)
{
    char path[PATH_COMPONENT_MAX + 64];
    const struct change_place place = change_place_after(change);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", place.dir, place.name);
    return place.dir >= 0 && lgetxattr(path, "security.capability", NULL, 0) > 0;
}

static const char *find_in_rights(const struct change *change)
{
    mode_t mode = change->after.st_mode, gained = mode & ~change->before.st_mode;
    if (S_ISLNK(mode))
        return NULL;
    if ((gained & S_IWOTH) && !(mode & S_ISVTX))
        return "everybody may write to it";
    if (!S_ISREG(mode))
        return NULL;
    if (mode & S_ISUID)
        return "setuid: runs with the rights of its owner";
    if ((mode & S_ISGID) && (mode & EXECUTABLE))
        return "setgid: runs with the rights of its group";
    return has_capabilities(change) ? "has file capabilities" : NULL;
}

/* If the directory does not exist outside, its name is new as well. */
static const char *find_in_name(const struct change *change)
{
    const char *name = change->lower_dir < 0 ? change->path : change->name;
    const unsigned char *p = (const unsigned char *)name;
    size_t length = strlen(name);
    if (change->name[0] == '-' || name[0] == '-' || strstr(name, "/-"))
        return RISK_OPTION;
    for (size_t i = 0; i < length;) {
        size_t size = utf8_length(p + i, length - i);
        if (size == 0)
            return "its name is not UTF-8";
        if (utf8_is_unseen(p + i, size))
            return size == 1 ? "its name contains control characters"
                             : "its name contains characters that are not shown";
        i += size;
    }
    return NULL;
}

/* ---- links ---- */

/* Whether it leads out through links that the user already has. */
static bool leads_out(const struct change *change, const char *target)
{
    char path[2 * PATH_LENGTH_MAX + 2];
    int dir_length = (int)(change->name - change->path), fd = -1;
    struct brig_error error = {0};
    (void)snprintf(path, sizeof path, "%.*s%s", dir_length, change->path, target);
    if (change->layer->lower < 0 || strlen(path) > PATH_LENGTH_MAX)
        return false;
    if (path_open_beneath(change->layer->lower, path, O_PATH, 0, &fd, &error) < 0)
        return error.sys_errno == EXDEV;
    (void)close(fd);
    return false;
}

static const char *find_in_link(const struct change *change)
{
    char target[PATH_LENGTH_MAX + 1];
    const struct change_place place = change_place_after(change);
    if (!S_ISLNK(change->after.st_mode) || place.dir < 0)
        return NULL;
    ssize_t length = readlinkat(place.dir, place.name, target, sizeof target - 1);
    if (length < 0)
        return "a link that cannot be read";
    target[length] = '\0';
    if (target[0] == '/')
        return "a link to an absolute path";
    return path_leads_above(change->path, target) || leads_out(change, target)
               ? "a link that leads out of the directory"
               : NULL;
}

/* ---- names ---- */

static bool exists(int dir, const char *name)
{
    struct stat info;
    return dir >= 0 && fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool has_beside(const struct change *change, const char *name)
{
    return exists(change->upper_dir, name) || exists(change->lower_dir, name);
}

/* Whether it is part of a directory, under any name, that git takes for a bare repository. */
static bool is_of_bare_repository(const struct change *change)
{
    bool telling = strcmp(change->name, "config") == 0 || strcmp(change->name, "HEAD") == 0;
    return telling && has_beside(change, "HEAD") && has_beside(change, "objects") &&
           has_beside(change, "refs");
}

static bool is_deleted_repository(const struct change *change)
{
    char path[PATH_COMPONENT_MAX + 8];
    (void)snprintf(path, sizeof path, "%s/.git", change->name);
    return S_ISDIR(change->before.st_mode) && exists(change->lower_dir, path);
}

/* The path relative to the home of the user, or NULL; `buffer` holds it if necessary. */
static const char *path_in_home(const struct change *change, char *buffer, size_t size)
{
    const struct layer *layer = change->layer;
    if (layer_is_home(layer->name))
        return change->path;
    const char *root = strcmp(layer->root, "/") == 0 ? "" : layer->root;
    if (!layer->masks.home || !str_fill(buffer, size, root, "/", change->path))
        return NULL;
    const char *below = path_below(layer->masks.home, buffer);
    return below && *below ? below : NULL;
}

/* Of a directory, and of a file that was there with this name, only the mode counts. */
static bool is_metadata(const struct change *change)
{
    return change->kind == CHANGE_METADATA || S_ISDIR(change->after.st_mode);
}

static bool judge_name(const struct change *change, struct names_mark *ret_mark)
{
    char buffer[2 * PATH_LENGTH_MAX + 2];
    mode_t before = change->before.st_mode, after = change->after.st_mode;
    return is_metadata(change)
               ? names_judge("", NULL, before, after, ret_mark)
               : names_judge(change->path, path_in_home(change, buffer, sizeof buffer), before,
                             after, ret_mark);
}

/* Whether it is in a new directory at the top that may have the settings of some program. In a home every program makes
 * one. */
static bool is_in_unknown(const struct change *change)
{
    char top[PATH_COMPONENT_MAX + 1];
    size_t length = strcspn(change->path, "/");
    if (layer_is_home(change->layer->name) || is_metadata(change) || change->lower_dir >= 0 ||
        length > PATH_COMPONENT_MAX || !names_is_unknown(change->path))
        return false;
    memcpy(top, change->path, length);
    top[length] = '\0';
    return !exists(change->layer->lower, top);
}

/* ---- contents ---- */

/* Appends the beginning of a file, if it could be opened, and closes it. */
static void read_beginning(int fd, size_t max, struct str *text)
{
    autoclose int file = fd;
    if (file >= 0)
        (void)read_all(file, max, text);
    if (text->length > max)
        text->length = max;
}

/* Whether the text has a credential that the user's file does not have. */
static bool has_new_credential(const struct change *change)
{
    autostr struct str text = {0}, before = {0};
    struct risk_token token;
    read_beginning(change_open_after(change), RISK_TEXT_MAX, &text);
    if (text.failed || plain_is_binary(text.data, text.length))
        return false;
    size_t from = 0;
    for (size_t i = 0; risk_token_find(text.data, text.length, from, &token); i++) {
        if (i == 0 && S_ISREG(change->before.st_mode))
            read_beginning(change_open_before(change), RISK_TEXT_MAX, &before);
        if (i == TOKENS_MAX || before.length == 0 ||
            !memmem(before.data, before.length, token.at, token.length))
            return true;
        from = (size_t)(token.at - text.data) + token.length;
    }
    return false;
}

static enum risk_package scan_package(int fd, off_t size, enum risk_package_part part,
                                      char hash[SHA256_HEX_LENGTH + 1])
{
    autostr struct str text = {0};
    if (size > (off_t)RISK_PACKAGE_MAX) {
        own_close(&fd);
        return RISK_PACKAGE_UNSURE;
    }
    read_beginning(fd, RISK_PACKAGE_MAX, &text);
    if (text.failed || fd < 0)
        return RISK_PACKAGE_UNSURE;
    return risk_package_scan(text.length > 0 ? text.data : "", text.length, part, hash);
}

/* Whether this part of a package.json differs from the user's. */
static bool has_other_part(const struct change *change, enum risk_package_part part)
{
    char before[SHA256_HEX_LENGTH + 1], after[SHA256_HEX_LENGTH + 1];
    enum risk_package is =
        scan_package(change_open_after(change), change->after.st_size, part, after);
    if (is != RISK_PACKAGE_SOME)
        return is == RISK_PACKAGE_UNSURE;
    return !S_ISREG(change->before.st_mode) ||
           scan_package(change_open_before(change), change->before.st_size, part, before) != is ||
           strcmp(before, after) != 0;
}

/* Whether a lock file names a source of packages that the user's version does not name. */
static const char *find_in_lock(const struct change *change)
{
    autostr struct str text = {0}, before = {0};
    struct risk_token source;
    if (change->after.st_size > (off_t)RISK_LOCK_MAX)
        return TOO_LARGE;
    read_beginning(change_open_after(change), RISK_LOCK_MAX, &text);
    if (S_ISREG(change->before.st_mode))
        read_beginning(change_open_before(change), RISK_LOCK_MAX, &before);
    if (text.failed || before.failed)
        return TOO_LARGE;
    for (size_t from = 0; risk_source_find(text.data, text.length, from, &source);) {
        bool known = before.length > 0
                         ? memmem(before.data, before.length, source.at, source.length) != NULL
                         : risk_source_is_usual(&source);
        if (!known)
            return "downloads packages from a place that is new in it";
        from = (size_t)(source.at - text.data) + source.length;
    }
    return NULL;
}

static const char *find_in_content(const struct change *change)
{
    if (!S_ISREG(change->after.st_mode))
        return NULL;
    bool package = strcmp(change->name, "package.json") == 0;
    if (package && has_other_part(change, RISK_PACKAGE_SCRIPTS))
        return "scripts that a package manager runs";
    if (package && has_other_part(change, RISK_PACKAGE_DEPENDENCIES))
        return "a dependency that is not from the registry";
    const char *reason = risk_is_lock(change->name) ? find_in_lock(change) : NULL;
    if (reason)
        return reason;
    return has_new_credential(change) ? "looks as if it contains a credential" : NULL;
}

/* ---- all ---- */

/* What a file is, apart from its name. */
static const char *find_in_file(const struct change *change)
{
    const char *reason = find_in_type(change->after.st_mode);
    if (!reason)
        reason = find_in_rights(change);
    if (!reason && change->before.st_mode == 0)
        reason = find_in_name(change);
    if (!reason && change->kind != CHANGE_METADATA)
        reason = find_in_link(change);
    return reason;
}

/* What is found neither in the file's modes nor in its name. */
static struct names_mark judge_rest(const struct change *change, bool contents)
{
    struct names_mark mark = {NAMES_WHEN_RUN, NULL};
    if (is_metadata(change) || change->kind == CHANGE_DELETED)
        return mark;
    if (is_of_bare_repository(change))
        return (struct names_mark){NAMES_UNASKED, "part of a git repository"};
    mark.reason = contents ? find_in_content(change) : NULL;
    return mark;
}

static bool judge(const struct change *change, bool contents, struct names_mark *ret_mark)
{
    struct names_mark named = {NAMES_UNUSUAL, NULL};
    bool deleted = change->kind == CHANGE_DELETED;
    *ret_mark = (struct names_mark){NAMES_UNUSUAL, NULL};
    if (!deleted)
        ret_mark->reason = find_in_file(change);
    else if (is_deleted_repository(change))
        ret_mark->reason = "a git repository with its history";
    if (ret_mark->reason)
        return true;
    (void)judge_name(change, &named);
    if (named.reason && named.class != NAMES_UNUSUAL)
        *ret_mark = named;
    else
        *ret_mark = judge_rest(change, contents);
    if (!ret_mark->reason)
        *ret_mark = named;
    if (!ret_mark->reason && !deleted && is_in_unknown(change))
        *ret_mark = (struct names_mark){NAMES_UNUSUAL, "unknown settings"};
    return ret_mark->reason;
}

bool risk_judge(const struct change *change, struct names_mark *ret_mark)
{
    return judge(change, true, ret_mark);
}

const char *risk_find(const struct change *change)
{
    struct names_mark mark;
    return judge(change, true, &mark) ? mark.reason : NULL;
}

const char *risk_find_quickly(const struct change *change)
{
    struct names_mark mark;
    return judge(change, false, &mark) ? mark.reason : NULL;
}
