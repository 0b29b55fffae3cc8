/* SPDX-License-Identifier: MIT */
/* Linked worktrees and submodules: from a `.git` file to the repository, and back. */
#include "cli/worktree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/gitfile.h"

/* Reads a regular file of the owner's, to its end: its length, 0 if it is not there, or -1 if it is
 * not as it should be. */
static ssize_t read_file(int dir_fd, const char *name, uid_t owner, char *buffer, size_t limit)
{
    autoclose int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != owner ||
        info.st_size <= 0 || (size_t)info.st_size > limit)
        return -1;
    size_t used = 0;
    while (used < limit) {
        ssize_t got = read(fd, buffer + used, limit - used);
        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    return (off_t)used == info.st_size ? (ssize_t)used : -1;
}

static bool same_directory(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static bool is_owned(int fd, uid_t owner)
{
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid == owner;
}

static int open_directory(int dir_fd, const char *path)
{
    return openat(dir_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int worktree_path_of(int fd, char ret_path[PATH_LENGTH_MAX + 1])
{
    char link[64], path[PATH_LENGTH_MAX + 1];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (length <= 0 || (size_t)length >= sizeof path || path[0] != '/')
        return -1;
    path[length] = '\0';
    struct stat named, opened; /* what was deleted or is out of reach has another name, or none */
    if (lstat(path, &named) < 0 || fstat(fd, &opened) < 0 || named.st_dev != opened.st_dev ||
        named.st_ino != opened.st_ino)
        return -1;
    memcpy(ret_path, path, (size_t)length + 1);
    return 0;
}

static bool can_be_entered(const struct stat *info)
{
    return S_ISDIR(info->st_mode) && (info->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH));
}

bool worktree_is_git_dir(int dir_fd)
{
    struct stat info;
    return fstatat(dir_fd, "HEAD", &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(dir_fd, "objects", &info, 0) == 0 && can_be_entered(&info) &&
           fstatat(dir_fd, "refs", &info, 0) == 0 && can_be_entered(&info);
}

bool worktree_was_git_dir(int dir_fd)
{
    static const char mark[] = "repositoryformatversion"; /* in every config that git made */
    if (worktree_is_git_dir(dir_fd))
        return true;
    autoclose int fd = openat(dir_fd, "config", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return false;
    autofree char *text = malloc(GITFILE_CONFIG_MAX);
    ssize_t length = text ? pread(fd, text, GITFILE_CONFIG_MAX, 0) : -1;
    return length > 0 && memmem(text, (size_t)length, mark, sizeof mark - 1);
}

/* Whether a path in a repository's files, relative to git_dir, is this directory. */
static bool names_directory(int git_dir, const char *path, int dir_fd)
{
    autoclose int fd = open_directory(git_dir, path);
    return fd >= 0 && same_directory(fd, dir_fd);
}

/* The file `gitdir` of a linked worktree names the `.git` file. */
static const char *check_back_link(int git_dir, int dir_fd, uid_t owner)
{
    char text[GITFILE_LINK_MAX], path[GITFILE_PATH_SIZE];
    ssize_t length = read_file(git_dir, "gitdir", owner, text, sizeof text);
    if (length <= 0 || !gitfile_parse_path(text, (size_t)length, path))
        return "which has no link back";
    size_t used = strlen(path);
    const size_t name = sizeof("/.git") - 1;
    if (used <= name || strcmp(path + used - name, "/.git") != 0)
        return "whose link back names something else";
    path[used - name] = '\0';
    return names_directory(git_dir, path, dir_fd) ? NULL : "whose link back names something else";
}

/* Of a linked worktree: the repository is two directories up, and nowhere else. What `commondir`
 * says is believed only where it says that. */
static const char *find_common(int git_dir, const char *link, uid_t owner,
                               struct worktree *worktree)
{
    autoclose int named = open_directory(git_dir, link);
    autoclose int above = open_directory(git_dir, "..");
    autoclose int common = open_directory(git_dir, "../..");
    char above_path[PATH_LENGTH_MAX + 1];
    if (named < 0 || above < 0 || common < 0 || !same_directory(named, common) ||
        worktree_path_of(above, above_path) < 0 ||
        strcmp(strrchr(above_path, '/'), "/worktrees") != 0)
        return "which is not among the worktrees of its repository";
    if (!is_owned(common, owner) || !worktree_is_git_dir(common))
        return "which is in no repository of yours";
    return worktree_path_of(common, worktree->common) < 0 ? "which cannot be found" : NULL;
}

/* Of a submodule: its own config says where its files are. */
static const char *check_submodule(int git_dir, int dir_fd, uid_t owner, struct worktree *worktree)
{
    autofree char *text = malloc(GITFILE_CONFIG_MAX);
    char path[GITFILE_PATH_SIZE];
    ssize_t length = text ? read_file(git_dir, "config", owner, text, GITFILE_CONFIG_MAX) : -1;
    if (!worktree_is_git_dir(git_dir))
        return "which is not a repository";
    if (length <= 0 || !gitfile_parse_worktree(text, (size_t)length, path))
        return "which has no link back";
    if (!names_directory(git_dir, path, dir_fd))
        return "whose core.worktree names something else";
    memcpy(worktree->common, worktree->git_dir, sizeof worktree->common);
    return NULL;
}

static const char *check_git_dir(int git_dir, int dir_fd, uid_t owner, struct worktree *worktree)
{
    char text[GITFILE_LINK_MAX], link[GITFILE_PATH_SIZE];
    if (worktree_path_of(git_dir, worktree->git_dir) < 0)
        return "which cannot be found";
    if (!is_owned(git_dir, owner))
        return "which is not yours";
    ssize_t length = read_file(git_dir, "commondir", owner, text, sizeof text);
    if (length < 0 || (length > 0 && !gitfile_parse_path(text, (size_t)length, link)))
        return "whose commondir cannot be read";
    if (length == 0 || strcmp(link, ".") == 0) /* "." is what protect.c puts there */
        return check_submodule(git_dir, dir_fd, owner, worktree);
    const char *why = check_back_link(git_dir, dir_fd, owner);
    return why ? why : find_common(git_dir, link, owner, worktree);
}

void worktree_find(int dir_fd, uid_t owner, struct worktree *ret_worktree)
{
    struct worktree *worktree = ret_worktree;
    *worktree = (struct worktree){.kind = WORKTREE_NONE};
    char text[GITFILE_LINK_MAX], path[GITFILE_PATH_SIZE];
    struct stat info;
    if (fstatat(dir_fd, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
        return;
    worktree->kind = WORKTREE_FOREIGN;
    ssize_t length = read_file(dir_fd, ".git", owner, text, sizeof text);
    if (length <= 0 || !gitfile_parse_gitdir(text, (size_t)length, path)) {
        worktree->why = "which is not as git writes it";
        return;
    }
    autoclose int git_dir = open_directory(dir_fd, path);
    worktree->why =
        git_dir < 0 ? "which cannot be opened" : check_git_dir(git_dir, dir_fd, owner, worktree);
    if (!worktree->why)
        worktree->kind = WORKTREE_LINKED;
}
