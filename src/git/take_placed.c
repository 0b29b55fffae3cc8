/* SPDX-License-Identifier: MIT */
/* New repositories, which are put into a working tree as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "git/private.h"
#include "git/taking.h"

/* ---- new repositories ---- */

static int hash_file(int dir, const char *name, struct sha256 *hash)
{
    autostr struct str text = {0};
    (void)files_read(dir, name, &text);
    sha256_add(hash, name, strlen(name) + 1);
    sha256_add(hash, text.data ? text.data : "", text.length);
    return text.failed ? BRIG_E_SYSTEM : 0;
}

int git_hash_repository(const struct git *git, int git_dir, char ret_hash[65],
                        struct brig_error *err)
{
    static const char *const words[] = {"for-each-ref", "--format=%(objectname) %(refname)", NULL};
    static const char *const files[] = {"HEAD", "config", "info/exclude", "info/attributes"};
    autostr struct str refs = {0};
    struct sha256 hash;
    char index[65];
    int status =
        git_run(git, &(struct git_call){.git_dir = git_dir, .words = words, .out = &refs}, err);
    if (status > 0)
        return brig_fail(err, BRIG_E_SYSTEM, 0, "git cannot read the refs of a new repository");
    if (status == 0)
        status = git_hash_index(git, git_dir, NULL, index, err);
    if (status < 0)
        return status;
    sha256_begin(&hash);
    sha256_add(&hash, refs.data ? refs.data : "", refs.length);
    sha256_add(&hash, index, strlen(index));
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (hash_file(git_dir, files[i], &hash) < 0)
            return brig_fail_nomem(err);
    sha256_end(&hash, ret_hash);
    return 0;
}

/* The directory in which it is while it is not placed: in its private folder, or if that is gone beside the record. `make` it,
 * if it is to be put there; -1 if it does not exist. */
static int take_open_aside(const struct git_taking *t, const struct take_placed *placed, bool make)
{
    char name[32];
    (void)snprintf(name, sizeof name, "placed-%zu", (size_t)(placed - t->placed));
    autoclose int folder = t->storage < 0 ? -1 : files_open_dir(t->storage, placed->folder);
    autoclose int above = -1;
    int dir = folder < 0 ? t->copies : folder;
    const char *first = folder < 0 ? name : PRIVATE_NEW;
    if (make)
        (void)mkdirat(dir, first, 0700);
    above = files_open_dir(dir, first);
    if (above >= 0 && make)
        (void)mkdirat(above, ".git", 0700);
    return above < 0 ? -1 : files_open_dir(above, ".git");
}

/* It must be missing, or be as it was put there. */
int take_check_placed(const struct git_taking *t, const struct take_placed *placed,
                      struct brig_error *err)
{
    char hash[65];
    autoclose int aside = take_open_aside(t, placed, false);
    autoclose int git_dir = files_open_dir(placed->top, ".git");
    bool is_aside = aside >= 0 && files_exists(aside, "HEAD");
    if (t->again) /* some of it may be at either place */
        return 0;
    if (is_aside)
        return (git_dir < 0 && !files_exists(placed->top, ".git")) ||
                       (git_dir >= 0 && files_is_empty_dir(git_dir))
                   ? 0
                   : brig_fail(err, BRIG_E_STATE, 0,
                               "a repository that the jail has made cannot be put into '%s', where "
                               "'.git' is not an empty directory",
                               str_shown(placed->path).text);
    int status = git_dir < 0 ? 1 : git_hash_repository(t->git, git_dir, hash, err);
    if (status == 0 && strcmp(hash, placed->hash) == 0)
        return 0;
    return status < 0 ? status
                      : brig_fail(err, BRIG_E_STATE, 0,
                                  "the repository in '%s', which the jail has made, has changed "
                                  "meanwhile",
                                  str_shown(placed->path).text);
}

/* HEAD is last where it comes, and first where it goes: without it git does not take the directory for a repository. */
int take_move_placed(const struct git_taking *t, const struct take_placed *placed,
                     struct brig_error *err)
{
    bool comes = t->towards == GIT_TO_NEW;
    if (comes)
        (void)mkdirat(placed->top, ".git", 0777);
    autoclose int aside = take_open_aside(t, placed, !comes);
    autoclose int git_dir = files_open_dir(placed->top, ".git");
    int from = comes ? aside : git_dir, to = comes ? git_dir : aside;
    if (from < 0)
        return 0; /* it was moved before */
    int status = to < 0 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot open '%s/.git'",
                                    str_shown(placed->path).text)
                        : private_move(from, to, comes, err);
    if (status == 0 && !comes)
        (void)unlinkat(placed->top, ".git", AT_REMOVEDIR);
    return status;
}
