/* SPDX-License-Identifier: MIT */
/* A checkpoint, and an undo from it, is killed at each of its system calls, and recovered. All of them in a thorough run;
 * otherwise some, others each time. */
#include <glob.h>
#include <sys/prctl.h>

#include "changes/checkpoint/restore.h"
#include "changes/end.h"
#include "changes/layer/layer.h"
#include "changes/operation/operation.h"
#include "checkpoint_support.h"
#include "downgrade.h"
#include "kill_support.h"

/* ---- checkpoints ---- */

static void take_one(void)
{
    struct checkpoint_report report;
    (void)close(take(&report));
}

/* A tree with a file of each kind; the ignored one is cloned. */
#define TREE                                                                                       \
    "cd project; git init -q . 2>/dev/null; echo big/ >.gitignore; mkdir -p d/e empty big; "       \
    "echo a >a; echo b >d/e/b; ln -s a l; chmod 700 empty; chmod 755 d/e/b; "                      \
    "head -c 5000 /dev/urandom >big/x"
#define CHANGE                                                                                     \
    "echo more >>project/a; head -c 5000 /dev/urandom >project/big/x; rm -rf expected; "           \
    "cp -a project expected"
#define EMPTY "cd project; find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +"

/* The next checkpoint is complete, and the store is sound. */
static bool is_recovered(void)
{
    struct checkpoint_report report;
    bool same = is_as_expected();
    autoclose int run = take(&report);
    same = same && (!report.left_out.data || report.left_out.length == 0);
    str_done(&report.left_out);
    shell(EMPTY);
    restore(run);
    return same && is_as_expected() &&
           shell_status("git -C record/store.git fsck --full >/dev/null 2>&1") == 0;
}

/* Opens the directory of a record that this glob names. */
static int open_named(const char *pattern)
{
    char path[PATH_LENGTH_MAX];
    glob_t found;
    (void)snprintf(path, sizeof path, "%s/record/%s", place, pattern);
    if (glob(path, 0, NULL, &found) != 0)
        tap_bail("there is no %s", path);
    int fd = open(found.gl_pathv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    globfree(&found);
    return fd;
}

/* The list with which the next checkpoint is compared. */
static void downgrade_last(void)
{
    autoclose int dir = open_named("checkpoints/*[0-9a-f]");
    downgrade_list(dir, "manifest");
}

static void kills_checkpoints(bool first, bool old, const char *sentence)
{
    int bad = 0, killed = 0, rounds = tap_rounds(8, 100000);
    begin();
    clones = true;
    shell(TREE);
    if (!first)
        take_one();
    shell(CHANGE);
    long calls = run_until(0, take_one), step = stride(calls, rounds);
    for (long n = 1 + getpid() % step; n <= calls; n += step) {
        runs++; /* the child has used the name */
        if (first)
            shell("rm -rf record/*");
        if (old)
            downgrade_last();
        shell(CHANGE);
        killed += run_until(n, take_one) == 0;
        runs++;
        if (!is_recovered()) {
            tap_diag("killed at system call %ld of %ld", n, calls);
            bad++;
        }
    }
    tap_diag("%d kills, %ld system calls", killed, calls);
    tap_ok(killed > 0, "%s is killed", sentence);
    tap_is_int(bad, 0, "after each kill the files are as before and the next one is complete");
}

/* ---- undo ---- */

static uint64_t run_id;
static const struct layers no_layers;

static int undo_operation(uint64_t id, struct brig_error *err)
{
    uint64_t undone, made;
    const struct operation_undo undo = {.id = id, .jail = "x", .git = {.git = &git, .storage = -1}};
    return operation_undo(&no_layers, record, &undo, &undone, &made, err);
}

static void undo_run_of_test(void)
{
    struct brig_error err = {0};
    if (undo_operation(run_id, &err) < 0)
        tap_bail("undo: %s", err.message);
}

/* A run with a checkpoint, in the log, that changes something of each kind. */
static void make_run(void)
{
    char path[PATH_LENGTH_MAX];
    struct checkpoint_report report;
    struct run_changes_count count;
    struct brig_error err = {0};
    begin();
    clones = true;
    shell(TREE);
    shell(CHANGE);
    const struct checkpoint_root what = project(path);
    const struct checkpoint_place at = {.record = record, .git = &git, .limit_bytes = 1000};
    struct run_entry entry;
    struct run_ended ended = {0};
    struct str notes = {0};
    int status = run_begin(record, NULL, "test", &entry, &err);
    if (status == 0)
        status = run_end(&entry, NULL, true, &ended, &notes, &err);
    run_id = ended.id;
    autoclose int run = restore_open_run(record, run_id);
    if (status == 0)
        status = checkpoint_take(&at, &what, run, 0, &report, &err);
    shell(
        "cd project; rm -r d big; echo changed >a; ln -sfn d l; mkdir -p new/er; echo n >new/er/n; "
        "chmod 500 new; chmod 755 empty; rm -rf ../after; cp -a . ../after");
    if (status == 0)
        status = run_changes_record(run, &count, NULL, &err);
    if (status < 0)
        tap_bail("run: %s", err.message);
}

/* As an earlier version has recorded it. */
static void downgrade_run(void)
{
    char name[64];
    (void)snprintf(name, sizeof name, "operations/%ju", (uintmax_t)run_id);
    autoclose int dir = open_named(name);
    downgrade_list(dir, "0.after"); /* all that an undo reads */
    downgrade_info(dir, OPERATION_RUN, "test");
}

static bool is_as_after(void)
{
    return shell_status(LISTING("after") " >one; " LISTING(
               "project") " >other; diff one other >/dev/null && "
                          "diff -r --no-dereference -x .git after project >/dev/null") == 0;
}

static int note_last(void *context, const struct operation_info *info, struct brig_error *err)
{
    (void)err;
    *(struct operation_info *)context = *info;
    return 1;
}

/* Undoes an undo that is complete: the files are as the run has left them. */
static bool go_back(void)
{
    struct operation_info last = {0};
    struct brig_error err = {0};
    if (is_as_after())
        return true;
    (void)operations_each(record, note_last, &last, NULL);
    if (undo_operation(last.id, &err) < 0)
        tap_diag("operation %ju: %s", (uintmax_t)last.id, err.message);
    return is_as_after();
}

/* Completes or reverts what was killed, which is all done or not at all then. */
static bool is_consistent(bool revert)
{
    struct brig_error err = {0};
    uint64_t id = 0;
    if (operation_recover(&no_layers, record, NULL, revert, NULL, NULL, &id, &err) < 0) {
        tap_diag("recover: %s", err.message);
        return false;
    }
    return id == 0 ? is_as_after() || is_as_expected() : revert ? is_as_after() : is_as_expected();
}

static void kills_undo(bool old)
{
    int bad = 0, killed = 0, rounds = tap_rounds(old ? 10 : 20, 100000);
    make_run();
    if (old)
        downgrade_run();
    long calls = run_until(0, undo_run_of_test), step = stride(calls, rounds);
    tap_ok(is_as_expected() && go_back(), "a run is undone, and that is undone");
    for (long n = 1 + getpid() % step; n <= calls; n += step) {
        if (old)
            downgrade_run();
        killed += run_until(n, undo_run_of_test) == 0;
        if (!is_consistent(killed % 2 == 0) || !go_back()) {
            tap_diag("killed at system call %ld of %ld", n, calls);
            bad++;
            make_run();
        }
    }
    tap_diag("%d kills, %ld system calls", killed, calls);
    tap_ok(killed > 0, "an undo from a checkpoint%s is killed",
           old ? " of an earlier version" : "");
    tap_is_int(bad, 0, "after each kill it is completed or reverted");
    undo_run_of_test();
    tap_ok(is_as_expected(), "and can be done once more");
}

int main(void)
{
    struct brig_error err = {0};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* for what a killed child has started */
    if (!mkdtemp(place) || git_find(&git, (const char *const *)environ, NULL,
                                    (struct git_user){(uid_t)-1, (gid_t)-1}, &err) < 0)
        tap_bail("%s", err.message);
    if (!git.program) {
        tap_skip("git is not installed", "checkpoints");
        return tap_done();
    }
    kills_checkpoints(true, false, "a first checkpoint");
    kills_checkpoints(false, false, "a later checkpoint");
    kills_checkpoints(false, true, "a checkpoint after one of an earlier version");
    kills_undo(false);
    kills_undo(true);
    git_done(&git);
    shell("chmod -R u+rwX . && rm -rf \"$PWD\"");
    return tap_done();
}
