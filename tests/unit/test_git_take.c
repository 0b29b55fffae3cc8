/* SPDX-License-Identifier: MIT */
/* What a git record lists moves to its new values and back: all of it, or nothing, also after a kill at any system call.
 * All calls in a thorough run; otherwise some, others each time. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/place.h"
#include "base/process.h"
#include "base/record.h"
#include "git/side.h"
#include "git/take.h"
#include "kill_support.h"

static char place[] = "/tmp/brig-take-XXXXXX";
static struct git git;
static int record = -1;

/* Runs a shell script in the temporary directory: its exit status. */
static int shell_status(const char *script)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(place) == 0)
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

/* ---- a record of the difference between two repositories ---- */

static int open_at(const char *path)
{
    char whole[256];
    (void)snprintf(whole, sizeof whole, "%s/%s", place, path);
    return open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void add_values(struct str *text, const char *old, const char *new)
{
    record_add(text, "old", old);
    record_add(text, "new", new);
}

static void add_refs(struct str *text, const struct side *old, const struct side *new)
{
    for (size_t i = 0; i < old->refs.count; i++) {
        const struct ref *ref = &old->refs.items[i];
        if (str_equal(refs_find(&new->refs, ref->name), ref->id))
            continue;
        record_add(text, "ref", ref->name);
        add_values(text, ref->id, refs_find(&new->refs, ref->name));
    }
    for (size_t i = 0; i < new->refs.count; i++) {
        const struct ref *ref = &new->refs.items[i];
        if (refs_find(&old->refs, ref->name))
            continue;
        record_add(text, "ref", ref->name);
        add_values(text, NULL, ref->id);
    }
}

static void add_stashes(struct str *text, const struct side *old, const struct side *new)
{
    const struct side *const sides[] = {old, new};
    record_add(text, "stashes", "all");
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sides[k]->stash_count; i++) {
            autostr struct str line = {0};
            str_concat(&line, sides[k]->stashes[i].id, " ", sides[k]->stashes[i].text);
            record_add(text, k == 0 ? "old" : "new", line.data);
        }
}

/* The hash of the index of a repository, which is copied into the record without being split. */
static void add_index(struct str *text, const char *const dirs[2], int number)
{
    char hashes[2][65];
    for (int k = 0; k < 2; k++) {
        char script[512], path[256];
        struct brig_error err = {0};
        autoclose int dir = open_at(dirs[k]);
        (void)snprintf(script, sizeof script,
                       "[ -e %s/index ] || exit 0; i=$PWD/record/index-%d.%s; cp %s/index $i; "
                       "GIT_INDEX_FILE=$i git --git-dir=%s update-index --no-split-index",
                       dirs[k], number, k == 0 ? "old" : "new", dirs[k], dirs[k]);
        shell(script);
        (void)snprintf(path, sizeof path, "%s/record/index-%d.%s", place, number,
                       k == 0 ? "old" : "new");
        if (git_hash_index(&git, dir, path, hashes[k], &err) < 0)
            tap_bail("index: %s", err.message);
    }
    record_add(text, "index", "entries");
    add_values(text, hashes[0], hashes[1]);
}

static void add_place(struct str *text, const char *key, const char *path)
{
    char whole[256];
    struct place at;
    autoclose int dir = open_at(path);
    (void)snprintf(whole, sizeof whole, "%s/%s", place, path);
    record_add(text, key, whole);
    if (place_of(dir, &at, NULL) < 0)
        tap_bail("no place");
    place_add(text, &at);
}

static void add_tree(struct str *text, const char *old_dir, const char *new_dir, int number,
                     bool whole)
{
    const char *const dirs[] = {old_dir, new_dir};
    struct side sides[2] = {0};
    for (int k = 0; k < 2; k++) {
        autoclose int dir = open_at(dirs[k]);
        if (side_read(&git, &(struct git_call){.git_dir = dir}, &sides[k], NULL) < 0)
            tap_bail("cannot read %s", dirs[k]);
    }
    record_add(text, "tree", old_dir);
    add_place(text, "gitdir", old_dir);
    if (number == 0)
        record_add(text, "private", "private");
    if (whole) {
        add_refs(text, &sides[0], &sides[1]);
        add_stashes(text, &sides[0], &sides[1]);
    }
    record_add(text, "head", "HEAD");
    add_values(text, sides[0].head, sides[1].head);
    add_index(text, dirs, number);
    for (int k = 0; k < 2; k++)
        side_done(&sides[k]);
}

/* The repository `old` is as before, `new` as after a scenario; both have all objects. */
static void make_record(bool worktree)
{
    autostr struct str text = {0};
    if (record >= 0)
        (void)close(record);
    shell("rm -rf record private; mkdir -p record private; cp -r old/.git private/base; "
          "cp -rn new/.git/objects old/.git/");
    record = open_at("record");
    record_add(&text, "version", "1");
    add_place(&text, "repo", "old/.git");
    record_add(&text, "pins", "refs/brig/test/1");
    add_tree(&text, "old/.git", "new/.git", 0, true);
    record_add(&text, "config", "branch.main.remote");
    add_values(&text, NULL, "origin");
    if (worktree)
        add_tree(&text, "old/.git/worktrees/side", "new/.git/worktrees/side", 1, false);
    if (record_write(record, GIT_RECORD, &text, false, NULL) < 0)
        tap_bail("cannot write the record");
}

/* ---- scenarios ---- */

#define BASE                                                                                       \
    "git init -q -b f .; git config user.name x; git config user.email y; echo a >a; : >e; "       \
    "git add a e; git commit -q -m first; "
#define WORK "echo b >b; git add b; git commit -q -m work; echo c >c; git add c; "

static const struct scenario {
    const char *sentence, *before, *change;
    bool worktree;
} scenarios[] = {
    {"a branch becomes a directory of branches, with HEAD", BASE, "git branch -m f/a; " WORK,
     false},
    {"directory and file change places", BASE "git branch d/x; git branch e; git tag t",
     "git branch -D -q d/x e; git branch d; git branch e/y; git tag -d t >/dev/null; " WORK, false},
    {"the first commit of an unborn branch",
     "git init -q -b f .; git config user.name x; git config user.email y",
     "echo a >a; git add a; git commit -q -m first; " WORK, false},
    {"a detached HEAD", BASE "git commit -q --allow-empty -m second",
     "git checkout -q --detach HEAD^; " WORK, false},
    {"a split index", BASE "git update-index --split-index", WORK, false},
    {"intent to add, and flags",
     BASE "echo n >n; git add -N n; git update-index --assume-unchanged a", WORK "git reset -q n",
     false},
    {"a stash is popped and another one pushed",
     BASE
     "echo 1 >a; git stash -q; echo 2 >a; git stash push -q -m second; echo 3 >a; git stash -q",
     "git stash drop -q stash@{1}; git stash pop -q; echo 4 >a; git stash push -q -m fourth; " WORK,
     false},
    {"two worktrees", BASE "git worktree add -q -b side ../side",
     WORK "cd ../newside; echo s >s; git add s; git commit -q -m side; git switch -q -c other; "
          "echo t >t; git add t",
     true},
};

/* What is seen of a repository: all but times and pins. */
#define STATE(dir)                                                                                 \
    "git -C " dir " for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags "        \
    "refs/stash; git -C " dir " symbolic-ref -q HEAD || git -C " dir " rev-parse HEAD; "           \
    "git -C " dir " ls-files -s -v; git -C " dir " diff-files --diff-filter=A --name-only; "       \
    "git -C " dir " stash list; git -C " dir " config --get-all branch.main.remote || :; "
#define STATES(name)                                                                               \
    "{ " STATE("old") "[ ! -d side ] || { " STATE(                                                 \
        "side") "}; } >" name " 2>/dev/null; "                                                     \
                "[ -z \"$(find old/.git -name '*.lock' -o -name 'index.brig')\" ]"

/* Makes the repository before and after a change: in `newside` is the other worktree of `new`. */
static void begin(const struct scenario *scenario)
{
    autostr struct str script = {0};
    str_concat(&script, "rm -rf old new side newside *.state; mkdir old; cd old; ",
               scenario->before,
               "\ncd ..; cp -a old new; [ ! -d side ] || { cp -a side newside; "
               "git -C new worktree repair ../newside >/dev/null 2>&1; }; cd new; ",
               scenario->change);
    shell(script.data);
    /* The contents are those of the jail in any case, as at the end of a run. */
    shell(STATES("before.state"));
    make_record(scenario->worktree);
}

static bool is_as(const char *name)
{
    char script[256];
    shell(STATES("now.state"));
    (void)snprintf(script, sizeof script, "diff now.state %s.state >/dev/null", name);
    return shell_status(script) == 0;
}

static enum git_direction direction;

static int go(enum git_direction towards, struct brig_error *err)
{
    autoclose int storage = open_at(".");
    return git_take(&git, record, storage, towards, err);
}

static void act(void)
{
    struct brig_error err = {0};
    if (go(direction, &err) < 0)
        tap_bail("take: %s", err.message);
}

static void must(enum git_direction towards)
{
    struct brig_error err = {0};
    if (go(towards, &err) < 0)
        tap_fail("it moves: %s", err.message);
}

/* The base of the jail follows, and the repository is sound. */
static bool is_sound(enum git_direction towards)
{
    char script[256];
    (void)snprintf(script, sizeof script,
                   "git -C old fsck --no-dangling >/dev/null 2>&1; "
                   "[ \"$(GIT_OBJECT_DIRECTORY=$PWD/old/.git/objects git --git-dir=private/base "
                   "for-each-ref refs/heads)\" = \"$(git -C %s "
                   "for-each-ref refs/heads)\" ]; "
                   "[ \"$(cat private/base/HEAD)\" = \"$(cat %s/.git/HEAD)\" ]",
                   towards == GIT_TO_NEW ? "new" : "old", towards == GIT_TO_NEW ? "new" : "old");
    return shell_status(script) == 0;
}

static void kills(const struct scenario *scenario)
{
    int bad = 0, killed = 0, rounds = tap_rounds(1, 100000);
    begin(scenario);
    must(GIT_TO_NEW);
    shell(STATES("after.state"));
    tap_ok(!is_as("before"), "%s: it moves", scenario->sentence);
    tap_ok(shell_status("[ \"$(git -C old for-each-ref refs/heads)\" = \"$(git -C new "
                        "for-each-ref refs/heads)\" ] && [ \"$(git -C old ls-files -s)\" = "
                        "\"$(git -C new ls-files -s)\" ] && [ \"$(git -C old stash list)\" = "
                        "\"$(git -C new stash list)\" ]") == 0 &&
               is_sound(GIT_TO_NEW),
           "and is as in the jail");
    must(GIT_TO_OLD);
    tap_ok(is_as("before") && is_sound(GIT_TO_OLD), "and back, exactly");
    for (int k = 0; k < 2; k++) {
        direction = k == 0 ? GIT_TO_NEW : GIT_TO_OLD;
        enum git_direction other = k == 0 ? GIT_TO_OLD : GIT_TO_NEW;
        must(other);
        long calls = run_until(0, act), step = stride(calls, rounds);
        for (long n = 1 + getpid() % step; n <= calls; n += step) {
            must(other);
            killed += run_until(n, act) == 0;
            enum git_direction towards = n % 2 ? direction : other;
            must(towards);
            if (!is_as(towards == GIT_TO_NEW ? "after" : "before") || !is_sound(towards)) {
                tap_diag("killed at system call %ld of %ld, direction %d, then %d", n, calls,
                         direction, towards);
                bad++;
            }
        }
    }
    tap_ok(killed > 0 && bad == 0, "after %d kills it is completed or reverted", killed);
}

/* ---- refusals ---- */

static void refuses(const char *change, const char *says, const char *sentence)
{
    struct brig_error err = {0};
    begin(&scenarios[0]);
    shell(change);
    shell(STATES("before.state"));
    int status = go(GIT_TO_NEW, &err);
    tap_ok(status == BRIG_E_STATE && strstr(err.message, says), "refused: %s", sentence);
    if (!strstr(err.message, says))
        tap_diag("%s", err.message);
    tap_ok(is_as("before"), "and nothing is changed");
}

static void refusals(void)
{
    refuses("git -C old commit -q --allow-empty -m mine", "refs/heads/f has changed",
            "a branch has moved outside");
    refuses("git -C old branch f2; git -C old symbolic-ref HEAD refs/heads/f2", "HEAD of",
            "another branch is checked out");
    refuses("cd old; echo z >z; git add z", "the index of", "something else is staged");
    refuses("cd old; git update-index --assume-unchanged a", "the index of", "a flag was set");
    refuses("cd old; echo z >e; git stash -q", "stashes of", "there is another stash");
    refuses("git -C old worktree add -q --force ../busy f; ", "checked out",
            "another working tree has the branch");
    refuses("touch old/.git/MERGE_HEAD", "goes on", "a merge goes on");
    shell("rm -rf busy");
    refuses("mv old moved; cp -a moved old; rm -rf moved", "not the directory",
            "another directory has the name");
}

/* A lock that is not ours is waited for, and stays. */
static void locks(void)
{
    struct brig_error err = {0};
    begin(&scenarios[0]);
    shell("touch old/.git/index.lock");
    tap_is_int(go(GIT_TO_NEW, &err), BRIG_E_STATE, "a lock is respected");
    tap_ok(strstr(err.message, "another git process works") != NULL, "and named");
    shell("[ -e old/.git/index.lock ]; (sleep 0.2; rm old/.git/index.lock) >/dev/null &");
    must(GIT_TO_NEW);
    tap_ok(shell_status("[ ! -e old/.git/index.lock ]; git -C old rev-parse -q --verify f/a") == 0,
           "and waited for");
}

/* What no branch has any more is kept: nothing else. */
static void pins(void)
{
    begin(&scenarios[0]);
    must(GIT_TO_NEW);
    tap_ok(shell_status("[ -z \"$(git -C old for-each-ref refs/brig)\" ]") == 0,
           "no object is pinned that a branch contains");
    must(GIT_TO_OLD);
    tap_ok(
        shell_status("git -C old for-each-ref --contains $(git -C new rev-parse f/a) refs/brig | "
                     "grep -q refs/brig/test/1/") == 0,
        "what is taken away is");
}

int main(void)
{
    struct brig_error err = {0};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (!mkdtemp(place) || git_find(&git, (const char *const *)environ, NULL,
                                    (struct git_user){(uid_t)-1, (gid_t)-1}, &err) < 0)
        tap_bail("%s", err.message);
    if (!git.program) {
        tap_skip("git is not installed", "git records");
        return tap_done();
    }
    refusals();
    locks();
    pins();
    for (size_t i = 0; i < ARRAY_LENGTH(scenarios); i++)
        kills(&scenarios[i]);
    git_done(&git);
    shell("rm -rf \"$PWD\"");
    return tap_done();
}
