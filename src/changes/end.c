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

#define RUN_PREFIX "run-"
#define RUNS_KEPT 500 /* runs of which there is nothing to undo: older ones leave the log */

/* ---- the directory ---- */

static void entry_close(struct run_entry *entry)
{
    operation_info_done(&entry->info);
    close_fd(&entry->lock);
    close_fd(&entry->dir);
}

/* Made under another name: without its lock it would look like the directory of a killed run. */
static int entry_make(struct run_entry *entry, int operations, struct brig_error *err)
{
    char hidden[sizeof entry->info.run + 8];
    int status = files_random_name(RUN_PREFIX, entry->info.run, sizeof entry->info.run, err);
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

int run_begin(int record, const char *text, struct run_entry *ret_entry, struct brig_error *err)
{
    struct run_entry entry = RUN_ENTRY_INIT;
    entry.record = record;
    int status = runs_settle(record, err);
    autoclose int operations = status < 0 ? status : operations_open(record, err);
    if (operations < 0)
        return operations;
    (void)str_fill(entry.info.kind, sizeof entry.info.kind, OPERATION_RUN);
    (void)str_fill(entry.info.text, sizeof entry.info.text, text);
    entry.info.time_ns = clock_wall_ns();
    status = entry_make(&entry, operations, err);
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

/* Removes a run of long ago that cannot be undone: each run has an entry, and each command reads the log. */
static void drop_old(int operations, uint64_t id)
{
    struct operation_info old;
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

int run_end(struct run_entry *entry, bool keep, uint64_t *ret_id, struct brig_error *err)
{
    int status = 0;
    *ret_id = 0;
    if (entry->dir < 0)
        return 0;
    if (!keep && entry->info.files == OPERATION_NONE && entry->info.git == OPERATION_NONE)
        run_forget(entry);
    else
        status = entry_number(entry, ret_id, err);
    entry_close(entry);
    return status;
}

/* ---- killed runs ---- */

/* With the lock of a killed run. What has changed since it was killed counts as its changes. */
static int run_settle(struct run_entry *entry, struct brig_error *err)
{
    struct run_changes_count count;
    bool pending = run_changes_pending(entry->dir);
    int status = pending ? run_changes_record(entry->dir, &count, NULL, err) : 0;
    if (status == 0 && run_changes_roots(entry->dir) == 0 && entry->info.files == OPERATION_LISTED)
        entry->info.files = OPERATION_NONE;
    if (status == 0 && entry->info.files != OPERATION_NONE && !entry->info.end_ns)
        entry->info.settled_ns = clock_wall_ns();
    uint64_t id;
    return status < 0 ? status : run_end(entry, false, &id, err);
}

static int settle_named(int record, int operations, const char *name, struct brig_error *err)
{
    struct run_entry entry = RUN_ENTRY_INIT;
    entry.record = record;
    entry.dir = files_open_dir(operations, name);
    entry.lock = entry.dir < 0 ? -1 : restore_lock_run(entry.dir);
    int status = 0;
    /* The lock may be that of an entry that was numbered meanwhile. */
    if (entry.lock >= 0 && files_exists(operations, name))
        status = operation_read_dir(entry.dir, &entry.info, NULL, err);
    if (status == 0 && entry.lock >= 0 && entry.info.run[0])
        status = run_settle(&entry, err);
    entry_close(&entry);
    return status;
}

int runs_settle(int record, struct brig_error *err)
{
    autoclose int operations = operations_open(record, err);
    autodir DIR *dir = operations < 0 ? NULL : files_list(operations, ".");
    int status = operations < 0 ? operations : 0;
    for (const struct dirent *item; dir && status == 0 && (item = files_next(dir));)
        if (str_starts_with(item->d_name, RUN_PREFIX))
            status = settle_named(record, operations, item->d_name, err);
    (void)holds_settle(record, NULL); /* what cannot be stored now is not in the way */
    return status < 0 ? status : restore_settle(record, err);
}
