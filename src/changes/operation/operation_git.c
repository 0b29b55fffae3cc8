/* SPDX-License-Identifier: MIT */
/* Git's part of an operation: the git record in its directory. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/record.h"
#include "base/str.h"
#include "changes/operation/operation_files.h"
#include "git/git.h"
#include "git/take.h"

int operation_use_git(struct operation *operation, const struct operation_git *git)
{
    operation->git = *git;
    return operation->dir;
}

bool operation_has_git(const struct operation *operation)
{
    return files_exists(operation->dir, GIT_RECORD);
}

static void git_note(const struct operation *operation, const char *before, const char *why)
{
    if (operation->git.notes)
        str_concat(operation->git.notes, "git: ", before, why, "\n");
}

int operation_git_begin(struct operation *operation, bool revert, struct brig_error *err)
{
    const struct git *git = operation->git.git;
    struct brig_error why = {0};
    if (operation->taking || !operation_has_git(operation))
        return 0;
    int status = git && git->program
                     ? git_taking_begin(git, operation->dir, operation->git.storage,
                                        revert ? GIT_TO_OLD : GIT_TO_NEW, &operation->taking, &why)
                     : brig_fail(&why, BRIG_E_SETUP, 0,
                                 "operation %ju moves branches too, and git is not installed",
                                 (uintmax_t)operation->info.id);
    if (status == 0)
        return 0;
    if (revert) {
        git_note(operation, "refs and index stay as they are: ", why.message);
        return 1;
    }
    if (err)
        *err = why;
    return status;
}

/* Files were left out that the commits have: git outside would show them as changes of the user's. */
static void git_drop(struct operation *operation)
{
    git_taking_end(take_ptr(&operation->taking));
    (void)unlinkat(operation->dir, GIT_RECORD, 0);
    operation->info.git = OPERATION_NONE;
    operation->info.did[0] = '\0';
    git_note(operation, "", "nothing was moved, because not all files could be written");
}

int operation_git_move(struct operation *operation, bool revert, bool skipped,
                       struct brig_error *err)
{
    if (!operation->taking)
        return 0;
    if (skipped && !revert && !git_taking_again(operation->taking)) {
        git_drop(operation);
        return 0;
    }
    int status = git_taking_move(operation->taking, err);
    git_taking_end(take_ptr(&operation->taking));
    return status;
}

int operation_git_reverse(struct operation *operation, uint64_t id, const struct operation_git *git,
                          struct brig_error *err)
{
    struct brig_error why = {0};
    const struct str_number name = str_number(id);
    autofree char *path = NULL;
    int status = str_make(&path, err, "../", name.text);
    if (status < 0)
        return status;
    autoclose int from = files_open_dir(operation->dir, path);
    if (from < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open operation %s", name.text);
    (void)operation_use_git(operation, git);
    status = git_record_reverse(from, name.text, operation->dir, &why);
    if (status == BRIG_E_STATE) {
        git_note(operation, "refs and index stay as they are: ", why.message);
        return 0;
    }
    return status < 0 ? brig_fail(err, status, 0, "%s", why.message) : 0;
}
