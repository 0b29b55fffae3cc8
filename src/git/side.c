/* SPDX-License-Identifier: MIT */
#include "git/side.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"

#define STASHES_WORD "1000" /* SIDE_STASHES_MAX */

/* ---- one side ---- */

static int side_run(const struct git *git, const struct git_call *how, struct str *out,
                    const char *const *words, struct brig_error *err)
{
    struct git_call call = *how;
    call.words = words;
    call.out = out;
    return git_run(git, &call, err);
}

/* Stores the first line of git's output; "" if git fails. */
static int side_line(const struct git *git, const struct git_call *how, const char *const *words,
                     char ret_line[SIDE_HEAD_MAX], struct brig_error *err)
{
    autostr struct str out = {0};
    int status = side_run(git, how, &out, words, err);
    ret_line[0] = '\0';
    if (status == 0 && out.length > 0)
        (void)snprintf(ret_line, SIDE_HEAD_MAX, "%.*s", (int)strcspn(out.data, "\n"), out.data);
    return status < 0 ? status : 0;
}

int side_read_head(const struct git *git, const struct git_call *how, char ret_head[SIDE_HEAD_MAX],
                   struct brig_error *err)
{
    static const char *const symbolic[] = {"symbolic-ref", "-q", "HEAD", NULL};
    static const char *const detached[] = {"rev-parse", "-q", "--verify", "HEAD", NULL};
    int status = side_line(git, how, symbolic, ret_head, err);
    return status < 0 || ret_head[0] ? status : side_line(git, how, detached, ret_head, err);
}

bool side_read_stash(struct side *side, char *line)
{
    if (!line || !str_starts_with(line, "stash ") || side->stash_count == SIDE_STASHES_MAX)
        return false;
    char *text = line + strlen("stash ");
    const char *id = strsep(&text, " ");
    if (refs_is_id(id))
        side->stashes[side->stash_count++] = (struct side_stash){id, text ? text : ""};
    return true;
}

int side_read(const struct git *git, const struct git_call *how, struct side *side,
              struct brig_error *err)
{
    static const char *const list[] = {"for-each-ref", "--format=" SIDE_REFS, "refs/heads",
                                       "refs/tags",    "refs/notes",          NULL};
    static const char *const reflog[] = {
        "reflog", "show", "-n", STASHES_WORD, "--format=stash %H %gs", "refs/stash", "--", NULL};
    int status = side_run(git, how, &side->text, list, err);
    if (status > 0)
        status = brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot list the refs of a repository");
    if (status == 0)
        status = refs_read(side->text.data, &side->refs, err);
    if (status == 0) /* it fails if there is no stash */
        status = side_run(git, how, &side->stash_text, reflog, err);
    if (status < 0)
        return status;
    char *rest = side->stash_text.data;
    while (side_read_stash(side, strsep(&rest, "\n")))
        ;
    return side_read_head(git, how, side->head, err);
}

int side_find_stash(const struct side *side, const char *id)
{
    for (size_t i = 0; i < side->stash_count; i++)
        if (strcmp(side->stashes[i].id, id) == 0)
            return (int)i;
    return -1;
}

void side_done(struct side *side)
{
    refs_done(&side->refs);
    str_done(&side->text);
    str_done(&side->stash_text);
}

/* ---- working trees ---- */

/* Appends the branch that is rebased or bisected in a git directory. */
static void side_add_rebased(int git_dir, struct str *worktrees)
{
    static const struct {
        const char *name, *prefix;
    } files[] = {{"rebase-merge/head-name", ""},
                 {"rebase-apply/head-name", ""},
                 {"BISECT_START", "refs/heads/"}};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        char name[1100] = "";
        autoclose int fd = openat(git_dir, files[i].name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && read(fd, name, sizeof name - 1) > 0)
            str_appendf(worktrees, "\nbranch %s%.*s\n", files[i].prefix, (int)strcspn(name, "\n"),
                        name);
    }
}

int side_list_worktrees(const struct git *git, int common, struct str *ret_worktrees,
                        struct brig_error *err)
{
    static const char *const words[] = {"worktree", "list", "--porcelain", NULL};
    autodir DIR *dir = files_list(common, "worktrees");
    int status = git_run(
        git, &(struct git_call){.git_dir = common, .words = words, .out = ret_worktrees}, err);
    side_add_rebased(common, ret_worktrees);
    for (const struct dirent *item; dir && (item = files_next(dir));) {
        autoclose int git_dir = files_open_dir(dirfd(dir), item->d_name);
        side_add_rebased(git_dir, ret_worktrees);
    }
    return status < 0 ? status : ret_worktrees->failed ? brig_fail_nomem(err) : 0;
}

size_t side_count_worktrees(const struct str *worktrees, const char *branch)
{
    autostr struct str line = {0};
    size_t count = 0;
    str_concat(&line, "\nbranch ", branch, "\n");
    for (const char *at = line.failed ? NULL : worktrees->data; at && (at = strstr(at, line.data));
         at++)
        count++;
    return count;
}

const char *side_goes_on(int git_dir)
{
    /* As in the script of fetch.c, the first one counts: a rebase can have files of the others, too. */
    static const struct {
        const char *name, *what;
    } files[] = {{"rebase-merge", "rebase"},
                 {"rebase-apply", "rebase"},
                 {"CHERRY_PICK_HEAD", "cherry-pick"},
                 {"REVERT_HEAD", "revert"},
                 {"sequencer", "cherry-pick"},
                 {"MERGE_HEAD", "merge"},
                 {"BISECT_LOG", "bisect"}};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (files_exists(git_dir, files[i].name))
            return files[i].what;
    return NULL;
}
