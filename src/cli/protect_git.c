/* SPDX-License-Identifier: MIT */
/* The protected paths of a repository, its submodules and its worktrees. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/message.h"
#include "cli/protect_parts.h"

#define GIT_DIRS_MAX 256 /* looked into for one repository */

/* A directory of a repository that is still to be looked at. */
struct git_dir {
    char *path;
    char *name; /* from ".git" on */
    enum { GIT_DIR, GIT_MODULES, GIT_MODULE, GIT_WORKTREES, GIT_WORKTREE } kind;
};

struct git_todo {
    struct git_dir *items;
    size_t count, room;
};

static bool push(struct git_todo *todo, const char *path, const char *name, const char *below,
                 int kind)
{
    if (todo->count == GIT_DIRS_MAX)
        return false;
    if (todo->count == todo->room) {
        size_t room = todo->room ? 4 * todo->room : 4;
        struct git_dir *items = reallocarray(todo->items, room, sizeof *items);
        if (!items)
            return false;
        todo->items = items;
        todo->room = room;
    }
    struct git_dir item = {.kind = (unsigned)kind};
    const char *const path_parts[] = {path, below}, *const name_parts[] = {name, below};
    bool done = str_join(path_parts, ARRAY_LENGTH(path_parts), "", &item.path, NULL) == 0 &&
                str_join(name_parts, ARRAY_LENGTH(name_parts), "", &item.name, NULL) == 0;
    todo->items[todo->count++] = item;
    return done;
}

/* Whether there is anything in a directory that a submodule's repository has. One thing is enough:
 * what a run can move away is not relied upon, and it cannot move all. */
static bool is_like_repository(int dir_fd)
{
    static const char *const marks[] = {"HEAD", "config", "hooks", "objects"};
    struct stat info;
    for (size_t i = 0; i < ARRAY_LENGTH(marks); i++)
        if (fstatat(dir_fd, marks[i], &info, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

/* Whether a directory in what may be a repository is git's own, and holds no submodules. */
static bool is_internal(int dir_fd, const char *name)
{
    static const char *const names[] = {
        "objects",  "refs",     "logs",    "hooks",    "info", "lfs",
        "rr-cache", "branches", "modules", "worktrees"}; /* the last two are looked at as such */
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        autoclose int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 || !is_like_repository(fd); /* a submodule may be called that */
    }
    return false;
}

/* Adds the directories in one, and the links, to what is to be looked at; in what may be a repository
 * not git's own. False if there are too many. */
static bool push_children(struct git_todo *todo, int dir_fd, const char *path, const char *name,
                          int kind, bool repository)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return fd < 0 && errno == ENOENT;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        struct stat info;
        char below[sizeof entry->d_name + 1];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            !(S_ISDIR(info.st_mode) || (S_ISLNK(info.st_mode) && !repository)) ||
            (repository && is_internal(fd, entry->d_name)))
            continue;
        (void)snprintf(below, sizeof below, "/%s", entry->d_name);
        if (!push(todo, path, name, below, kind))
            return false;
    }
    return true;
}

/* What is not a directory: a link, which a run may have put there for git to follow, is protected as
 * it is, and where nothing is, the name of the top's modules is held. Most have no worktrees. */
static int protect_no_directory(struct protect_scan *scan, const struct git_dir *part, int error,
                                struct brig_error *err)
{
    bool missing = error == ENOENT;
    if (!part->path || !part->name)
        return brig_fail_nomem(err);
    if ((missing && strcmp(part->name, ".git/modules") != 0) ||
        (!missing && error != ELOOP && error != ENOTDIR))
        return 0;
    const char *slash = strrchr(part->path, '/');
    autofree char *dir_path = strndup(part->path, (size_t)(slash - part->path));
    if (!dir_path)
        return brig_fail_nomem(err);
    return protect_add_path(scan, dir_path, slash + 1, part->name,
                            missing ? PROTECT_HOLD_DIRECTORY : PROTECT_HOLD_NOT, err);
}

/* One directory of a repository: its own rows, and what it leads to. False in *ret_all if there is
 * more below it than can be looked at. */
static int protect_git_part(struct protect_scan *scan, const struct git_dir *part,
                            struct git_todo *todo, bool *ret_all, struct brig_error *err)
{
    autoclose int fd = open(part->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *ret_all = true;
    if (fd < 0)
        return part->kind == GIT_DIR ? 0 : protect_no_directory(scan, part, errno, err);
    char prefix[PATH_LENGTH_MAX + 1];
    (void)snprintf(prefix, sizeof prefix, "%s/", part->name);
    bool repository = is_like_repository(fd);
    switch (part->kind) {
    case GIT_MODULES: /* of a repository: never one itself, whatever lies in it */
        if (protect_is_empty(fd, "."))
            return protect_no_directory(scan, part, ENOENT, err);
        *ret_all = push_children(todo, fd, part->path, part->name, GIT_MODULE, false);
        return 0;
    case GIT_MODULE: /* names with slashes in them are directories here */
        *ret_all = push_children(todo, fd, part->path, part->name, GIT_MODULE, repository);
        if (!repository || !*ret_all)
            return 0;
        break;
    case GIT_WORKTREES:
        *ret_all = push_children(todo, fd, part->path, part->name, GIT_WORKTREE, false);
        return 0;
    case GIT_WORKTREE:
        return protect_add_rows(scan, fd, part->path, prefix, &protect_worktree_rows, true, err);
    case GIT_DIR:
        break;
    }
    *ret_all = push(todo, part->path, part->name, "/modules", GIT_MODULES) &&
               push(todo, part->path, part->name, "/worktrees", GIT_WORKTREES);
    return protect_add_rows(scan, fd, part->path, prefix, &protect_git_rows, true, err);
}

/* ---- what is there ---- */

#define MODULES_DEPTH_MAX 32

struct module_walk {
    struct str *list;
    unsigned left; /* to be looked at */
};

/* The directories in one, whose path from the git directory on is `path`. What is a link is listed as
 * if it led to a repository. */
static void list_below(struct module_walk *walk, int dir_fd, const char *path, bool repository,
                       unsigned depth)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        (void)close(fd);
    const struct dirent *entry;
    while (dir && depth < MODULES_DEPTH_MAX && (entry = readdir(dir)) && walk->left > 0) {
        char below[PATH_LENGTH_MAX + 1];
        bool modules = repository && strcmp(entry->d_name, "modules") == 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            (repository && !modules && is_internal(fd, entry->d_name)) ||
            !protect_join(below, path, "/") || !protect_join(below, below, entry->d_name))
            continue;
        autoclose int child =
            openat(fd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (child < 0 && (errno != ELOOP && errno != ENOTDIR))
            continue;
        struct stat info;
        if (child < 0 &&
            (repository || fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
             !S_ISLNK(info.st_mode)))
            continue;
        walk->left--;
        bool is_one = child < 0 || (!modules && is_like_repository(child));
        if (is_one)
            str_append_bytes(walk->list, below, strlen(below) + 1);
        if (child >= 0)
            list_below(walk, child, below, is_one, depth + 1);
    }
}

void protect_list_modules(int git_fd, struct str *list)
{
    struct module_walk walk = {.list = list, .left = GIT_DIRS_MAX};
    autoclose int fd = openat(git_fd, "modules", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        list_below(&walk, fd, "modules", false, 0);
}

/* ---- all of it ---- */

/* A git directory with its submodules' and its worktrees'. Where there are too many of them to look
 * at, what holds them is protected as a whole. */
int protect_git_dir(struct protect_scan *scan, const char *path, struct brig_error *err)
{
    struct git_todo todo = {0};
    int status =
        push(&todo, path, protect_git_name(scan, path), "", GIT_DIR) ? 0 : brig_fail_nomem(err);
    for (size_t i = 0; i < todo.count && status == 0; i++) {
        struct git_dir part = todo.items[i]; /* the array may move */
        bool all = true;
        status = protect_git_part(scan, &part, &todo, &all, err);
        if (status == 0 && !all) {
            message_warning("'%s' holds more than %d repositories: all of it is read-only",
                            part.path, GIT_DIRS_MAX);
            status = protect_add_rules(scan, part.path, 0, err);
        }
    }
    for (size_t i = 0; i < todo.count; i++) {
        free(todo.items[i].path);
        free(todo.items[i].name);
    }
    free(todo.items);
    return status;
}
