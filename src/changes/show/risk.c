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
#include "base/fds.h"
#include "base/path.h"
#include "base/str.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "held/names.h"
#include "held/risk_text.h"

#define EXECUTABLE (S_IXUSR | S_IXGRP | S_IXOTH)

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
    return risk_name_find(change->lower_dir < 0 ? change->path : change->name);
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

static bool judge_link(const struct change *change, struct names_mark *ret_mark)
{
    char target[PATH_LENGTH_MAX + 1], buffer[2 * PATH_LENGTH_MAX + 2];
    const struct change_place place = change_place_after(change);
    if (!S_ISLNK(change->after.st_mode) || place.dir < 0)
        return false;
    ssize_t length = readlinkat(place.dir, place.name, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    if (length < 0)
        *ret_mark = (struct names_mark){NAMES_UNUSUAL, "a link that cannot be read"};
    else if (target[0] != '/' && leads_out(change, target))
        *ret_mark = (struct names_mark){NAMES_UNUSUAL, "a link that leads out of the directory"};
    else
        return risk_link_judge(change->path, path_in_home(change, buffer, sizeof buffer), target,
                               ret_mark);
    return true;
}

/* ---- contents ---- */

/* Reads the beginning of a file, if it could be opened, and closes it. */
static struct risk_content read_content(int fd, off_t size, const char *name, struct str *text)
{
    size_t max = risk_content_max(name);
    autoclose int file = fd;
    if (file >= 0)
        (void)read_all(file, max, text);
    bool whole = file >= 0 && !text->failed && text->length <= max && size <= (off_t)max;
    return (struct risk_content){.data = text->data,
                                 .length = text->length < max ? text->length : max,
                                 .exists = true,
                                 .cut = !whole};
}

static const char *find_in_content(const struct change *change)
{
    autostr struct str text = {0}, text_before = {0};
    struct risk_content before = {0};
    if (!S_ISREG(change->after.st_mode))
        return NULL;
    struct risk_content after =
        read_content(change_open_after(change), change->after.st_size, change->name, &text);
    if (!risk_content_compares(change->name, &after))
        return NULL;
    if (S_ISREG(change->before.st_mode))
        before = read_content(change_open_before(change), change->before.st_size, change->name,
                              &text_before);
    return risk_content_find(change->name, &before, &after);
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
    if (!deleted && change->kind != CHANGE_METADATA && judge_link(change, ret_mark) &&
        ret_mark->class == NAMES_UNUSUAL)
        return true;
    (void)judge_name(change, &named);
    if (ret_mark->reason && !(named.reason && named.class <= ret_mark->class))
        return true;
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
