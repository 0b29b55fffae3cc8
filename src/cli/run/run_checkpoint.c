/* SPDX-License-Identifier: MIT */
/* The checkpoint of a run, and its entry in the log. */
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
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/run_changes.h"
#include "changes/end.h"
#include "changes/layer/layer.h"
#include "cli/identity.h"
#include "cli/jails.h"
#include "cli/report.h"
#include "cli/settings/settings.h"
#include "git/guard.h"
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
    int status = checkpoint_take(&place, &root, granted->reviewed ? -1 : checkpoint->entry.dir,
                                 number, &report, err);
    if (status == 0)
        print_report(granted, &report, settings->verbose);
    str_done(&report.left_out);
    return status;
}

/* Begins the entry of the run. What its info says is true if the run is killed. */
static int open_entry(struct run_checkpoint *checkpoint, const struct settings *settings,
                      const struct run_checkpoint_what *what, const struct granted_list *list,
                      struct brig_error *err)
{
    autostr struct str text = {0};
    bool direct = false;
    str_join(&text, what->words);
    if (text.failed)
        return brig_fail_nomem(err);
    checkpoint->record = record_open(settings->storage, settings->jail, err);
    int status = checkpoint->record < 0 ? checkpoint->record
                                        : run_begin(checkpoint->record, guard_name(what->guard),
                                                    text.data, &checkpoint->entry, err);
    if (status < 0)
        return status;
    struct operation_info *info = &checkpoint->entry.info;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].reviewed) {
            direct = true;
            str_list_add(&info->roots, list->items[i].path);
        }
    if (info->roots.failed)
        return brig_fail_nomem(err);
    if (direct)
        info->files = settings->checkpoint ? OPERATION_LISTED : OPERATION_UNKNOWN;
    if (direct && what->guard)
        info->git = OPERATION_UNKNOWN;
    return run_save(&checkpoint->entry, err);
}

static void checkpoint_done(struct run_checkpoint *checkpoint)
{
    git_done(&checkpoint->git);
    run_forget(&checkpoint->entry);
    close_fd(&checkpoint->record);
}

static int take_all(struct run_checkpoint *checkpoint, const struct settings *settings,
                    const struct identity *identity, const struct granted_list *list,
                    struct brig_error *err)
{
    const struct git_user user = {identity->host_uid, identity->host_gid};
    int status =
        git_find(&checkpoint->git, (const char *const *)environ, settings->policy, user, err);
    unsigned number = 0; /* of the directories that the command writes to itself */
    for (size_t i = 0; i < list->count && status == 0; i++) {
        status = take_one(checkpoint, settings, &list->items[i], number, err);
        number += !list->items[i].reviewed;
    }
    return status < 0 && !settings->checkpoint_optional
               ? brig_advise(err, status, "Use --no-checkpoint to run without one")
               : status;
}

/* A run without the checkpoint that it need not have. */
static int go_without(struct run_checkpoint *checkpoint, struct brig_error *err)
{
    struct operation_info *info = &checkpoint->entry.info;
    message_warning("without a checkpoint: %s", err->message);
    *err = (struct brig_error){0};
    run_changes_forget(checkpoint->entry.dir);
    if (info->files == OPERATION_LISTED)
        info->files = OPERATION_UNKNOWN;
    return run_save(&checkpoint->entry, err);
}

/* Whether the storage cannot be written to at all, as in a configuration of root or on a medium: there is no log then. */
static bool run_checkpoint_is_elsewhere(const struct brig_error *err)
{
    return err->sys_errno == EACCES || err->sys_errno == EPERM || err->sys_errno == EROFS;
}

int run_checkpoint_begin(struct run_checkpoint *checkpoint, const struct settings *settings,
                         const struct identity *identity, const struct run_checkpoint_what *what,
                         struct brig_error *err)
{
    __attribute__((cleanup(granted_done))) struct granted_list list = {0};
    identity_enter(identity);
    int status = find_granted(settings->policy, &list, err);
    if (status == 0 && (list.count > 0 || what->has_layers))
        status = open_entry(checkpoint, settings, what, &list, err);
    bool optional = !settings->checkpoint || settings->checkpoint_optional;
    if (status < 0 && optional) {
        if (!run_checkpoint_is_elsewhere(err))
            message_warning("the run will not be in brig log: %s", err->message);
        *err = (struct brig_error){0};
        checkpoint_done(checkpoint);
        status = 0;
    } else if (status == 0 && list.count > 0 && settings->checkpoint) {
        status = take_all(checkpoint, settings, identity, &list, err);
        if (status < 0 && settings->checkpoint_optional)
            status = go_without(checkpoint, err);
    }
    if (status < 0)
        checkpoint_done(checkpoint);
    identity_leave(identity);
    if (status == 0 && list.count == 0 && settings->checkpoint && !settings->checkpoint_optional)
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

void run_checkpoint_end(struct run_checkpoint *checkpoint, struct guard *guard, const char *jail,
                        const struct identity *identity,
                        const struct run_checkpoint_outcome *outcome, struct str *notes)
{
    struct brig_error err = {0};
    struct run_ended ended = {0};
    struct run_entry *entry = &checkpoint->entry;
    identity_enter(identity);
    bool taken = entry->dir >= 0 && run_changes_roots(entry->dir) > 0;
    if (!outcome->started)
        run_forget(entry);
    int status = run_end(entry, guard, outcome->written, &ended, notes, &err);
    uint64_t changed = ended.count.added + ended.count.modified + ended.count.deleted;
    if (status < 0)
        message_warning("%s", err.message);
    else if (changed > 0 && ended.id)
        describe(&ended.count, ended.id, jail, notes);
    if (taken)
        (void)checkpoint_tidy(checkpoint->record, &checkpoint->git, NULL);
    checkpoint_done(checkpoint);
    identity_leave(identity);
}
