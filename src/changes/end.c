/* SPDX-License-Identifier: MIT */
#include "changes/end.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/checkpoint/restore.h"
#include "changes/operation/hold.h"
#include "changes/operation/operation_files.h"
#include "git/guard.h"
#include "git/moved.h"
#include "git/take.h"

#define RUN_PREFIX "run-"
#define COPIES_KEPT 50 /* entries after which a run has no copies of the index any more */
#define RUNS_KEPT 500  /* runs of which there is nothing to undo: older ones leave the log */

/* ---- the directory ---- */

static void entry_close(struct run_entry *entry)
{
    operation_info_done(&entry->info);
    close_fd(&entry->lock);
    close_fd(&entry->dir);
}

/* Made under another name: without its lock it would look like the directory of a killed run. */
static int entry_make(struct run_entry *entry, int operations, const char *name,
                      struct brig_error *err)
{
    char hidden[sizeof entry->info.run + 8];
    int status = name && str_fill(entry->info.run, sizeof entry->info.run, name)
                     ? 0
                     : files_random_name(RUN_PREFIX, entry->info.run, sizeof entry->info.run, err);
    if (status < 0)
        return status;
    (void)snprintf(hidden, sizeof hidden, ".new-%s", entry->info.run);
    if (mkdirat(operations, hidden, 0700) < 0)
        return brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the log of operations");
    entry->dir = files_open_dir(operations, hidden);
    entry->lock = entry->dir < 0 ? -1 : restore_lock_run(entry->dir);
    status = entry->lock < 0
                 ? brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the log of operations")
                 : run_save(entry, err);
    if (status == 0 && renameat(operations, hidden, operations, entry->info.run) < 0)
        status = brig_fail(err, BRIG_E_SYSTEM, errno, "cannot write to the log of operations");
    if (status < 0)
        (void)tree_remove(operations, hidden, NULL);
    return status;
}

int run_save(struct run_entry *entry, struct brig_error *err)
{
    struct operation operation = {.dir = entry->dir, .info = entry->info};
    return operation_write_info(&operation, err);
}

int run_begin(int record, const char *name, const char *text, struct run_entry *ret_entry,
              struct brig_error *err)
{
    struct run_entry entry = RUN_ENTRY_INIT;
    entry.record = record;
    *ret_entry = entry;
    autoclose int operations = operations_open(record, err);
    if (operations < 0)
        return operations;
    (void)str_fill(entry.info.kind, sizeof entry.info.kind, OPERATION_RUN);
    (void)str_fill(entry.info.text, sizeof entry.info.text, text);
    entry.info.time_ns = clock_wall_ns();
    int status = entry_make(&entry, operations, name, err);
    if (status < 0)
        entry_close(&entry);
    else
        *ret_entry = entry;
    return status;
}

void run_forget(struct run_entry *entry)
{
    autoclose int operations = entry->dir < 0 ? -1 : operations_open(entry->record, NULL);
    if (operations >= 0)
        (void)tree_remove(operations, entry->info.run, NULL);
    entry_close(entry);
}

/* ---- the number ---- */

/* The copies of the index of a run that many have followed: its refs have gone on. */
static void drop_copies(int operations, uint64_t id)
{
    struct operation_info old;
    if (id <= COPIES_KEPT ||
        operation_read_info(operations, id - COPIES_KEPT, &old, NULL, NULL) < 0)
        return;
    operation_info_done(&old);
    autoclose int run = files_open_dir(operations, str_number(old.id).text);
    autodir DIR *dir = run < 0 || old.has_steps ? NULL : files_list(run, ".");
    for (const struct dirent *item; dir && (item = files_next(dir));)
        if (str_starts_with(item->d_name, "index-"))
            (void)unlinkat(run, item->d_name, 0);
}

/* Removes a run of long ago that cannot be undone: each run has an entry, and each command reads the log. */
static void drop_old(int operations, uint64_t id)
{
    struct operation_info old;
    drop_copies(operations, id);
    if (id <= RUNS_KEPT || operation_read_info(operations, id - RUNS_KEPT, &old, NULL, NULL) < 0)
        return;
    bool empty = strcmp(old.kind, OPERATION_RUN) == 0 && !old.has_steps && !old.has_checkpoint &&
                 old.git != OPERATION_LISTED;
    operation_info_done(&old);
    if (empty)
        (void)tree_remove(operations, str_number(id - RUNS_KEPT).text, NULL);
}

static int entry_number(struct run_entry *entry, uint64_t *ret_id, struct brig_error *err)
{
    autoclose int operations = operations_open(entry->record, err);
    if (operations < 0)
        return operations;
    entry->info.end_ns = clock_wall_ns();
    entry->info.has_checkpoint = run_changes_roots(entry->dir) > 0;
    int status = run_save(entry, err);
    if (status == 0)
        status = operation_is_durable(&entry->info)
                     ? operation_mark(entry->dir, OPERATION_DONE, NULL, err)
                     : files_write(entry->dir, OPERATION_DONE, "", 0, err);
    if (status == 0)
        status = operation_number(operations, entry->info.run, ret_id, err);
    if (status == 0)
        drop_old(operations, *ret_id);
    return status;
}

/* ---- the end ---- */

/* What the guard's part has moved in the user's repositories. */
static void end_git(struct run_entry *entry, bool failed)
{
    autostr struct str moved = {0};
    int found = moved_read(entry->dir, &moved, NULL);
    entry->info.git = OPERATION_NONE;
    if (found > 0 && moved.length > 0) {
        entry->info.git = OPERATION_LISTED;
        (void)str_fill(entry->info.did, sizeof entry->info.did, moved.data);
    }
    if (failed || found < 0)
        entry->info.git = OPERATION_UNKNOWN;
}

/* What has changed since the checkpoint, and the number. */
static int end_entry(struct run_entry *entry, bool keep, struct run_ended *ended, struct str *notes,
                     struct brig_error *err)
{
    struct operation_info *info = &entry->info;
    bool taken = run_changes_roots(entry->dir) > 0;
    int status = taken ? run_changes_record(entry->dir, &ended->count, notes, err) : 0;
    if (status == 0 && run_changes_roots(entry->dir) == 0 && info->files == OPERATION_LISTED)
        info->files = OPERATION_NONE;
    bool none = info->files == OPERATION_NONE && info->git == OPERATION_NONE;
    if (status == 0 && none && !keep) {
        run_forget(entry);
        return 0;
    }
    int numbered = entry_number(entry, &ended->id, status < 0 ? NULL : err);
    return status < 0 ? status : numbered;
}

int run_end(struct run_entry *entry, struct guard *guard, bool keep, struct run_ended *ret_ended,
            struct str *notes, struct brig_error *err)
{
    bool failed = false, numbered = entry->info.id != 0;
    *ret_ended = (struct run_ended){.id = entry->info.id};
    int status = guard ? guard_finish(guard, entry->dir, &failed, notes, err) : 0;
    if (entry->dir < 0)
        return status;
    if (guard)
        end_git(entry, failed || status < 0);
    int ended = numbered ? run_save(entry, err)
                         : end_entry(entry, keep, ret_ended, notes, status < 0 ? NULL : err);
    entry_close(entry);
    return status < 0 ? status : ended;
}

/* ---- killed runs ---- */

struct settling {
    int record;
    const char *name; /* of the entry that is looked for */
    uint64_t id;
};

static int find_named(void *context, const struct operation_info *info, struct brig_error *err)
{
    struct settling *settling = context;
    (void)err;
    if (strcmp(info->kind, OPERATION_RUN) != 0 || strcmp(info->run, settling->name) != 0)
        return 0;
    settling->id = info->id;
    return 1;
}

/* Opens the entry of a killed run: one that waits for its end, or that has its number because only the guard's part has failed.
 * Its dir is -1 if there is none. */
static int entry_find(struct settling *settling, int operations, const char *name,
                      struct run_entry *entry, struct brig_error *err)
{
    *entry = RUN_ENTRY_INIT;
    entry->record = settling->record;
    entry->dir = files_open_dir(operations, name);
    settling->name = name;
    settling->id = 0;
    if (entry->dir < 0 && operations_each(settling->record, find_named, settling, NULL) > 0)
        entry->dir = restore_open_run(settling->record, settling->id);
    if (entry->dir < 0)
        return 0;
    entry->lock = restore_lock_run(entry->dir);
    int status = operation_read_dir(entry->dir, &entry->info, NULL, err);
    entry->info.id = settling->id;
    /* What has changed since it was killed counts as its changes. */
    if (status == 0 && entry->info.files != OPERATION_NONE && !entry->info.end_ns)
        entry->info.settled_ns = clock_wall_ns();
    if (status < 0)
        entry_close(entry);
    return status;
}

/* What an active run has done so far is an entry of its own. */
static int settle_active(struct settling *settling, struct guard *left, struct str *notes,
                         struct brig_error *err)
{
    struct run_entry entry;
    struct run_ended ended;
    int status =
        run_begin(settling->record, NULL, "what an active run has done in git", &entry, err);
    (void)str_fill(entry.info.kind, sizeof entry.info.kind, OPERATION_SYNC);
    return status < 0 ? status : run_end(&entry, left, false, &ended, notes, err);
}

static int settle_left(void *context, struct guard *left, const char *name, bool active,
                       struct str *notes, struct brig_error *err)
{
    struct settling *settling = context;
    struct run_entry entry;
    struct run_ended ended;
    if (active)
        return settle_active(settling, left, notes, err);
    autoclose int operations = operations_open(settling->record, err);
    int status = operations < 0 ? operations : entry_find(settling, operations, name, &entry, err);
    return status < 0 ? status : run_end(&entry, left, false, &ended, notes, err);
}

/* What brig sync was moving for an active run when it was killed. */
static int settle_git(const struct guard_options *options, struct run_entry *entry,
                      struct brig_error *err)
{
    struct git git = {0};
    if (!options || !files_exists(entry->dir, GIT_RECORD))
        return 0;
    int status = git_find(&git, options->environment, NULL, options->user, err);
    if (status == 0 && git.program && git_was_interrupted(entry->dir))
        (void)git_take(&git, entry->dir, options->storage, GIT_TO_NEW, NULL);
    git_done(&git);
    end_git(entry, false);
    return status;
}

/* A run without private git directories, or whose guard is done. */
static int settle_named(struct settling *settling, int operations, const char *name,
                        const struct guard_options *guard, struct str *notes,
                        struct brig_error *err)
{
    struct run_entry entry;
    struct run_ended ended;
    int status = entry_find(settling, operations, name, &entry, err);
    /* The lock may be that of an entry that was numbered meanwhile. */
    bool dead =
        status == 0 && entry.lock >= 0 && entry.info.run[0] && files_exists(operations, name);
    if (dead)
        status = settle_git(guard, &entry, err);
    if (dead && status == 0)
        status = run_end(&entry, NULL, false, &ended, notes, err);
    entry_close(&entry);
    return status;
}

int runs_settle(int record, const struct runs_left *left, struct str *notes, struct brig_error *err)
{
    struct settling settling = {.record = record};
    const struct guard_left dead = {.which =
                                        GUARD_DEAD | (left->kept ? GUARD_KEPT | GUARD_ACTIVE : 0),
                                    .directories = left->directories,
                                    .visit = settle_left,
                                    .context = &settling};
    int status = left->guard ? guard_each_left(left->guard, &dead, notes, err) : 0;
    (void)holds_settle(record, NULL); /* what cannot be stored now is not in the way */
    if (status < 0 || left->directories)
        return status;
    autoclose int operations = operations_open(record, err);
    autodir DIR *dir = operations < 0 ? NULL : files_list(operations, ".");
    status = operations < 0 ? operations : 0;
    for (const struct dirent *item; dir && status == 0 && (item = files_next(dir));)
        if (str_starts_with(item->d_name, RUN_PREFIX))
            status = settle_named(&settling, operations, item->d_name, left->guard, notes, err);
    return status < 0 ? status : restore_settle(record, err);
}
