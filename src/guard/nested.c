/* SPDX-License-Identifier: MIT */
#include "guard/nested.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/tree.h"
#include "guard/refs.h"
#include "guard/transfer.h"

#define ASIDE_MAX 48

/* ---- finding them ---- */

/* Appends the directories in one directory, except `.git`. Whether it has a `.git` of any type. */
static bool list_one(int fd, const char *path, struct str *todo)
{
    bool found = false;
    autodir DIR *dir = fdopendir(fd);
    const struct dirent *item;
    if (!dir)
        (void)close(fd);
    while (dir && (item = readdir(dir))) {
        const char *name = item->d_name;
        if (strcmp(name, ".git") == 0) {
            found = true;
        } else if ((item->d_type == DT_DIR || item->d_type == DT_UNKNOWN) &&
                   strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            str_concat(todo, path, *path ? "/" : "", name);
            str_append_bytes(todo, "", 1);
        }
    }
    return found;
}

int nested_find(int top, size_t limit, struct str *ret_dirs, struct brig_error *err)
{
    autostr struct str todo = {0};
    size_t count = 0;
    str_append_bytes(&todo, "", 1);
    for (size_t at = 0; at < todo.length && !todo.failed; at += strlen(todo.data + at) + 1) {
        int fd = -1;
        autofree char *path = strdup(todo.data + at); /* the text moves */
        if (!path)
            return brig_fail_nomem(err);
        if (++count > limit)
            return 1;
        /* A directory that cannot be read, or whose path is too long, is one that git cannot enter either. */
        if (path_open_beneath(top, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd,
                              NULL) < 0)
            continue;
        if (list_one(fd, path, &todo) && *path)
            str_append_bytes(ret_dirs, path, strlen(path) + 1);
    }
    return todo.failed || ret_dirs->failed ? brig_fail_nomem(err) : 0;
}

/* Whether `.git` was made or moved here after the run began. */
static bool is_new(int dir, struct timespec since, mode_t *ret_mode)
{
    struct stat info;
    if (fstatat(dir, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *ret_mode = info.st_mode;
    return info.st_ctim.tv_sec > since.tv_sec ||
           (info.st_ctim.tv_sec == since.tv_sec && info.st_ctim.tv_nsec >= since.tv_nsec);
}

/* The text of a small file that a jail has written; false if it is not a regular file. */
static bool read_text(int dir, const char *name, char text[REPO_POINTER_MAX])
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return false;
    ssize_t length = read(fd, text, REPO_POINTER_MAX - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* ---- making them anew ---- */

/* Makes a repository in `dir` from the untrusted git directory `old`, also if its commits cannot be fetched. 1, or
 * 0 if it was no repository. */
static int recreate(const struct nested *nested, int dir, int old, int folder,
                    struct brig_error *err)
{
    struct private_git p;
    int status = private_wrap(folder, old, dir, &p, err);
    if (status < 0)
        return status;
    struct transfer_report report = {0};
    status = private_recreate(nested->git, &p, err);
    if (status > 0 && transfer_finish(nested->git, &p, nested->jail, false, &report, err) < 0)
        status = err ? err->code : BRIG_E_SYSTEM;
    if (report.notes.length > 0)
        str_append(nested->notes, report.notes.data);
    str_done(&report.notes);
    str_done(&report.summary);
    private_done(&p);
    return status;
}

/* Moves the git directory out of the way, makes a new one and deletes the old one. If not everything in it could be
 * fetched, it stays under another name and without HEAD: git outside does not take it for a repository. */
static int make_anew(const struct nested *nested, int dir, int folder, struct brig_error *err)
{
    char aside[ASIDE_MAX];
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "getrandom");
    (void)snprintf(aside, sizeof aside, ".git.brig-%016jx", (uintmax_t)number);
    if (renameat2(dir, ".git", dir, aside, RENAME_NOREPLACE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '.git'");
    autoclose int old = openat(dir, aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int status = old < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '.git'")
                         : recreate(nested, dir, old, folder, err);
    if (old >= 0 && status <= 0 &&
        (status < 0 || faccessat(old, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0)) {
        if (renameat(old, "HEAD", old, "HEAD.jail") < 0 && errno != ENOENT)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s/HEAD'", aside);
        str_appendf(
            nested->notes, "git: a new repository that git cannot read%s%s was renamed to '%s'\n",
            status < 0 ? " as a whole: " : "", status < 0 && err ? err->message : "", aside);
        return 1;
    }
    if (status == 0) { /* it was no repository: git outside does not look at it either */
        if (renameat2(dir, aside, dir, ".git", RENAME_NOREPLACE) < 0)
            status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", aside);
        return status;
    }
    int removed = tree_remove(dir, aside, err);
    return status < 0 ? status : removed < 0 ? removed : 1;
}

/* `.git` is a file that leads to a submodule's directory in a private git directory: what the file says is only
 * looked up there. 1, or 0 if there is none. */
static int make_submodule(const struct nested *nested, int dir, int folder, struct brig_error *err)
{
    char text[REPO_POINTER_MAX];
    const char *modules = read_text(dir, ".git", text) ? strstr(text, "/modules/") : NULL;
    for (size_t i = 0; modules && i < nested->outer_count; i++) {
        autoclose int old = -1;
        if (path_open_beneath(nested->outers[i]->sealed.dir, modules + 1,
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &old, NULL) < 0)
            continue;
        if (unlinkat(dir, ".git", 0) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '.git'");
        int status = recreate(nested, dir, old, folder, err);
        return status < 0 ? status : 1;
    }
    return 0;
}

static int remove_pointer(const struct nested *nested, int dir, const char *path,
                          struct brig_error *err)
{
    if (unlinkat(dir, ".git", 0) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s/.git'", path);
    str_appendf(nested->notes,
                "git: '%s/.git' led to a repository of the jail's own and was removed\n",
                str_shown(path).text);
    return 0;
}

static int treat(const struct nested *nested, const char *path, int folder, struct str *files,
                 struct brig_error *err)
{
    autoclose int dir = -1;
    mode_t mode;
    if (path_open_beneath(nested->top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir, NULL) <
            0 ||
        !is_new(dir, nested->since, &mode))
        return 0;
    if (!S_ISDIR(mode) && !S_ISREG(mode)) /* a link, or what git does not read */
        return remove_pointer(nested, dir, path, err);
    int status = S_ISDIR(mode) ? make_anew(nested, dir, folder, err)
                               : make_submodule(nested, dir, folder, err);
    if (status < 0)
        return brig_wrap(err, status, "the new repository '%s'", str_shown(path).text);
    if (status > 0)
        str_appendf(nested->notes,
                    "git: the new repository '%s' was made anew, without its config and hooks\n",
                    str_shown(path).text);
    else if (S_ISREG(mode))
        str_append_bytes(files, path, strlen(path) + 1);
    return 0;
}

int nested_treat(const struct nested *nested, struct str *ret_files, struct str *ret_dirs,
                 struct brig_error *err)
{
    const struct str *dirs = ret_dirs;
    int status = nested_find(nested->top, NESTED_DIRS_MAX, ret_dirs, err);
    if (status > 0)
        str_appendf(nested->notes,
                    "git: '%s' has too many directories to be searched for new repositories\n",
                    str_shown(nested->top_path).text);
    size_t count = 0;
    for (const char *at = dirs->data; status >= 0 && at && at < dirs->data + dirs->length;
         at += strlen(at) + 1) {
        char name[32];
        if (str_list_has(nested->known, at))
            continue;
        (void)snprintf(name, sizeof name, "nested-%zu", count);
        if (mkdirat(nested->folder, name, 0700) < 0 && errno != EEXIST)
            return brig_fail(err, BRIG_E_SYSTEM, errno,
                             "cannot create a directory in the jail's storage");
        autoclose int own = openat(nested->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        status = own < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno,
                                     "cannot open a directory in the jail's storage")
                         : treat(nested, at, own, ret_files, err);
        if (own >= 0 && faccessat(own, "base", F_OK, 0) == 0)
            count++;
    }
    return status < 0 ? status : 0;
}

/* Whether this is a worktree of one of the repositories that the run began with. */
static bool is_worktree(const struct nested *nested, const struct repo *repo)
{
    for (size_t i = 0; i < nested->outer_count; i++)
        if (repo->kind == REPO_FILE && repo->common_path &&
            str_equal(nested->outers[i]->common_path, repo->common_path))
            return true;
    return false;
}

int nested_check(const struct nested *nested, const struct str *files, uid_t owner,
                 struct brig_error *err)
{
    int status = 0;
    for (const char *at = files->data; status == 0 && at && at < files->data + files->length;
         at += strlen(at) + 1) {
        autoclose int dir = -1;
        struct repo repo = REPO_INIT;
        struct stat info;
        if (path_open_beneath(nested->top, at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir, NULL) <
                0 ||
            fstatat(dir, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(info.st_mode))
            continue;
        status = repo_find(dir, owner, &repo, err);
        if (status == 0 && !is_worktree(nested, &repo))
            status = remove_pointer(nested, dir, at, err);
        repo_done(&repo);
    }
    return status;
}

/* ---- worktrees ---- */

#define WORKTREES_MAX 64

/* Makes a worktree beside the directory, gives its `.git` file to the directory and lets git put the links right.
 * The index then is that of the branch, and the files are as they are. */
static int adopt(const struct git *git, const struct private_git *outer, int dir, const char *path,
                 const char *branch, struct brig_error *err)
{
    char beside[PATH_LENGTH_MAX + 1];
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "getrandom");
    (void)snprintf(beside, sizeof beside, "%s.brig-%016jx", path, (uintmax_t)number);
    const char *const add[] = {"worktree", "add", "-q", "--no-checkout", beside, branch, NULL};
    const char *const repair[] = {"worktree", "repair", path, NULL};
    const char *const reset[] = {"reset", "-q", NULL};
    struct git_call call = {
        .words = add,
        .dir = outer->top,
        .git_dir = outer->git_path,
    };
    int status = git_run(git, &call, err);
    if (status != 0)
        return status;
    autoclose int made = -1;
    if (path_open_beneath(outer->top, beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &made, NULL) <
            0 ||
        renameat(made, ".git", dir, ".git") < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot move the '.git' file of a worktree");
    (void)unlinkat(outer->top, beside, AT_REMOVEDIR);
    call.words = repair;
    status = git_run(git, &call, err);
    if (status == 0)
        status = git_run(git,
                         &(struct git_call){
                             .words = reset,
                             .dir = dir,
                         },
                         err);
    return status;
}

/* One entry of `worktrees` in the private directory; every file in it is untrusted. */
static int treat_worktree(const struct git *git, const struct private_git *outer, int entry,
                          struct str *notes, struct brig_error *err)
{
    char back[REPO_POINTER_MAX], head[REPO_POINTER_MAX];
    size_t length = strlen(outer->top_path);
    autoclose int dir = -1;
    struct stat info;
    if (!read_text(entry, "gitdir", back) || !read_text(entry, "HEAD", head) ||
        !path_is_beneath(outer->top_path, back) || strlen(back) < length + sizeof "/x/.git" - 1 ||
        strcmp(back + strlen(back) - 5, "/.git") != 0)
        return 0;
    back[strlen(back) - 5] = '\0';
    const char *path = back + length + 1;
    if (path_open_beneath(outer->top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir, NULL) <
            0 ||
        fstatat(dir, ".git", &info, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(info.st_mode))
        return 0;
    static const char prefix[] = "ref: ";
    bool branch = strncmp(head, prefix, 5) == 0 && refs_is_safe(head + 5) &&
                  str_starts_with(head + 5, "refs/heads/");
    int status = branch ? adopt(git, outer, dir, path, head + 5 + strlen("refs/heads/"), err) : 1;
    if (status == 0)
        str_appendf(notes, "git: the worktree '%s' was added\n", str_shown(path).text);
    if (status <= 0)
        return status;
    (void)unlinkat(dir, ".git", 0);
    str_appendf(notes,
                "git: '%s' was a worktree in the jail; its files are here, but no worktree\n",
                str_shown(path).text);
    return 0;
}

int nested_worktrees(const struct git *git, const struct private_git *outer, struct str *notes,
                     struct brig_error *err)
{
    autoclose int fd =
        openat(outer->sealed.dir, "worktrees", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autodir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *item;
    if (!dir || !outer->git_path)
        return 0;
    (void)take_fd(&fd);
    int status = 0;
    for (int count = 0; status >= 0 && count < WORKTREES_MAX && (item = readdir(dir)); count++) {
        autoclose int entry =
            openat(dirfd(dir), item->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (item->d_name[0] != '.' && entry >= 0)
            status = treat_worktree(git, outer, entry, notes, err);
    }
    return status;
}
