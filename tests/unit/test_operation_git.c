/* SPDX-License-Identifier: MIT */
/* An operation that applies files and moves refs: both move or neither does, also after a kill at any system call, in an undo,
 * and where the user has changed something meanwhile. All calls in a thorough run; otherwise some, others each time. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"
#include "base/process.h"
#include "base/record.h"
#include "base/str.h"
#include "changes/operation/apply.h"
#include "changes/operation/operation.h"
#include "changes_support.h"
#include "git/take.h"
#include "kill_support.h"

static struct layers layers;
static struct git git;
static uint64_t skipped;

/* Runs a shell script in the project: its exit status. */
static int shell_status(const char *script)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(root) == 0)
            (void)execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
        _exit(127);
    }
    return process_wait(pid);
}

static void shell(const char *script)
{
    if (shell_status(script) != 0)
        tap_bail("failed: %s", script);
}

static void reopen(void)
{
    struct brig_error err = {0};
    layers_done(&layers);
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0 || layers.count != 1)
        tap_bail("no layer: %s", err.message);
}

/* The project is at the first of two commits, and the jail has made the files of the second. */
static void begin(void)
{
    layers_done(&layers);
    begin_trees();
    shell("git init -q -b main .; git config user.name x; git config user.email y; "
          "printf old >a; printf b >b; git add a b; git commit -q -m first; git branch first; "
          "cp .git/index ../index-0.old; printf new >a; rm b; printf c >c; git add -A; "
          "git commit -q -m second; git branch second; cp .git/index ../index-0.new; "
          "git reset -q --hard first");
    put(upper, "a", "new");
    make_whiteout(upper, "b");
    put(upper, "c", "c");
    reopen();
}

static void read_line(const char *command, char line[256])
{
    char script[512];
    (void)snprintf(script, sizeof script, "cd '%s'; %s", root, command);
    FILE *pipe = popen(script, "re"); /* lint: functions because it is a test */
    if (!pipe || !fgets(line, 256, pipe))
        tap_bail("nothing from %s", command);
    line[strcspn(line, "\n")] = '\0';
    (void)pclose(pipe);
}

static void add_values(struct str *text, const char *key, const char *name, const char *old,
                       const char *new)
{
    record_add(text, key, name);
    record_add(text, "old", old);
    record_add(text, "new", new);
}

static void add_place(struct str *text, const char *key)
{
    struct place place;
    autoclose int dir = open(join(root, ".git"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    record_add(text, key, join(root, ".git"));
    if (place_of(dir, &place, NULL) < 0)
        tap_bail("no place");
    place_add(text, &place);
}

/* From the first commit to the second. */
static void write_record(int dir)
{
    static const char *const names[] = {"index-0.old", "index-0.new"};
    autostr struct str text = {0};
    char old[256], new[256], hashes[2][65], script[512];
    struct brig_error err = {0};
    autoclose int git_dir = open(join(root, ".git"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    read_line("git rev-parse first", old);
    read_line("git rev-parse second", new);
    (void)snprintf(script, sizeof script, "cp ../index-0.* /proc/%d/fd/%d/", (int)getpid(), dir);
    shell(script);
    for (int i = 0; i < 2; i++)
        if (git_hash_index(&git, git_dir, join(top, names[i]), hashes[i], &err) < 0)
            tap_bail("%s", err.message);
    record_add(&text, "version", "1");
    add_place(&text, "repo");
    record_add(&text, "pins", "refs/brig/x/1/before");
    record_add(&text, "tree", root);
    add_place(&text, "gitdir");
    add_values(&text, "ref", "refs/heads/main", old, new);
    add_values(&text, "head", "HEAD", "refs/heads/main", "refs/heads/main");
    add_values(&text, "index", "entries", hashes[0], hashes[1]);
    if (record_write(dir, GIT_RECORD, &text, true, NULL) < 0)
        tap_bail("cannot write the record");
}

static void report(void *context, const char *where, const char *path, const char *reason)
{
    (void)context;
    (void)where;
    (void)path;
    (void)reason;
    skipped++;
}

static int choose(void *context, const struct change *change, enum apply_choice *choice,
                  const char **reason, struct brig_error *err)
{
    (void)context;
    (void)change;
    (void)choice;
    (void)reason;
    (void)err;
    return 0;
}

static struct operation_git with_git = {.git = &git, .storage = -1};
static void (*writes)(int dir);

/* Applies files and git. `between` is a script between the plan and the first step. */
static int operate(const char *between, struct brig_error *err)
{
    struct operation *operation;
    const struct apply_options options = {.choose = choose};
    autoclose int lock = layers_lock(&layers, err);
    int status = lock < 0 ? lock
                          : operation_begin(&layers, layers.items[0].record, OPERATION_APPLY,
                                            &operation, err);
    if (status < 0)
        return status;
    status = apply_plan(operation, &layers.items[0], &options, err);
    writes(operation_use_git(operation, &with_git));
    if (between)
        shell(between);
    if (status == 0)
        status = operation_run(operation, report, NULL, err);
    operation_free(operation);
    return status;
}

static int undo(uint64_t id, uint64_t *ret_id, struct brig_error *err)
{
    uint64_t undone;
    const struct operation_undo how = {.id = id, .report = report, .git = with_git};
    return operation_undo(&layers, layers.items[0].record, &how, &undone, ret_id, err);
}

static void act(void)
{
    struct brig_error err = {0};
    if (operate(NULL, &err) < 0)
        tap_bail("%s", err.message);
}

static void act_undo(void)
{
    struct brig_error err = {0};
    uint64_t id;
    if (undo(1, &id, &err) < 0)
        tap_bail("%s", err.message);
}

/* ---- a repository that the jail has made ---- */

#define FOLDER "../git/review-1"
static char hash_made[65];

/* The project has none; in the storage is one with a commit of its file. */
static void begin_made(void)
{
    struct brig_error err = {0};
    layers_done(&layers);
    begin_trees();
    shell("printf a >a; mkdir -p " FOLDER "/new; git init -q -b main .; git config user.name x; "
          "git config user.email y; git add a; git commit -q -m made; mv .git " FOLDER "/new/");
    put(upper, "c", "c");
    reopen();
    autoclose int git_dir =
        open(join(top, "git/review-1/new/.git"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (git_hash_repository(&git, git_dir, hash_made, &err) < 0)
        tap_bail("%s", err.message);
}

static void write_made(int dir)
{
    autostr struct str text = {0};
    struct place place;
    autoclose int project = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    record_add(&text, "version", "1");
    record_add(&text, "placed", root);
    record_add(&text, "new", hash_made);
    if (place_of(project, &place, NULL) < 0)
        tap_bail("no place");
    place_add(&text, &place);
    record_add(&text, "from", "review-1");
    if (record_write(dir, GIT_RECORD, &text, true, NULL) < 0)
        tap_bail("cannot write the record");
}

/* All of it is at one of the commits, without a difference, and no lock is left. */
static bool is_at(const char *commit)
{
    char script[512];
    if (strcmp(commit, "none") == 0)
        return shell_status("[ ! -e .git ]; [ ! -e c ]; [ -e a ]; cd " FOLDER "/new; git fsck "
                            ">/dev/null 2>&1; [ \"$(git log --format=%s)\" = made ]") == 0;
    if (strcmp(commit, "made") == 0)
        return shell_status(
                   "[ -e c ]; git fsck >/dev/null 2>&1; [ \"$(git log --format=%s)\" = made "
                   "]; [ \"$(git status --porcelain)\" = '?? c' ]; [ ! -e " FOLDER
                   "/new/.git/HEAD ]") == 0;
    (void)snprintf(script, sizeof script,
                   "[ \"$(git rev-parse HEAD)\" = \"$(git rev-parse %s)\" ]; "
                   "[ -z \"$(git status --porcelain)\" ]; git diff --cached --quiet %s; "
                   "[ -z \"$(find .git -name '*.lock' -o -name index.brig)\" ]; "
                   "git fsck --no-dangling >/dev/null 2>&1",
                   commit, commit);
    return shell_status(script) == 0;
}

static void moves_both(void)
{
    struct brig_error err = {0};
    struct operation_info info;
    uint64_t id = 0;
    begin();
    tap_is_int(operate(NULL, &err), 0, "files and git are applied %s", err.message);
    tap_ok(is_at("second"), "and all of it is at the jail's commit");
    tap_is_int(operation_find(layers.items[0].record, 1, &info, NULL), 0, "that is one operation");
    tap_ok(info.git == OPERATION_LISTED && info.files == OPERATION_LISTED, "with both effects");
    tap_has_str(info.did, "moved main from ", "which the log names");
    operation_info_done(&info);
    tap_is_int(undo(0, &id, &err), 0, "it is undone %s", err.message);
    tap_ok(is_at("first"), "and all of it is back");
    tap_is_int(undo(id, &id, &err), 0, "that is undone %s", err.message);
    tap_ok(is_at("second"), "and all of it is at the jail's commit");
    tap_is_int(undo(id, &id, &err), 0, "and that %s", err.message);
    tap_ok(is_at("first"), "and it is back");
}

static void moves_neither(void)
{
    struct brig_error err = {0};
    uint64_t id;
    begin();
    tap_is_int(operate("git commit -q --allow-empty -m mine", &err), BRIG_E_STATE,
               "a commit of the user's meanwhile is not overwritten");
    tap_has_str(err.message, "refs/heads/main has changed", "it is named");
    tap_ok(shell_status("[ -z \"$(git status --porcelain)\" ]; [ ! -e .git/index.lock ]") == 0,
           "no file is applied");
    tap_is_int(operation_interrupted(layers.items[0].record), 0, "and nothing is left to complete");
    begin();
    skipped = 0;
    tap_is_int(operate("printf mine >a", &err), 0, "a file of the user's meanwhile is left");
    tap_is_int(skipped, 1, "and reported");
    tap_ok(shell_status("[ \"$(git rev-parse HEAD)\" = \"$(git rev-parse first)\" ]; [ ! -e "
                        ".git/index.lock ]; [ \"$(cat a)\" = mine ]") == 0,
           "then git stays as it is");
    begin();
    act();
    shell("git commit -q --allow-empty -m mine");
    tap_is_int(undo(1, &id, &err), BRIG_E_STATE, "an undo after a commit of the user's is refused");
    tap_ok(shell_status("[ -z \"$(git status --porcelain)\" ]; [ ! -e .git/index.lock ]; "
                        "[ \"$(git log --format=%s -1)\" = mine ]") == 0,
           "and changes nothing");
}

/* What is done, and where that ends. */
static void kills(void (*does)(void), void (*prepare)(void), const char *from, const char *to,
                  const char *sentence)
{
    int bad = 0, killed = 0, rounds = tap_rounds(12, 100000);
    prepare();
    long calls = run_until(0, does), step = stride(calls, rounds);
    tap_ok(is_at(to), "%s moves both", sentence);
    for (long n = 1 + getpid() % step; n <= calls; n += step) {
        struct brig_error err = {0};
        uint64_t id = 0;
        bool revert = n % 2;
        prepare();
        killed += run_until(n, does) == 0;
        reopen();
        int status = operation_recover(&layers, layers.items[0].record, &with_git, revert, report,
                                       NULL, &id, &err);
        const char *wanted = is_at(from) && (revert || id == 0) ? from : to;
        if (status < 0 || !is_at(wanted) || (revert && id > 0 && wanted == to)) {
            tap_diag("killed at system call %ld of %ld, then %s: %s", n, calls,
                     revert ? "reverted" : "completed", err.message);
            bad++;
        }
    }
    tap_ok(killed > 0 && bad == 0, "after %d kills of %s it is completed or reverted", killed,
           sentence);
}

static void prepare_undo(void)
{
    begin();
    act();
}

static void begin_made_again(void)
{
    (void)close(with_git.storage);
    begin_made();
    with_git.storage = open(join(top, "git"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void prepare_undo_made(void)
{
    begin_made_again();
    act();
}

int main(void)
{
    struct brig_error err = {0};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)umask(022);
    name_trees("operation-git");
    if (git_find(&git, (const char *const *)environ, NULL, GIT_USER_SELF, &err) < 0)
        tap_bail("%s", err.message);
    if (!git.program) {
        tap_skip("git is not installed", "operations with git");
        return tap_done();
    }
    writes = write_record;
    moves_both();
    moves_neither();
    kills(act, begin, "first", "second", "an apply");
    kills(act_undo, prepare_undo, "second", "first", "an undo");
    writes = write_made;
    begin_made();
    with_git.storage = open(join(top, "git"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    kills(act, begin_made_again, "none", "made", "an apply of a new repository");
    kills(act_undo, prepare_undo_made, "made", "none", "its undo");
    (void)close(with_git.storage);
    layers_done(&layers);
    git_done(&git);
    remove_trees();
    return tap_done();
}
