/* SPDX-License-Identifier: MIT */
/* One protected path: found as it is, or held where it is missing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "cli/message.h"
#include "cli/protect.h"
#include "cli/protect_parts.h"
#include "cli/settings.h"
#include "cli/worktree.h"
#include "policy/policy.h"

#define LINKS_MAX 8 /* symbolic links on the way to one path */

/* Without readdir(), which asks for more memory than the answer needs. */
bool protect_is_empty(int dir_fd, const char *name)
{
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _Alignas(struct dirent) char entries[1024];
    long length = fd < 0 ? -1 : syscall(SYS_getdents64, fd, entries, sizeof entries);
    bool empty = length >= 0;
    for (; length > 0 && empty; length = syscall(SYS_getdents64, fd, entries, sizeof entries)) {
        for (long at = 0; at < length && empty;) {
            const struct dirent *entry = (const struct dirent *)(const void *)(entries + at);
            empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
            at += entry->d_reclen;
        }
    }
    return empty;
}

int protect_hold_name(struct protect_scan *scan, int dir_fd, const char *dir_path, const char *name,
                      enum protect_hold hold, unsigned flags, struct brig_error *err)
{
    static const enum placeholder_kind kinds[] = {
        [PROTECT_HOLD_NOT] = PLACEHOLDER_DIRECTORY,
        [PROTECT_HOLD_DIRECTORY] = PLACEHOLDER_DIRECTORY,
        [PROTECT_HOLD_FILE] = PLACEHOLDER_FILE,
        [PROTECT_HOLD_SELF] = PLACEHOLDER_SELF,
        [PROTECT_HOLD_CLOSED] = PLACEHOLDER_CLOSED,
    };
    const struct brig_policy *policy = scan->settings->policy;
    struct placeholders *held = &scan->protect->held;
    char path[PATH_LENGTH_MAX + 1];
    if (!protect_join(path, dir_path, "/") || !protect_join(path, path, name))
        return brig_fail(err, BRIG_E_SETUP, ENAMETOOLONG, "cannot protect '%s/%s'", dir_path, name);
    size_t first = policy->grant_count, count = held->count;
    int status = protect_add_rules(scan, path, flags, err);
    if (status < 0 || scan->settings->dry_run || policy->grant_count == first)
        return status;
    status = placeholders_want(held, dir_fd, dir_path, name, kinds[hold], err);
    if (held->count > count) {
        held->items[count].first_rule = first;
        held->items[count].rule_count = policy->grant_count - first;
    }
    return status;
}

/* Whether what is there may be the placeholder of a run that ends before ours, or after it. */
static bool may_be_placeholder(int dir_fd, const char *name, const struct stat *info,
                               enum protect_hold hold)
{
    switch (hold) {
    case PROTECT_HOLD_NOT:
        break;
    case PROTECT_HOLD_CLOSED:
    case PROTECT_HOLD_DIRECTORY:
        return S_ISDIR(info->st_mode) && protect_is_empty(dir_fd, name);
    case PROTECT_HOLD_FILE:
    case PROTECT_HOLD_SELF:
        return S_ISREG(info->st_mode) && info->st_size <= PLACEHOLDER_SIZE_MAX;
    }
    return false;
}

static void warn_of_links(const char *path, const struct stat *info)
{
    if (S_ISREG(info->st_mode) && info->st_nlink > 1)
        message_warning("'%s' has %llu names (hard links): it is protected by this one only", path,
                        (unsigned long long)info->st_nlink);
}

static int protect_path(struct protect_scan *scan, int dir_fd, const char *dir_path,
                        const char *rest, const char *name, enum protect_hold hold,
                        struct brig_error *err);

/* A symbolic link is protected itself, and then what it leads to. */
static int follow_link(struct protect_scan *scan, int dir_fd, const char *link_path,
                       const char *component, const char *rest, const char *name,
                       enum protect_hold hold, struct brig_error *err)
{
    int status = protect_add_rules(scan, link_path, 0, err);
    if (status < 0 || scan->links++ >= LINKS_MAX)
        return status;
    autoclose int target = openat(dir_fd, component, O_PATH | O_CLOEXEC);
    char path[PATH_LENGTH_MAX + 1];
    struct stat info;
    if (target < 0 || worktree_path_of(target, path) < 0) {
        message_warning(
            "'%s' is a symbolic link to a file that does not exist: the run may create it",
            link_path);
        return 0;
    }
    if (!protect_can_be_written(scan, path) || fstat(target, &info) < 0)
        return 0;
    if (!*rest)
        warn_of_links(path, &info);
    if (!*rest || !S_ISDIR(info.st_mode))
        return protect_add_rules(scan, path, 0, err);
    return protect_path(scan, target, path, rest, name, hold, err);
}

/* The first part of what is left of a path. */
static bool take_component(const char **rest, char ret_component[PATH_COMPONENT_MAX + 1])
{
    size_t length = strcspn(*rest, "/");
    if (length > PATH_COMPONENT_MAX)
        return false;
    memcpy(ret_component, *rest, length);
    ret_component[length] = '\0';
    *rest += length + ((*rest)[length] == '/');
    return true;
}

/* What is there under the last name of a path. */
static int protect_found(struct protect_scan *scan, int dir_fd, const char *dir_path,
                         const char *component, const char *path, const struct stat *info,
                         enum protect_hold hold, struct brig_error *err)
{
    warn_of_links(path, info);
    if (may_be_placeholder(dir_fd, component, info, hold))
        return protect_hold_name(scan, dir_fd, dir_path, component, hold, 0, err);
    return protect_add_rules(scan, path, 0, err);
}

static int cannot_look(const char *path, int error, struct brig_error *err)
{
    (void)brig_fail(err, BRIG_E_SETUP, error, "cannot protect '%s'", path);
    return brig_advise(err, BRIG_E_SETUP,
                       "Make its directory accessible, grant that read-only with -r, or use "
                       "--no-protect");
}

/* Protects the path `rest` in a directory; `name` is what the whole is called. The first part of it
 * that is missing is held: an empty directory is no more than a name, and may be another run's. */
static int protect_path(struct protect_scan *scan, int dir_fd, const char *dir_path,
                        const char *rest, const char *name, enum protect_hold hold,
                        struct brig_error *err)
{
    autoclose int owned = -1;
    char above[PATH_LENGTH_MAX + 1], path[PATH_LENGTH_MAX + 1];
    char component[PATH_COMPONENT_MAX + 1];
    bool fits = protect_join(path, dir_path, "");
    while (fits && protect_join(above, path, "") && take_component(&rest, component)) {
        struct stat info;
        bool last = !*rest, missing = fstatat(dir_fd, component, &info, AT_SYMLINK_NOFOLLOW) < 0;
        if (missing && errno == ENOENT && hold == PROTECT_HOLD_NOT)
            return 0;
        int error = missing ? errno : 0;
        fits = protect_join(path, above, "/") && protect_join(path, path, component);
        if (!fits)
            break;
        if (protect_is_excepted(scan, name, path))
            return 0;
        if (missing && error != ENOENT)
            return protect_can_be_written(scan, path) ? cannot_look(path, error, err) : 0;
        if (missing || (!last && S_ISDIR(info.st_mode) && protect_is_empty(dir_fd, component)))
            return hold == PROTECT_HOLD_NOT
                       ? 0
                       : protect_hold_name(scan, dir_fd, above, component,
                                           last ? hold : PROTECT_HOLD_DIRECTORY, 0, err);
        if (!protect_can_be_written(scan, path))
            return 0;
        if (S_ISLNK(info.st_mode))
            return follow_link(scan, dir_fd, path, component, rest, name, hold, err);
        if (last || !S_ISDIR(info.st_mode))
            return protect_found(scan, dir_fd, above, component, path, &info, hold, err);
        int fd = openat(dir_fd, component, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return cannot_look(path, errno, err);
        own_close(&owned);
        dir_fd = owned = fd;
    }
    return brig_fail(err, BRIG_E_SETUP, ENAMETOOLONG, "cannot protect '%s' in '%s'", name,
                     dir_path);
}

int protect_add_path(struct protect_scan *scan, const char *dir_path, const char *rest,
                     const char *name, enum protect_hold hold, struct brig_error *err)
{
    autoclose int fd = open(dir_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? 0
                   : brig_fail(err, BRIG_E_SETUP, errno, "cannot protect '%s/%s'", dir_path, rest);
    scan->links = 0;
    return protect_path(scan, fd, dir_path, rest, name, hold, err);
}

int protect_add_rows(struct protect_scan *scan, int dir_fd, const char *dir_path,
                     const char *prefix, const struct protect_rows *table, bool hold,
                     struct brig_error *err)
{
    const struct protect_row *rows = table->rows;
    for (size_t i = 0; i < table->count; i++) {
        char name[PATH_LENGTH_MAX + 1];
        if (!protect_join(name, prefix, rows[i].path))
            return brig_fail(err, BRIG_E_SETUP, ENAMETOOLONG, "cannot protect '%s'", dir_path);
        scan->links = 0;
        int status = protect_path(scan, dir_fd, dir_path, rows[i].path, name,
                                  hold ? rows[i].hold : PROTECT_HOLD_NOT, err);
        if (status < 0)
            return status;
    }
    return 0;
}
