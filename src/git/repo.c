/* SPDX-License-Identifier: MIT */
#include "git/repo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/path.h"
#include "base/str.h"

int repo_parse_path(const char *text, size_t length, char ret_path[REPO_POINTER_MAX])
{
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        length--;
    if (length == 0 || length >= REPO_POINTER_MAX || memchr(text, '\0', length) ||
        memchr(text, '\n', length))
        return 0;
    memcpy(ret_path, text, length);
    ret_path[length] = '\0';
    return 1;
}

int repo_parse_gitdir(const char *text, size_t length, char ret_path[REPO_POINTER_MAX])
{
    static const char prefix[] = "gitdir: ";
    const size_t prefix_length = sizeof prefix - 1;
    if (length <= prefix_length || memcmp(text, prefix, prefix_length) != 0)
        return 0;
    return repo_parse_path(text + prefix_length, length - prefix_length, ret_path);
}

int repo_path_of(int fd, char **ret_path, struct brig_error *err)
{
    char path[PATH_LENGTH_MAX + 1];
    struct stat named, opened;
    if (!path_of_fd(fd, path))
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot find out the path of a directory");
    /* /proc reports a wrong path for a removed directory. */
    if (lstat(path, &named) < 0 || fstat(fd, &opened) < 0 || named.st_dev != opened.st_dev ||
        named.st_ino != opened.st_ino)
        return brig_fail(err, BRIG_E_SYSTEM, ESTALE, "'%s' was moved", str_shown(path).text);
    return str_copy(path, ret_path, err);
}

static bool same_directory(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static int open_directory(int from, const char *path)
{
    return openat(from, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Reads a regular file that belongs to `owner` and contains a path: its length, 0 if it is missing,
 * -1 if it is invalid. */
static ssize_t read_pointer(int dir, const char *name, uid_t owner, char text[REPO_POINTER_MAX])
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != owner ||
        info.st_size <= 0 || info.st_size > REPO_POINTER_MAX)
        return -1;
    ssize_t length = pread(fd, text, REPO_POINTER_MAX, 0);
    return length == info.st_size ? length : -1;
}

int repo_read_path(int dir, const char *name, uid_t owner, char ret_path[REPO_POINTER_MAX])
{
    char text[REPO_POINTER_MAX];
    ssize_t length = read_pointer(dir, name, owner, text);
    return length > 0 && repo_parse_path(text, (size_t)length, ret_path);
}

static bool is_owned(int fd, uid_t owner)
{
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid == owner;
}

/* ---- a `.git` file ---- */

/* A linked worktree: its git directory is REPOSITORY/worktrees/NAME, and `gitdir` in it names the
 * `.git` file. Both are checked, because a jail may have written the `.git` file. */
static const char *check_worktree(int git_dir, int top, const char *to_common, uid_t owner,
                                  int *ret_common)
{
    char text[REPO_POINTER_MAX], path[REPO_POINTER_MAX];
    ssize_t length = read_pointer(git_dir, "gitdir", owner, text);
    if (length <= 0 || !repo_parse_path(text, (size_t)length, path))
        return "which does not name it back";
    char *slash = strrchr(path, '/');
    if (!slash || slash == path || strcmp(slash, "/.git") != 0)
        return "which names another directory back";
    *slash = '\0';
    autoclose int back = open_directory(git_dir, path);
    if (back < 0 || !same_directory(back, top))
        return "which names another directory back";
    autoclose int common = open_directory(git_dir, to_common);
    autoclose int above = open_directory(git_dir, "../..");
    if (common < 0 || above < 0 || !same_directory(common, above) || !is_owned(common, owner))
        return "which is not among the worktrees of a repository of yours";
    *ret_common = take_fd(&common);
    return NULL;
}

/* A submodule: its git directory is SUPERPROJECT/.git/modules/…, and the working tree is in the
 * superproject. */
static const char *check_submodule(const char *git_path, int top)
{
    autofree char *path = NULL;
    const char *modules = strstr(git_path, "/.git/modules/");
    if (!modules || repo_path_of(top, &path, NULL) < 0)
        return "which does not name it back";
    size_t length = (size_t)(modules - git_path);
    if (strncmp(path, git_path, length) != 0 || path[length] != '/')
        return "which belongs to another working tree";
    return NULL;
}

static int be_foreign(struct repo *repo, const char *why)
{
    repo->kind = REPO_FOREIGN;
    repo->why = why;
    return 0;
}

static int find_by_file(int top, uid_t owner, struct repo *repo, struct brig_error *err)
{
    char text[REPO_POINTER_MAX], path[REPO_POINTER_MAX];
    ssize_t length = read_pointer(top, ".git", owner, text);
    if (length <= 0 || !repo_parse_gitdir(text, (size_t)length, path))
        return be_foreign(repo, "which is not as git writes it");
    repo->git_dir = open_directory(top, path);
    if (repo->git_dir < 0)
        return be_foreign(repo, "which cannot be opened");
    int status = repo_path_of(repo->git_dir, &repo->git_path, err);
    if (status < 0)
        return status;
    if (!is_owned(repo->git_dir, owner))
        return be_foreign(repo, "which belongs to another user");
    length = read_pointer(repo->git_dir, "commondir", owner, text);
    if (length < 0 || (length > 0 && !repo_parse_path(text, (size_t)length, path)))
        repo->why = "whose commondir cannot be read";
    else if (length > 0)
        repo->why = check_worktree(repo->git_dir, top, path, owner, &repo->common);
    else if (!(repo->why = check_submodule(repo->git_path, top)))
        repo->common = open_directory(repo->git_dir, ".");
    repo->kind = repo->why ? REPO_FOREIGN : REPO_FILE;
    return 0;
}

/* ---- finding the git directory ---- */

bool repo_has_parts(int git_dir)
{
    return files_exists(git_dir, "HEAD") && files_exists(git_dir, "objects") &&
           files_exists(git_dir, "refs");
}

static int find(int top, uid_t owner, struct repo *repo, struct brig_error *err)
{
    struct stat info;
    if (fstatat(top, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISREG(info.st_mode)) {
        int status = find_by_file(top, owner, repo, err);
        if (status < 0 || repo->kind != REPO_FILE)
            return status;
        return repo_path_of(repo->common, &repo->common_path, err);
    }
    autoclose int fd = files_open_dir(top, ".git");
    if (fd < 0)
        return be_foreign(repo, "which is a symbolic link or cannot be opened");
    if (files_is_empty_dir(fd))
        return 0;
    /* brig names the directory to git outside, which then does not check its owner. */
    if (!is_owned(fd, owner))
        return be_foreign(repo, "which belongs to another user");
    if (files_exists(fd, "commondir"))
        return be_foreign(repo, "which has a 'commondir' that leads elsewhere");
    if (!repo_has_parts(fd)) /* git does not use it either */
        return be_foreign(repo, "which lacks HEAD, objects or refs");
    repo->git_dir = take_fd(&fd);
    repo->common = open_directory(repo->git_dir, ".");
    if (repo->common < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '.git'");
    repo->kind = REPO_DIRECTORY;
    int status = repo_path_of(repo->git_dir, &repo->git_path, err);
    return status < 0 ? status : str_copy(repo->git_path, &repo->common_path, err);
}

int repo_find(int top, uid_t owner, struct repo *ret_repo, struct brig_error *err)
{
    struct repo repo = REPO_INIT;
    int status = find(top, owner, &repo, err);
    if (status < 0)
        repo_done(&repo);
    else
        *ret_repo = repo;
    return status;
}

void repo_done(struct repo *repo)
{
    if (repo->git_dir >= 0)
        (void)close(repo->git_dir);
    if (repo->common >= 0)
        (void)close(repo->common);
    free(repo->git_path);
    free(repo->common_path);
    *repo = REPO_INIT;
}

/* ---- objects ---- */

#define ALTERNATES_MAX 65536 /* bytes of info/alternates */

static bool is_known(const int *fds, size_t count, int fd)
{
    for (size_t i = 0; i < count; i++)
        if (same_directory(fds[i], fd))
            return true;
    return false;
}

/* Whether this is the object directory of a repository: the jail sees no other directory, even if a
 * file names one. */
static bool is_object_directory(int fd)
{
    autofree char *path = NULL;
    autoclose int git_dir = open_directory(fd, "..");
    return repo_path_of(fd, &path, NULL) == 0 && str_ends_with(path, "/objects") && git_dir >= 0 &&
           repo_has_parts(git_dir);
}

/* Adds the directories that info/alternates of one object directory names, one per line. */
static int add_alternates(int objects, int fds[REPO_OBJECTS_MAX], size_t *count,
                          struct brig_error *err)
{
    autofree char *text = malloc(ALTERNATES_MAX + 1);
    autoclose int fd =
        openat(objects, "info/alternates", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (!text)
        return brig_fail_nomem(err);
    ssize_t length = fd < 0 ? 0 : pread(fd, text, ALTERNATES_MAX, 0);
    text[length > 0 ? length : 0] = '\0';
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!*line || *line == '#')
            continue;
        autoclose int other = open_directory(objects, line);
        if (other < 0 || is_known(fds, *count, other))
            continue;
        if (!is_object_directory(other))
            return brig_fail(
                err, BRIG_E_SETUP, 0,
                "the repository's objects/info/alternates names '%s', which is not the "
                "object directory of a repository. Remove that line",
                str_shown(line).text);
        if (*count == REPO_OBJECTS_MAX)
            return brig_fail(err, BRIG_E_INVALID, 0,
                             "the repository has more than %d object directories",
                             REPO_OBJECTS_MAX);
        fds[(*count)++] = take_fd(&other);
    }
    return 0;
}

bool repo_is_alternates(const char *path)
{
    static const char end[] = "/objects/info/alternates";
    return str_ends_with(path, end) || strcmp(path, end + 1) == 0;
}

void repo_alternates_outside(const char *inside, struct str *ret_text)
{
    static const char prefix[] = REPO_BORROWED "/";
    for (const char *at = inside; *at;) {
        size_t length = strcspn(at, "\n");
        length += at[length] == '\n';
        size_t skipped = str_starts_with(at, prefix) ? strlen(prefix) - 1 : 0;
        str_append_bytes(ret_text, at + skipped, length - skipped);
        at += length;
    }
}

int repo_objects(const struct repo *repo, int ret_fds[REPO_OBJECTS_MAX], size_t *ret_count,
                 struct brig_error *err)
{
    int fds[REPO_OBJECTS_MAX] = {open_directory(repo->common, "objects")};
    size_t count = 1;
    if (fds[0] < 0)
        return brig_fail(err, BRIG_E_SETUP, errno, "cannot open '%s/objects'", repo->common_path);
    int status =
        is_object_directory(fds[0])
            ? 0
            : brig_fail(err, BRIG_E_SETUP, 0,
                        "'%s/objects' leads to a directory that is not the object directory "
                        "of a repository",
                        str_shown(repo->common_path).text);
    for (size_t i = 0; i < count && status == 0; i++)
        status = add_alternates(fds[i], fds, &count, err);
    if (status < 0) {
        for (size_t i = 0; i < count; i++)
            (void)close(fds[i]);
        return status;
    }
    memcpy(ret_fds, fds, count * sizeof *fds);
    *ret_count = count;
    return 0;
}
