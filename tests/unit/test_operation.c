/* SPDX-License-Identifier: MIT */
/* Operations: apply, discard, undo and what an interruption leaves, with upper directories made by hand. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/files.h"
#include "base/str.h"
#include "base/tree.h"
#include "changes/end.h"
#include "changes/layer/change.h"
#include "changes/layer/layer.h"
#include "changes/operation/apply.h"
#include "changes/operation/operation.h"
#include "changes/show/risk.h"
#include "changes_support.h"
#include "tap.h"

#define SMALL "size=1m"

static char far_top[64];
static struct layers layers;

/* ---- making trees ---- */

static void reopen(void)
{
    struct brig_error err = {0};
    layers_done(&layers);
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0 || layers.count != 1)
        tap_bail("no layer: %s", err.message);
}

static void begin_in(const char *where)
{
    layers_done(&layers);
    (void)tree_remove(AT_FDCWD, far_top, NULL);
    if (where == far_top && mkdir(far_top, 0700) < 0)
        tap_bail("cannot make '%s': %s", far_top, strerror(errno));
    (void)snprintf(root, sizeof root, "%s/root", where);
    begin_trees();
}

/* A change of each kind. */
static void make_changes(void)
{
    put(root, "modified", "old");
    put(root, "deleted", "old");
    make_dir(root, "gone");
    make_dir(root, "gone/deep");
    put(root, "gone/deep/file", "old");
    put(root, "file-dir", "old");
    make_dir(root, "dir-file");
    put(root, "dir-file/inside", "old");
    make_dir(root, "replaced");
    put(root, "replaced/old", "old");
    put(root, "mode", "same");
    make_dir(root, "same");
    put(root, "same/file", "old");
    put(upper, "modified", "new");
    make_whiteout(upper, "deleted");
    make_whiteout(upper, "gone");
    make_dir(upper, "file-dir");
    put(upper, "file-dir/in", "new");
    put(upper, "dir-file", "new");
    make_opaque(upper, "replaced");
    put(upper, "replaced/new", "new");
    put(upper, "mode", "same");
    (void)chmod(join(upper, "mode"), 0700);
    make_dir(upper, "added");
    put(upper, "added/one", "linked");
    if (link(join(upper, "added/one"), join(upper, "added/two")) < 0)
        tap_bail("cannot link");
    (void)chmod(join(upper, "added"), 0555);
    make_dir(upper, "same");
    put(upper, "same/file", "new");
    reopen();
}

/* ---- looking ---- */

/* Every path with type, mode, number of links and contents. */
static void list_below(struct str *out, const char *place, const char *path, int depth)
{
    char names[64][64];
    size_t count = 0;
    struct stat info;
    autoclose int fd = open(join(place, *path ? path : "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir DIR *dir = fdopendir(dup(fd)); /* lint: functions because it is a test */
    for (const struct dirent *item; dir && (item = readdir(dir)) && count < 64;)
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            (void)snprintf(names[count++], 64, "%s", item->d_name);
    qsort(names, count, sizeof names[0], (int (*)(const void *, const void *))strcmp);
    for (size_t i = 0; i < count; i++) {
        char below[256], text[32] = "";
        (void)snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", names[i]);
        if (fstatat(fd, names[i], &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        autoclose int file =
            S_ISREG(info.st_mode) ? openat(fd, names[i], O_RDONLY | O_CLOEXEC) : -1;
        if (file >= 0 && read(file, text, sizeof text - 1) < 0)
            text[0] = '?';
        str_appendf(out, "%s %o %s%s\n", below, info.st_mode, text,
                    S_ISREG(info.st_mode) && info.st_nlink > 1 ? " linked" : "");
        if (S_ISDIR(info.st_mode) && depth < 8)
            list_below(out, place, below, depth + 1); /* NOLINT(misc-no-recursion): bounded */
    }
}

static char *list(const char *place)
{
    struct str out = {0};
    list_below(&out, place, "", 0);
    char *text = NULL;
    if (str_take(&out, &text, NULL) < 0)
        tap_bail("out of memory");
    return text;
}

static void is_tree(const char *place, const char *wanted, const char *sentence)
{
    autofree char *found = list(place);
    tap_is_str(found, wanted, "%s", sentence);
}

/* ---- operating ---- */

static uint64_t skipped;

static void report(void *context, const char *where, const char *path, const char *reason)
{
    (void)context;
    (void)where;
    tap_diag("skipped %s: %s", path, reason);
    skipped++;
}

static int choose(void *context, const struct change *change, enum apply_choice *choice,
                  const char **reason, struct brig_error *err)
{
    (void)err;
    if (change->conflict && !context) {
        *choice = APPLY_SKIP;
        *reason = change->conflict;
    }
    return 0;
}

typedef int (*planner)(struct operation *, const struct layer *, const struct apply_options *,
                       struct brig_error *);

static int operate(planner plan, const char *path, bool force, struct brig_error *err)
{
    struct operation *operation;
    const struct apply_options options = {.paths = path ? &path : NULL,
                                          .path_count = path ? 1 : 0,
                                          .choose = choose,
                                          .context = force ? &operation : NULL};
    autoclose int lock = layers_lock(&layers, err);
    int status = lock < 0 ? lock
                          : operation_begin(&layers, layers.items[0].record, OPERATION_APPLY,
                                            &operation, err);
    if (status < 0)
        return status;
    status = plan(operation, &layers.items[0], &options, err);
    if (status == 0)
        status = operation_run(operation, report, NULL, err);
    operation_free(operation);
    return status;
}

static void must_operate(planner plan, const char *path, const char *sentence)
{
    struct brig_error err = {0};
    skipped = 0;
    tap_is_int(operate(plan, path, true, &err), 0, "%s %s", sentence, err.message);
    tap_is_int(skipped, 0, "and leaves nothing out");
}

static int undo(uint64_t id, const char *path, bool force, uint64_t *ret_id)
{
    uint64_t undone;
    char whole[512];
    const char *given = whole;
    struct brig_error err = {0};
    (void)snprintf(whole, sizeof whole, "%s/%s", root, path ? path : "");
    const struct operation_undo how = {
        .id = id, .paths = path ? &given : NULL, .path_count = 1, .force = force, .report = report};
    int status = operation_undo(&layers, layers.items[0].record, &how, &undone, ret_id, &err);
    if (status < 0)
        tap_diag("%s", err.message);
    return status;
}

static const char APPLIED[] = "added 40555 \n"
                              "added/one 100644 linked linked\n"
                              "added/two 100644 linked linked\n"
                              "dir-file 100644 new\n"
                              "file-dir 40755 \n"
                              "file-dir/in 100644 new\n"
                              "mode 100700 same\n"
                              "modified 100644 new\n"
                              "replaced 40755 \n"
                              "replaced/new 100644 new\n"
                              "same 40755 \n"
                              "same/file 100644 new\n";

static void applies_and_undoes(const char *where, const char *name)
{
    uint64_t id = 0, again = 0;
    begin_in(where);
    make_changes();
    autofree char *before = list(root);
    autofree char *changes = list(upper);
    tap_diag("%s", name);
    must_operate(apply_plan, NULL, "everything is applied");
    is_tree(root, APPLIED, "the tree is as the jail saw it");
    is_tree(upper, "", "and no changes are left");
    tap_is_int(undo(0, NULL, false, &id), 0, "it is undone");
    is_tree(root, before, "the tree is as before");
    is_tree(upper, changes, "and the changes are back");
    tap_is_int(undo(id, NULL, false, &again), 0, "the undo is undone");
    if (where == top) /* objects that were copied are not hard links any more */
        is_tree(root, APPLIED, "the tree is as the jail saw it");
    is_tree(upper, "", "and no changes are left");
    tap_is_int(undo(0, "modified", false, &id), 0, "one file is undone");
    autofree char *found = list(root);
    tap_has_str(found, "modified 100644 old\n", "it has its old contents");
    tap_has_str(found, "mode 100700 same\n", "others do not change");
    is_tree(upper, "modified 100644 new\n", "and one change is back");
}

#define LINKS 500

/* More than the first table of links has room for. */
static void keeps_many_links(void)
{
    char one[32], other[32], text[16];
    struct stat a, b;
    int wrong = 0;
    begin_in(top);
    for (int i = 0; i < LINKS; i++) {
        (void)snprintf(one, sizeof one, "one/%d", i);
        (void)snprintf(other, sizeof other, "other/%d", LINKS - i);
        (void)snprintf(text, sizeof text, "%d", i);
        put(upper, one, text);
        if ((i == 0 && mkdir(join(upper, "other"), 0755) < 0) ||
            link(join(upper, one), join(upper, other)) < 0)
            tap_bail("cannot make a link: %s", strerror(errno));
    }
    reopen();
    must_operate(apply_plan, NULL, "many hard links are applied");
    for (int i = 0; i < LINKS; i++) {
        (void)snprintf(one, sizeof one, "one/%d", i);
        (void)snprintf(other, sizeof other, "other/%d", LINKS - i);
        wrong += stat(join(root, one), &a) < 0 || stat(join(root, other), &b) < 0 ||
                 a.st_ino != b.st_ino || a.st_nlink != 2;
    }
    tap_is_int(wrong, 0, "each name has its file");
}

static void refuses_changed_files(void)
{
    uint64_t id = 0;
    begin_in(top);
    make_changes();
    must_operate(apply_plan, NULL, "everything is applied");
    put(root, "modified", "mine");
    put(root, "deleted", "mine");
    skipped = 0;
    tap_is_int(undo(0, NULL, false, &id), BRIG_E_STATE, "an undo over newer files is refused");
    tap_is_int(skipped, 2, "each is named");
    autofree char *found = list(root);
    tap_has_str(found, "modified 100644 mine\n", "and nothing is changed");
    tap_is_int(operation_interrupted(layers.items[0].record), 0, "no operation is left open");
    tap_is_int(undo(0, "same", false, &id), 0, "other files can be undone");
    tap_is_int(undo(0, NULL, true, &id), 0, "it can be forced");
    autofree char *old = list(root);
    tap_has_str(old, "modified 100644 old\n", "then the old file is back");
    tap_is_int(undo(id, NULL, false, &id), 0, "and undoing that");
    autofree char *again = list(root);
    tap_has_str(again, "modified 100644 mine\n", "brings the newer one back");
}

static void discards(void)
{
    uint64_t id = 0;
    begin_in(top);
    make_changes();
    autofree char *before = list(root);
    autofree char *changes = list(upper);
    must_operate(discard_plan, "modified", "one change is discarded");
    tap_is_int(access(join(upper, "modified"), F_OK), -1, "its entry is gone");
    must_operate(discard_plan, NULL, "everything is discarded");
    is_tree(upper, "", "nothing is left in the upper directory");
    is_tree(root, before, "and the user's files do not change");
    tap_is_int(undo(0, NULL, false, &id), 0, "it is undone");
    tap_is_int(undo(1, NULL, false, &id), 0, "and the first one too");
    is_tree(upper, changes, "the changes are back");
    char value;
    tap_is_int(getxattr(join(upper, "replaced"), "user.overlay.opaque", &value, 1), 1,
               "with the mark of a replaced directory");
}

/* Only some files of new and replaced directories. */
static void applies_parts(void)
{
    begin_in(top);
    make_changes();
    must_operate(apply_plan, "added/one", "a file in a new directory is applied");
    struct stat info;
    tap_ok(stat(join(root, "added"), &info) == 0 && (info.st_mode & 07777) == 0555,
           "its directory is made, with its mode");
    tap_ok(access(join(root, "added/two"), F_OK) < 0, "without the other file");
    must_operate(apply_plan, "replaced/new", "a file in a replaced directory is applied");
    tap_ok(access(join(root, "replaced/old"), F_OK) == 0, "the others stay");
    tap_ok(access(join(upper, "replaced/new"), F_OK) == 0,
           "and its entry, as the directory still hides the user's");
    must_operate(apply_plan, NULL, "then everything is applied");
    autofree char *found = list(root);
    tap_has_str(found, "replaced/new 100644 new\nsame", "the replaced directory is complete");
    char value;
    tap_is_int(getxattr(join(upper, "replaced"), "user.overlay.opaque", &value, 1), -1,
               "and does not hide the user's any more");
}

/* Begins the entry of a run. */
static struct run_entry start_run(const char *text)
{
    struct run_entry entry = RUN_ENTRY_INIT;
    struct brig_error err = {0};
    if (run_begin(layers.items[0].record, NULL, text, &entry, &err) < 0)
        tap_bail("%s", err.message);
    return entry;
}

/* Ends it with these effects; its number, 0: it has none. */
static uint64_t end_run(struct run_entry *entry, enum operation_effect files,
                        enum operation_effect git)
{
    struct run_ended ended;
    struct str notes = {0};
    struct brig_error err = {0};
    entry->info.files = files;
    entry->info.git = git;
    tap_is_int(run_end(entry, NULL, false, &ended, &notes, &err), 0, "a run ends %s", err.message);
    return ended.id;
}

static void records(void)
{
    uint64_t id = 0;
    struct operation_info info;
    begin_in(top);
    make_changes();
    int record = layers.items[0].record;
    struct run_entry entry = start_run("make\ntest");
    entry.info.fields = strdup("{\"exit\":0}");
    id = end_run(&entry, OPERATION_UNKNOWN, OPERATION_NONE);
    tap_is_int(operation_find(record, id, &info, NULL), 0, "a run is recorded, and found");
    tap_is_str(info.text, "make\ntest", "with its text");
    tap_is_str(info.fields, "{\"exit\":0}", "and further facts");
    tap_ok(!info.has_steps && !info.interrupted, "it cannot be undone");
    operation_info_done(&info);
    tap_is_int(undo(id, NULL, false, &id), BRIG_E_STATE, "so an undo is refused");
    tap_is_int(undo(77, NULL, false, &id), BRIG_E_INVALID, "as is one of an unknown operation");
    must_operate(apply_plan, "mode", "a mode is applied");
    tap_is_int(operation_find(record, 2, &info, NULL), 0, "that is an operation");
    tap_ok(info.has_steps && info.changes == 1 && info.end_ns, "with one step");
    operation_info_done(&info);
}

/* Leaves an operation before `done`, as a kill would. */
static void continues_and_aborts(void)
{
    uint64_t id = 0;
    char mark[512];
    for (int revert = 0; revert < 2; revert++) {
        begin_in(top);
        make_changes();
        autofree char *before = list(root);
        autofree char *changes = list(upper);
        int record = layers.items[0].record;
        must_operate(apply_plan, NULL, "everything is applied");
        (void)snprintf(mark, sizeof mark, "%s/x.record/operations/1/done", storage);
        (void)unlink(mark);
        tap_is_int(operation_interrupted(record), 1, "an operation without its end is interrupted");
        struct brig_error err = {0};
        tap_is_int(operate(apply_plan, NULL, true, &err), BRIG_E_STATE, "no other one begins");
        tap_is_int(operation_recover(&layers, record, NULL, revert, report, NULL, &id, &err), 0,
                   "it is %s %s", revert ? "reverted" : "completed", err.message);
        tap_is_int(id, 1, "it was this one");
        is_tree(root, revert ? before : APPLIED, "the tree is right");
        is_tree(upper, revert ? changes : "", "and the upper directory");
        tap_is_int(operation_interrupted(record), 0, "nothing is interrupted any more");
    }
}

/* A run between the interruption and --continue. */
static void keeps_newer_entries(void)
{
    uint64_t id = 0;
    char path[512];
    begin_in(top);
    put(root, "modified", "old");
    put(upper, "modified", "new");
    reopen();
    must_operate(apply_plan, NULL, "a file is applied");
    (void)snprintf(path, sizeof path, "%s/x.record/operations/1/done", storage);
    (void)unlink(path);
    put(upper, "modified", "newer"); /* its entry is in the operation */
    autofree char *changes = list(upper);
    tap_is_int(
        operation_recover(&layers, layers.items[0].record, NULL, false, report, NULL, &id, NULL), 0,
        "it is completed");
    is_tree(upper, changes, "and a later entry stays");
    for (int i = 0; i < 8; i++) { /* as if the kill had come before the entry was moved */
        (void)snprintf(path, sizeof path, "%s/x.record/operations/1/objects/%d.entry", storage, i);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/x.record/operations/1/done", storage);
    (void)unlink(path);
    tap_is_int(
        operation_recover(&layers, layers.items[0].record, NULL, false, report, NULL, &id, NULL), 0,
        "the same before the old one was moved");
    is_tree(upper, changes, "the later entry stays");
}

/* In a filesystem of 1 MiB there is no room for a second copy. */
static void stops_at_a_full_disk(void)
{
    if (geteuid() != 0) {
        tap_skip("only root can mount", "a full disk changes nothing");
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        struct brig_error err = {0};
        begin_in(top);
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", top, "tmpfs", 0, SMALL) < 0)
            _exit(2);
        if (mkdir(root, 0755) < 0 || mkdir(storage, 0700) < 0)
            _exit(3);
        char name[LAYER_NAME_MAX];
        if (layer_number(storage, "x", root, name, NULL) < 0 || mkdir(upper, 0755) < 0)
            _exit(3);
        put(upper, "small", "new");
        put(upper, "large", "");
        if (truncate(join(upper, "large"), 0) < 0)
            _exit(3);
        int fd = open(join(upper, "large"), O_WRONLY | O_CLOEXEC);
        char block[4096] = "x";
        for (int i = 0; i < 160; i++)
            if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
                _exit(3);
        (void)close(fd);
        reopen();
        int status = operate(apply_plan, NULL, true, &err);
        bool right = status == BRIG_E_SYSTEM && err.sys_errno == ENOSPC &&
                     access(join(root, "small"), F_OK) < 0 &&
                     access(join(upper, "small"), F_OK) == 0 &&
                     operation_interrupted(layers.items[0].record) == 0;
        (void)unlink(join(upper, "large"));
        right = right && operate(apply_plan, NULL, true, &err) == 0 &&
                access(join(root, "small"), F_OK) == 0;
        _exit(right ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    tap_is_int(status, 0, "a full disk changes nothing, and with room it works");
}

/* A jail that changes its files after they were judged. */
static int judge(void *context, const struct change *change, enum apply_choice *choice,
                 const char **reason, struct brig_error *err)
{
    (void)context;
    (void)err;
    *reason = risk_find(change);
    *choice = *reason ? APPLY_SKIP : APPLY_TAKE;
    if (strcmp(change->path, "package.json") == 0)
        put(upper, change->path, "{\"scripts\":{\"test\":\"id\"}}");
    if (strcmp(change->path, "link") == 0 &&
        (unlink(join(upper, "link")) < 0 || symlink("/etc/passwd", join(upper, "link")) < 0))
        tap_bail("cannot replace a link");
    return 0;
}

static const char *judge_copy(void *context, const struct change *change)
{
    const char *reason = risk_find(change);
    (void)context;
    skipped += reason != NULL;
    return reason;
}

static void judges_what_it_places(void)
{
    struct operation *operation;
    const struct apply_options options = {.live = true, .choose = judge, .check = judge_copy};
    begin_in(top);
    put(upper, "calm.json", "{\"scripts\":{\"test\":\"id\"}}");
    put(upper, "package.json", "{\"name\":\"x\"}");
    if (symlink("calm.json", join(upper, "link")) < 0 ||
        link(join(upper, "package.json"), join(upper, "same.json")) < 0)
        tap_bail("cannot make links");
    reopen();
    skipped = 0;
    int record = layers.items[0].record;
    tap_is_int(operation_begin(&layers, record, OPERATION_APPLY, &operation, NULL), 0, "it begins");
    tap_is_int(apply_plan(operation, &layers.items[0], &options, NULL), 0, "the steps are planned");
    tap_is_int(operation_run(operation, report, NULL, NULL), 0, "and taken");
    operation_free(operation);
    struct stat info;
    tap_is_int(skipped, 2, "what has become a risk since it was judged is left out");
    tap_ok(lstat(join(root, "package.json"), &info) < 0 && lstat(join(root, "link"), &info) < 0,
           "and does not arrive");
    tap_ok(lstat(join(root, "calm.json"), &info) == 0 && lstat(join(root, "same.json"), &info) == 0,
           "other files do");
}

static void follows_no_link(void)
{
    begin_in(top);
    make_dir(top, "outside");
    make_dir(root, "dir");
    put(root, "dir/file", "old");
    make_dir(upper, "dir");
    put(upper, "dir/file", "new");
    reopen();
    if (rename(join(root, "dir"), join(top, "outside/dir")) < 0 ||
        symlink("../outside/dir", join(root, "dir")) < 0)
        tap_bail("cannot make a link");
    struct brig_error err = {0};
    (void)operate(apply_plan, "dir/file", true, &err);
    char text[8] = "";
    autoclose int fd = open(join(top, "outside/dir/file"), O_RDONLY | O_CLOEXEC);
    tap_ok(read(fd, text, sizeof text - 1) == 3, "a file outside is still there");
    tap_is_str(text, "old", "nothing is written through a link in the user's directory");
}

/* The first change of the layer, as a conflict; "" if it is none. */
static int first_conflict(void *context, const struct change *change, struct brig_error *err)
{
    (void)err;
    *(const char **)context = change->conflict ? change->conflict : "";
    return CHANGE_STOP;
}

static void is_conflict(const char *wanted, const char *sentence)
{
    static const struct change_options all = {0};
    const char *found = "no change";
    (void)changes_walk(&layers.items[0], &all, first_conflict, &found, NULL);
    tap_is_str(found, wanted, "%s", sentence);
}

static void begin_run(void)
{
    struct brig_error err = {0};
    struct layer layer = open_layer();
    if (layer_adopt(&layer, &err) < 0)
        tap_bail("%s", err.message);
    layer_done(&layer);
    reopen();
}

static void knows_its_directory(void)
{
    uint64_t id = 0;
    char name[LAYER_NAME_MAX], old[160];
    begin_in(top);
    put(root, "modified", "old");
    put(upper, "modified", "new");
    reopen();
    must_operate(apply_plan, NULL, "a file is applied");
    put(upper, "added", "new");
    reopen();
    is_conflict("", "a new file is no conflict");
    (void)snprintf(old, sizeof old, "%s-old", root);
    if (rename(root, old) < 0 || mkdir(root, 0755) < 0)
        tap_bail("cannot replace the root");
    put(root, "modified", "new");
    reopen();
    is_conflict(LAYER_REPLACED, "it is one in another directory at the same path");
    tap_is_int(undo(1, NULL, false, &id), BRIG_E_STATE, "what was applied to the old one stays");
    begin_run();
    is_conflict(LAYER_REPLACED, "a run in the new one changes nothing about that");
    must_operate(discard_plan, NULL, "it is discarded");
    begin_run();
    put(upper, "later", "new");
    reopen();
    is_conflict("", "what a later run adds is of the new directory");

    (void)tree_remove(AT_FDCWD, old, NULL);
    must_operate(apply_plan, NULL, "that is applied");
    if (rename(root, old) < 0)
        tap_bail("cannot move the root");
    tap_ok(layer_number(storage, "x", old, name, NULL) == 0 && strcmp(name, "1") == 0,
           "a directory that was moved keeps its layer");
    reopen();
    tap_is_int(undo(0, NULL, false, &id), 0, "and what was applied to it can be undone");
    tap_is_int(access(join(old, "later"), F_OK), -1, "there");
    (void)tree_remove(AT_FDCWD, old, NULL);
}

static void is_file(const char *path, const char *wanted, const char *sentence)
{
    char text[16] = "";
    autoclose int fd = open(join(root, path), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        text[0] = '?';
    tap_is_str(text, wanted, "%s", sentence);
}

/* A run between two operations: the state of the user's files is the base of what it changes. */
static void run_puts(const char *path, const char *text)
{
    struct layer layer = open_layer();
    int run = base_begin(&layer, NULL);
    put(upper, path, text);
    if (run < 0 || base_end(&layer, run, SIZE_MAX, NULL) < 0)
        tap_bail("no run");
    layer_done(&layer);
    reopen();
}

/* The clock of file times is some milliseconds behind: what the user changes at once after an operation could have a time
 * before its end. */
static void await_file_clock(void)
{
    int64_t now = clock_wall_ns();
    while (clock_files_ns() <= now && clock_wall_ns() < now + CLOCK_SECOND_NS)
        ;
}

static void undoes_in_turn(const char *where, const char *name)
{
    uint64_t id = 0;
    begin_in(where);
    tap_diag("%s", name);
    put(root, "f", "0");
    run_puts("f", "1");
    must_operate(apply_plan, NULL, "a change is applied");
    run_puts("f", "2");
    must_operate(apply_plan, NULL, "and the next one to the same file");
    tap_is_int(undo(0, NULL, false, &id), 0, "the second is undone");
    tap_is_int(undo(0, NULL, false, &id), 0,
               "and then the first, as only operations have touched it");
    is_file("f", "0", "the first contents are back");
    tap_is_int(undo(id, NULL, false, &id), 0, "that is undone");
    tap_is_int(undo(0, NULL, false, &id), 0, "and undone again");
    is_file("f", "0", "with the same result");

    /* The twin: the user has touched it in between, with the same size and time. */
    tap_is_int(undo(id, NULL, false, &id), 0, "the first is applied again");
    struct stat info;
    if (stat(join(root, "f"), &info) < 0)
        tap_bail("no file");
    await_file_clock();
    put(root, "f", "u");
    const struct timespec times[] = {info.st_atim, info.st_mtim};
    (void)utimensat(AT_FDCWD, join(root, "f"), times, 0);
    tap_is_int(undo(1, NULL, false, &id), BRIG_E_STATE,
               "what the user has changed is not replaced");
    is_file("f", "u", "and stays");
}

static void undoes_after_an_aborted_undo(void)
{
    uint64_t id = 0;
    char mark[512];
    begin_in(top);
    put(root, "f", "0");
    run_puts("f", "1");
    must_operate(apply_plan, NULL, "a change is applied");
    tap_is_int(undo(0, NULL, false, &id), 0, "and undone");
    (void)snprintf(mark, sizeof mark, "%s/x.record/operations/2/done", storage);
    (void)unlink(mark);
    struct brig_error err = {0};
    tap_is_int(
        operation_recover(&layers, layers.items[0].record, NULL, true, report, NULL, &id, &err), 0,
        "the undo was interrupted, and is reverted %s", err.message);
    tap_is_int(undo(0, NULL, false, &id), 0, "another one is not refused");
    is_file("f", "0", "and works");
}

static void knows_names_of_a_file(void)
{
    uint64_t id = 0;
    begin_in(top);
    put(root, "x", "0");
    if (link(join(root, "x"), join(root, "y")) < 0)
        tap_bail("cannot make a link");
    run_puts("x", "1");
    run_puts("y", "0");
    (void)chmod(join(upper, "y"), 0700);
    reopen();
    must_operate(apply_plan, "x", "one name of a file is applied");
    is_conflict("", "that does not make a conflict of the other one");
    must_operate(apply_plan, NULL, "which is applied, too");
    tap_is_int(undo(0, NULL, false, &id), 0, "it is undone");
    tap_is_int(undo(0, NULL, false, &id), 0, "and the first one");
    struct stat one, other;
    tap_ok(stat(join(root, "x"), &one) == 0 && stat(join(root, "y"), &other) == 0 &&
               one.st_ino == other.st_ino && (one.st_mode & 07777) == 0644,
           "both are one file again");
    must_operate(apply_plan, NULL, "both are applied at once");
    tap_is_int(undo(0, NULL, false, &id), 0, "undone");
    tap_is_int(undo(id, NULL, false, &id), 0, "and applied again");
    is_file("x", "1", "with the new contents");
}

static void keeps_newer_changes(void)
{
    uint64_t id = 0;
    begin_in(top);
    put(root, "f", "0");
    run_puts("f", "1");
    must_operate(apply_plan, NULL, "a change is applied");
    run_puts("f", "2");
    skipped = 0;
    tap_is_int(undo(0, NULL, false, &id), 0,
               "it is undone after the jail has changed the file again");
    tap_is_int(skipped, 0, "nothing is left out");
    is_file("f", "0", "the user's file is back");
    is_tree(upper, "f 100644 2\n", "and the jail's last change stays");
    is_conflict("", "without a conflict");
}

static void drops_equal_copies(void)
{
    begin_in(top);
    put(root, "touched", "same");
    put(root, "link", "");
    put(root, "replaced/file", "same");
    put(root, "gone", "x");
    put(root, "newer", "x");
    run_puts("touched", "same");
    make_whiteout(upper, "gone");
    make_opaque(upper, "replaced");
    put(upper, "replaced/file", "same");
    run_puts("newer", "y");
    (void)unlink(join(root, "gone"));
    put(root, "newer", "y"); /* the user has made the same change */
    reopen();
    struct brig_error err = {0};
    autoclose int lock = layers_lock(&layers, &err);
    tap_ok(lock >= 0, "an operation begins %s", err.message);
    is_tree(upper,
            "newer 100644 y\n"
            "replaced 40755 \n"
            "replaced/file 100644 same\n",
            "copies that change nothing are gone, but not where they replace the user's file");
    close_fd(&lock);
    put(root, "touched", "mine");
    reopen();
    must_operate(apply_plan, NULL, "everything is applied");
    is_file("touched", "mine", "and reverts no later change of the user");
}

static void knows_sockets(void)
{
    begin_in(top);
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || chdir(upper) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        tap_bail("no socket: %s", strerror(errno));
    put(upper, "added", "new");
    reopen();
    skipped = 0;
    tap_is_int(operate(apply_plan, NULL, true, NULL), 0, "what is beside a socket is applied");
    is_tree(root, "added 100644 new\n", "without it");
    is_conflict("", "it is a change");
    must_operate(discard_plan, NULL, "that can be discarded");
    is_tree(upper, "", "then it is gone");
    (void)chdir("/");
}

/* Directories that the jail has closed. */
static void opens_closed_directories(void)
{
    uint64_t id = 0;
    begin_in(top);
    put(root, "closed/file", "old");
    put(root, "replaced/file", "old");
    (void)chmod(join(root, "closed"), 0755);
    (void)chmod(join(root, "replaced"), 0755);
    autofree char *before = list(root);
    put(upper, "closed/file", "new");
    put(upper, "added/file", "new");
    make_opaque(upper, "replaced");
    put(upper, "replaced/deep/file", "new");
    static const char *const names[] = {"closed", "added", "replaced/deep", "replaced"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)chmod(join(upper, names[i]), 0);
    reopen();
    must_operate(apply_plan, NULL, "directories without permissions are applied");
    is_conflict("no change", "nothing is left to be applied");
    tap_is_int(undo(0, NULL, false, &id), 0, "they are undone");
    is_tree(root, before, "the user's directories are open again");
    tap_is_int(undo(id, NULL, false, &id), 0, "and closed by undoing that");
    (void)chmod(join(root, "closed"), 0755);
    tap_is_int(undo(1, NULL, false, &id), 0,
               "a mode that the user has restored is in nobody's way");
    is_tree(root, before, "everything is as before");
}

/* Earlier versions kept the path of a root without its place. */
static void reads_old_roots(void)
{
    char name[LAYER_NAME_MAX], old[160];
    begin_in(top);
    put(storage, "x.review/1.root", root);
    put(upper, "added", "new");
    reopen();
    is_conflict("", "a path alone may be of any directory");
    tap_ok(layer_number(storage, "x", root, name, NULL) == 0 && strcmp(name, "1") == 0,
           "the next run finds it");
    (void)snprintf(old, sizeof old, "%s-old", root);
    if (rename(root, old) < 0 || mkdir(root, 0755) < 0)
        tap_bail("cannot replace the root");
    reopen();
    is_conflict(LAYER_REPLACED, "and has recorded the place");
}

/* ---- the log ---- */

static struct operation_info info_of(uint64_t id)
{
    struct operation_info info = {0};
    if (operation_find(layers.items[0].record, id, &info, NULL) < 0)
        tap_bail("no operation %ju", (uintmax_t)id);
    operation_info_done(&info);
    return info;
}

/* Replaces the info of an operation by one as version 0.2 wrote it. */
static void make_old(uint64_t id, bool done)
{
    static const char old[] = "kind=apply\0text=two\nlines 50%\0files=1\0objects=1\0layer=1";
    char place[256];
    autostr struct str text = {0};
    struct operation_info info = info_of(id);
    (void)snprintf(place, sizeof place, "%s/x.record/operations/%ju", storage, (uintmax_t)id);
    str_append_bytes(&text, old, sizeof old);
    str_appendf(&text, "time=%jd%cend=%jd%croot=", (intmax_t)info.time_ns, 0, (intmax_t)info.end_ns,
                0);
    str_append(&text, root);
    str_append_char(&text, '\0');
    put_bytes(place, "info", text.data, text.length);
    if (!done && unlink(join(place, "done")) < 0)
        tap_bail("not done");
}

static void reads_old_info(void)
{
    autostr struct str text = {0};
    uint64_t id;
    begin_in(top);
    make_changes();
    must_operate(apply_plan, "modified", "a file is applied");
    struct operation_info before = info_of(1);
    make_old(1, true);
    struct operation_info info = info_of(1);
    tap_is_str(info.text, "two\nlines 50%", "an entry of 0.2 is read");
    tap_ok(info.time_ns == before.time_ns && info.end_ns == before.end_ns && info.changes == 1,
           "with its numbers");
    tap_is_int(info.files, OPERATION_LISTED, "and what is known of its files");
    tap_ok(files_read(layers.items[0].record, "operations/1/info", &text) &&
               str_starts_with(text.data, "version 1\n"),
           "it is converted");
    tap_is_str(info_of(1).text, "two\nlines 50%", "and read again");
    tap_is_int(undo(0, NULL, false, &id), 0, "and undone");
    must_operate(apply_plan, "mode", "another is applied");
    make_old(3, false);
    tap_ok(info_of(3).interrupted && info_of(3).changes == 1, "an interrupted one is read");
    text.length = 0;
    tap_ok(files_read(layers.items[0].record, "operations/3/info", &text) &&
               str_starts_with(text.data, "kind="),
           "and left as it is");
}

static int settle_runs(void)
{
    struct str notes = {0};
    return runs_settle(layers.items[0].record, &(struct runs_left){0}, &notes, NULL);
}

static void numbers_runs_at_their_end(void)
{
    struct run_entry first, second;
    begin_in(top);
    make_changes();
    first = start_run("first");
    second = start_run("second");
    tap_is_int((long)end_run(&second, OPERATION_UNKNOWN, OPERATION_NONE), 1,
               "the run that ends first is the first entry");
    tap_is_int((long)end_run(&first, OPERATION_UNKNOWN, OPERATION_NONE), 2, "the other is newer");
    tap_is_str(info_of(2).text, "first", "it has its text");
    first = start_run("nothing");
    tap_is_int((long)end_run(&first, OPERATION_NONE, OPERATION_NONE), 0,
               "a run without any effect is not in the log");
    first = start_run("killed");
    second = start_run("active");
    first.info.files = OPERATION_UNKNOWN;
    tap_is_int(run_save(&first, NULL), 0, "a run says what is true if it is killed");
    (void)close(first.lock);
    (void)close(first.dir);
    tap_is_int(settle_runs(), 0, "killed runs are settled");
    struct operation_info killed = info_of(3);
    tap_is_str(killed.text, "killed", "one gets its number");
    tap_ok(killed.settled_ns > 0 && killed.files == OPERATION_UNKNOWN,
           "and says that it was settled");
    tap_is_int(settle_runs(), 0, "again");
    tap_is_int(operation_find(layers.items[0].record, 4, &killed, NULL), BRIG_E_INVALID,
               "it has one number, and an active run has none");
    tap_is_int((long)end_run(&second, OPERATION_UNKNOWN, OPERATION_NONE), 4,
               "the active one goes on");
}

/* Without a number, an undo means the newest entry that counts. */
static void addresses_the_newest(void)
{
    static const struct {
        enum operation_effect files, git;
        bool counts;
    } rows[] = {{OPERATION_UNKNOWN, OPERATION_NONE, true},
                {OPERATION_NONE, OPERATION_LISTED, true},
                {OPERATION_NONE, OPERATION_UNKNOWN, true}};
    uint64_t id = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        begin_in(top);
        make_changes();
        must_operate(apply_plan, "modified", "a file is applied");
        struct run_entry run = start_run("make");
        (void)end_run(&run, rows[i].files, rows[i].git);
        autofree char *before = list(root);
        tap_is_int(undo(0, NULL, false, &id), BRIG_E_STATE, "a later run is meant, and refused");
        is_tree(root, before, "nothing is touched");
        tap_is_int(undo(1, NULL, false, &id), 0, "the operation before is undone by its number");
    }
    begin_in(top);
    make_changes();
    must_operate(apply_plan, "modified", "a file is applied");
    struct run_entry run = start_run("ls");
    struct run_ended ended;
    struct str notes = {0};
    (void)run_end(&run, NULL, true, &ended, &notes, NULL);
    tap_is_int((long)ended.id, 2, "a run can be kept in the log without an effect");
    run = start_run(".envrc");
    (void)str_fill(run.info.kind, sizeof run.info.kind, OPERATION_HOLD);
    tap_is_int((long)end_run(&run, OPERATION_UNKNOWN, OPERATION_NONE), 3, "something is held back");
    tap_is_int(undo(0, NULL, false, &id), 0, "neither is meant by an undo");
    autofree char *found = list(root);
    tap_has_str(found, "modified 100644 old\n", "but the operation before");
}

/* A path that was not named: a run that could write there is meant, another is not. */
static void addresses_what_is_here(void)
{
    uint64_t undone, id;
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        const char *here = root;
        struct operation_undo how = {
            .paths = &here, .path_count = 1, .here = true, .report = report};
        begin_in(top);
        make_changes();
        must_operate(apply_plan, "modified", "a file is applied");
        struct run_entry run = start_run("make");
        str_list_add(&run.info.roots, elsewhere ? "/usr" : root);
        (void)end_run(&run, OPERATION_UNKNOWN, OPERATION_NONE);
        tap_is_int(operation_undo(&layers, layers.items[0].record, &how, &undone, &id, NULL),
                   elsewhere ? 0 : BRIG_E_STATE, "elsewhere %d", elsewhere);
    }
}

int main(void)
{
    struct stat near, far;
    (void)umask(022);
    name_trees("operation");
    (void)snprintf(far_top, sizeof far_top, "/dev/shm/brig-operation-%d", getpid());
    applies_and_undoes(top, "on one filesystem");
    if (stat(top, &near) == 0 && stat("/dev/shm", &far) == 0 && near.st_dev != far.st_dev)
        applies_and_undoes(far_top, "on two filesystems");
    else
        tap_skip("/dev/shm is not another filesystem", "on two filesystems");
    keeps_many_links();
    refuses_changed_files();
    discards();
    applies_parts();
    records();
    reads_old_info();
    numbers_runs_at_their_end();
    addresses_the_newest();
    addresses_what_is_here();
    continues_and_aborts();
    keeps_newer_entries();
    stops_at_a_full_disk();
    follows_no_link();
    judges_what_it_places();
    undoes_in_turn(top, "on one filesystem");
    if (stat(top, &near) == 0 && stat("/dev/shm", &far) == 0 && near.st_dev != far.st_dev)
        undoes_in_turn(far_top, "on two filesystems");
    undoes_after_an_aborted_undo();
    knows_names_of_a_file();
    keeps_newer_changes();
    drops_equal_copies();
    knows_sockets();
    opens_closed_directories();
    knows_its_directory();
    reads_old_roots();
    layers_done(&layers);
    remove_trees();
    (void)tree_remove(AT_FDCWD, far_top, NULL);
    return tap_done();
}
