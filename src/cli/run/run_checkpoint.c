/* SPDX-License-Identifier: MIT */
/* The checkpoint of a run. */
#include "cli/run/run_checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/restore.h"
#include "changes/checkpoint/run_changes.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settings/settings.h"
#include "policy/policy.h"

/* Most of what an optional checkpoint reads anew: a few seconds. */
#define OPTIONAL_BYTES ((uint64_t)256 << 20)

/* ---- which files ---- */

/* A granted file or directory. */
struct granted {
    const struct policy_grant *grant;
    char path[PATH_LENGTH_MAX + 1]; /* of the directory, or of the file, without links */
    bool is_directory;
    bool reviewed; /* the command writes to a copy of it */
};

struct granted_list {
    struct granted *items;
    size_t count;
};

static void granted_done(struct granted_list *list)
{
    free(list->items);
}

/* Whether the command can write to files of the user there, or to a copy that is reviewed. */
static bool is_writable(const struct policy_grant *grant)
{
    return grant->access == BRIG_READ_WRITE && (grant->fd < 0 || grant->review) && !grant->own;
}

static int add_granted(struct granted_list *list, const struct policy_grant *grant,
                       struct brig_error *err)
{
    struct granted item = {.grant = grant, .reviewed = grant->review};
    struct stat info;
    if (!path_resolve(grant->source, item.path) || stat(item.path, &info) < 0 ||
        (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)))
        return 0;
    item.is_directory = S_ISDIR(info.st_mode);
    if (!array_grow(&list->items, list->count))
        return brig_fail_nomem(err);
    list->items[list->count++] = item;
    return 0;
}

static int compare_granted(const void *a, const void *b)
{
    return strcmp(((const struct granted *)a)->path, ((const struct granted *)b)->path);
}

/* Finds the files and directories that the command can write to, without those in another one. */
static int find_granted(const struct brig_policy *policy, struct granted_list *list,
                        struct brig_error *err)
{
    int status = 0;
    for (size_t i = 0; i < policy->grant_count && status == 0; i++)
        if (is_writable(&policy->grants[i]))
            status = add_granted(list, &policy->grants[i], err);
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, compare_granted);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool inside = false;
        for (size_t j = 0; j < kept && !inside; j++)
            inside = path_is_beneath(list->items[j].path, list->items[i].path);
        if (!inside)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
    if (status == 0 && kept > CHECKPOINT_ROOTS_MAX)
        return brig_fail(err, BRIG_E_INVALID, 0,
                         "a checkpoint of %zu directories is not possible (limit %d)", kept,
                         CHECKPOINT_ROOTS_MAX);
    return status;
}

/* Appends what is hidden below the grant. */
static void find_masked(const struct brig_policy *policy, const struct policy_grant *grant,
                        struct str *masked)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const char *rest = policy->grants[i].access == BRIG_MASK
                               ? path_below(grant->dest, policy->grants[i].dest)
                               : NULL;
        if (rest && *rest)
            str_list_add(masked, rest);
    }
}

/* Whether the command has the real git directory, because the guard has put nothing over it. */
static bool has_real_git(const struct brig_policy *policy, const struct policy_grant *grant)
{
    for (size_t i = 0; i < policy->grant_count; i++) {
        const char *rest = path_below(grant->dest, policy->grants[i].dest);
        if (rest && strcmp(rest, ".git") == 0 && policy->grants[i].access != BRIG_MASK)
            return false;
    }
    return true;
}

/* ---- the checkpoint ---- */

static void print_report(const struct granted *granted, struct checkpoint_report *report,
                         bool verbose)
{
    char *rest = report->left_out.data;
    for (char *line; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            message_note("checkpoint of '%s': %s", str_shown(granted->path).text, line);
    if (verbose)
        message_note("checkpoint of '%s': %ju files%s", str_shown(granted->path).text,
                     (uintmax_t)report->files, report->unchanged ? ", unchanged" : "");
}

static int take_one(struct run_checkpoint *checkpoint, const struct settings *settings,
                    const struct granted *granted, unsigned number, struct brig_error *err)
{
    autostr struct str masked = {0};
    struct checkpoint_report report;
    struct checkpoint_place place = {
        .record = checkpoint->record,
        .git = &checkpoint->git,
        .limit_bytes =
            settings->checkpoint_bytes ? settings->checkpoint_bytes : CHECKPOINT_LIMIT_BYTES,
        .most_bytes = settings->checkpoint_optional ? OPTIONAL_BYTES : 0};
    (void)stat(settings->storage, &place.storage);
    find_masked(settings->policy, granted->grant, &masked);
    if (masked.failed)
        return brig_fail_nomem(err);
    char above[PATH_LENGTH_MAX + 1];
    const char *name = strrchr(granted->path, '/') + 1;
    (void)snprintf(above, sizeof above, "%.*s",
                   name > granted->path + 1 ? (int)(name - granted->path - 1) : 1, granted->path);
    const char *path = granted->is_directory ? granted->path : above;
    autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot take a checkpoint of '%s'",
                         str_shown(granted->path).text);
    const struct checkpoint_root root = {
        .path = path,
        .dir = dir,
        .only = granted->is_directory ? NULL : name,
        .with_git = has_real_git(settings->policy, granted->grant),
        .masked = &masked,
    };
    int status = checkpoint_take(&place, &root, granted->reviewed ? -1 : checkpoint->run, number,
                                 &report, err);
    if (status == 0)
        print_report(granted, &report, settings->verbose);
    str_done(&report.left_out);
    return status;
}

/* Logs the run: its directory gets the manifests. */
static int open_run(struct run_checkpoint *checkpoint, const struct settings *settings,
                    const char *const *words, struct brig_error *err)
{
    autostr struct str text = {0};
    str_join(&text, words);
    if (text.failed)
        return brig_fail_nomem(err);
    checkpoint->record = record_open(settings->storage, settings->jail, err);
    if (checkpoint->record < 0)
        return checkpoint->record;
    int status = restore_settle(checkpoint->record, err);
    if (status == 0)
        status = operation_note(checkpoint->record, OPERATION_RUN, text.data, NULL, &checkpoint->id,
                                err);
    if (status < 0)
        return status;
    checkpoint->run = restore_open_run(checkpoint->record, checkpoint->id);
    checkpoint->lock = checkpoint->run < 0 ? -1 : restore_lock_run(checkpoint->run);
    return checkpoint->lock < 0
               ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the log of operations")
               : 0;
}

static void checkpoint_done(struct run_checkpoint *checkpoint)
{
    git_done(&checkpoint->git);
    close_fd(&checkpoint->lock);
    close_fd(&checkpoint->run);
    close_fd(&checkpoint->record);
}

/* Removes the operation of a run that does not start. */
static void forget(struct run_checkpoint *checkpoint)
{
    autoclose int operations =
        checkpoint->run < 0 ? -1
                            : openat(checkpoint->run, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (operations >= 0)
        (void)tree_remove(operations, str_number(checkpoint->id).text, NULL);
    checkpoint_done(checkpoint);
}

static int take_all(struct run_checkpoint *checkpoint, const struct settings *settings,
                    const struct identity *identity, const struct granted_list *list,
                    const char *const *words, struct brig_error *err)
{
    const struct git_user user = {identity->host_uid, identity->host_gid};
    int status =
        git_find(&checkpoint->git, (const char *const *)environ, settings->policy, user, err);
    if (status == 0)
        status = open_run(checkpoint, settings, words, err);
    unsigned number = 0; /* of the directories that the command writes to itself */
    for (size_t i = 0; i < list->count && status == 0; i++) {
        status = take_one(checkpoint, settings, &list->items[i], number, err);
        number += !list->items[i].reviewed;
    }
    if (status < 0) {
        forget(checkpoint);
        if (!settings->checkpoint_optional)
            (void)brig_advise(err, status, "Use --no-checkpoint to run without one");
    }
    return status;
}

int run_checkpoint_begin(struct run_checkpoint *checkpoint, const struct settings *settings,
                         const struct identity *identity, const char *const *words,
                         struct brig_error *err)
{
    if (!settings->checkpoint)
        return 0;
    __attribute__((cleanup(granted_done))) struct granted_list list = {0};
    identity_enter(identity);
    int status = find_granted(settings->policy, &list, err);
    if (status == 0 && list.count > 0)
        status = take_all(checkpoint, settings, identity, &list, words, err);
    identity_leave(identity);
    if (status < 0 && settings->checkpoint_optional) {
        message_warning("without a checkpoint: %s", err->message);
        *err = (struct brig_error){0};
        return 0;
    }
    if (status == 0 && list.count == 0 && !settings->checkpoint_optional)
        message_note("no checkpoint is taken: the command can write to none of your files "
                     "directly");
    return status;
}

/* "2 changed, 1 new, 3 deleted in your files; brig undo 7 restores them" */
static void describe(const struct run_changes_count *count, uint64_t id, const char *jail,
                     struct str *notes)
{
    const struct {
        uint64_t count;
        const char *word;
    } parts[] = {
        {count->modified, " changed"}, {count->added, " new"}, {count->deleted, " deleted"}};
    const char *before = "";
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (parts[i].count > 0) {
            str_concat(notes, before, str_number(parts[i].count).text, parts[i].word);
            before = ", ";
        }
    str_concat(notes, " in your files; brig undo", jails_option(jail).text, " ",
               str_number(id).text, " restores them\n");
}

void run_checkpoint_end(struct run_checkpoint *checkpoint, const char *jail,
                        const struct identity *identity, struct str *notes)
{
    struct brig_error err = {0};
    struct run_changes_count count = {0};
    if (checkpoint->record < 0)
        return;
    identity_enter(identity);
    int status = run_changes_record(checkpoint->run, &count, notes, &err);
    if (status < 0)
        message_warning("%s", err.message);
    else if (count.added + count.modified + count.deleted > 0)
        describe(&count, checkpoint->id, jail, notes);
    (void)checkpoint_tidy(checkpoint->record, &checkpoint->git, NULL);
    checkpoint_done(checkpoint);
    identity_leave(identity);
}
