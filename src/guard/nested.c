/* SPDX-License-Identifier: MIT */
#include "guard/nested.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "base/path.h"
#include "base/tree.h"
#include "guard/transfer.h"

#define NESTED_MAX 64
#define LIST_MS 60000
#define ASIDE ".git.brig"

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

/* Moves the git directory out of the way, makes a new one and fetches from the old one. If that fails the
 * new one stays as it is, and the old one is deleted with the run's directory. */
static int make_anew(const struct git *git, int dir, const char *jail, int folder,
                     struct str *notes, struct brig_error *err)
{
    if (renameat2(dir, ".git", dir, ASIDE, RENAME_NOREPLACE) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot rename '.git'");
    autoclose int old = openat(dir, ASIDE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct private_git p;
    int status = old < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '.git'")
                         : private_wrap(folder, old, dir, &p, err);
    if (status == 0) {
        struct transfer_report report = {0};
        status = private_recreate(git, &p, err);
        if (status > 0)
            status = transfer_finish(git, &p, jail, &report, err);
        if (report.notes.length > 0)
            str_append(notes, report.notes.data);
        str_done(&report.notes);
        str_done(&report.summary);
        private_done(&p);
    }
    if (status >= 0)
        status = tree_remove(dir, ASIDE, err);
    return status;
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
    if (!S_ISDIR(mode)) { /* of a worktree or a submodule of the jail's: outside it leads nowhere */
        if (unlinkat(dir, ".git", 0) < 0)
            return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot remove '%s.git'", shown.text);
        str_appendf(
            notes,
            "git: '%s' was a worktree in the jail. Its branch is here; its files are now plain "
            "files\n",
            shown.text);
        return 0;
    }
    int status = make_anew(git, dir, jail, folder, notes, err);
    if (status < 0)
        return brig_wrap(err, status, "the new repository '%s'", shown.text);
    str_appendf(notes, "git: the new repository '%s' was made anew, without its config and hooks\n",
                shown.text);
    return 0;
}

int nested_treat(const struct git *git, const struct private_git *outer, const char *jail,
                 struct timespec since, int folder, struct str *notes, struct brig_error *err)
{
    static const char *const words[] = {"ls-files", "-o", "--directory", "-z", NULL};
    autostr struct str list = {0};
    int status = git_run(git,
                         &(struct git_call){.words = words,
                                            .dir = outer->top,
                                            .git_dir = outer->git_path,
                                            .limit_ms = LIST_MS,
                                            .passed = -1,
                                            .out = &list},
                         err);
    if (status < 0)
        return status;
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
