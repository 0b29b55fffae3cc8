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

#define NESTED_MAX 64
#define LIST_MS 60000
#define ASIDE_MAX 48

/* Whether `.git` was made after the run began. Where the filesystem has no time of birth, the last change of
 * its inode counts. */
static bool is_new(int dir, struct timespec since, mode_t *ret_mode)
{
    struct statx info;
    if (statx(dir, ".git", AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_CTIME | STATX_MODE, &info) < 0)
        return false;
    *ret_mode = info.stx_mode;
    const struct statx_timestamp *made =
        info.stx_mask & STATX_BTIME ? &info.stx_btime : &info.stx_ctime;
    return made->tv_sec > since.tv_sec ||
           (made->tv_sec == since.tv_sec && made->tv_nsec >= since.tv_nsec);
}

/* Moves the git directory out of the way, makes a new one, fetches from the old one and deletes that, also if the
 * fetch fails: git outside must not find it. 1, or 0 if it was no repository. */
static int make_anew(const struct git *git, int dir, const char *jail, int folder,
                     struct str *notes, struct brig_error *err)
{
    char aside[ASIDE_MAX];
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "getrandom");
    (void)snprintf(aside, sizeof aside, ".git.brig-%016jx", (uintmax_t)number);
    if (renameat2(dir, ".git", dir, aside, RENAME_NOREPLACE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '.git'");
    autoclose int old = openat(dir, aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct private_git p;
    int status = old < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '.git'")
                         : private_wrap(folder, old, dir, &p, err);
    if (status == 0) {
        struct transfer_report report = {0};
        status = private_recreate(git, &p, err);
        if (status > 0 && transfer_finish(git, &p, jail, &report, err) < 0)
            status = err ? err->code : BRIG_E_SYSTEM;
        if (report.notes.length > 0)
            str_append(notes, report.notes.data);
        str_done(&report.notes);
        str_done(&report.summary);
        private_done(&p);
    }
    if (status == 0) { /* it was no repository: git outside does not look at it either */
        if (renameat2(dir, aside, dir, ".git", RENAME_NOREPLACE) < 0)
            status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '%s'", aside);
        return status;
    }
    int removed = tree_remove(dir, aside, err);
    return status < 0 ? status : removed < 0 ? removed : 1;
}

static int treat(const struct git *git, int top, const char *path, const char *jail,
                 struct timespec since, int folder, struct str *notes, struct brig_error *err)
{
    autoclose int dir = -1;
    mode_t mode;
    if (path_open_beneath(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &dir, NULL) < 0 ||
        !is_new(dir, since, &mode))
        return 0;
    struct str_shown shown = str_shown(path);
    if (!S_ISDIR(mode)) /* a file that points to a repository: see nested_worktrees() */
        return 0;
    int status = make_anew(git, dir, jail, folder, notes, err);
    if (status <= 0)
        return status < 0 ? brig_wrap(err, status, "the new repository '%s'", shown.text) : 0;
    str_appendf(notes, "git: the new repository '%s' was made anew, without its config and hooks\n",
                shown.text);
    return 0;
}

int nested_treat(const struct git *git, const struct private_git *outer, const char *jail,
                 struct timespec since, int folder, struct str *notes, struct brig_error *err)
{
    static const char *const words[] = {"ls-files", "-o", "-z", NULL};
    autostr struct str list = {0};
    int status = git_run(git,
                         &(struct git_call){.words = words,
                                            .dir = outer->top,
                                            .git_dir = outer->git_path,
                                            .limit_ms = LIST_MS,
                                            .passed = -1,
                                            .out = &list},
                         err);
    if (status < 0) /* as with a tree that is too large to be listed: the rest is transferred */
        str_appendf(notes, "git: '%s' could not be searched for new repositories\n",
                    str_shown(outer->top_path).text);
    size_t count = 0;
    status = 0;
    for (const char *at = list.data; status == 0 && at && at < list.data + list.length;
         at += strlen(at) + 1) {
        size_t length = strlen(at);
        char name[32];
        autoclose int own = -1;
        if (length < 2 || at[length - 1] != '/')
            continue;
        autofree char *path = strndup(at, length - 1);
        (void)snprintf(name, sizeof name, "nested-%zu", count);
        if (!path)
            return brig_fail_nomem(err);
        if (count == NESTED_MAX || (mkdirat(folder, name, 0700) < 0 && errno != EEXIST))
            return brig_fail(err, BRIG_E_INVALID, 0, "there are more than %d new repositories",
                             NESTED_MAX);
        own = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat info;
        if (own >= 0 && fstat(own, &info) == 0)
            status = treat(git, outer->top, path, jail, since, own, notes, err);
        if (faccessat(own, "base", F_OK, 0) == 0)
            count++;
    }
    return status;
}

/* ---- worktrees ---- */

#define WORKTREES_MAX 64

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

/* Makes a worktree beside the directory, gives its `.git` file to the directory and lets git put the links right.
 * The index then is that of the branch, and the files are as they are. */
static int adopt(const struct git *git, const struct private_git *outer, int dir, const char *path,
                 const char *branch, struct brig_error *err)
{
    char beside[PATH_LENGTH_MAX + 1];
    uint64_t number = 0;
    (void)getrandom(&number, sizeof number, 0);
    (void)snprintf(beside, sizeof beside, "%s.brig-%016jx", path, (uintmax_t)number);
    const char *const add[] = {"worktree", "add", "-q", "--no-checkout", beside, branch, NULL};
    const char *const repair[] = {"worktree", "repair", path, NULL};
    const char *const reset[] = {"reset", "-q", NULL};
    struct git_call call = {
        .words = add, .dir = outer->top, .git_dir = outer->git_path, .passed = -1};
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
        status = git_run(git, &(struct git_call){.words = reset, .dir = dir, .passed = -1}, err);
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
