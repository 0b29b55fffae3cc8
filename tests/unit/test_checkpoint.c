/* SPDX-License-Identifier: MIT */
/* Checkpoints: what they contain and leave out, what a run changed, and what is restored. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "base/cleanup.h"
#include "base/process.h"
#include "changes/checkpoint/checkpoint.h"
#include "changes/checkpoint/run_changes.h"
#include "checkpoint_support.h"
#include "tap.h"

/* ---- tests ---- */

#define ODD                                                                                        \
    "cd project; git init -q . 2>/dev/null; mkdir -p a/b empty deep/er/est; echo one >a/one; "     \
    "printf 'two\\r\\nlines\\r\\n' >a/crlf; "                                                      \
    "printf '* text=auto eol=lf\\n*.id ident\\n*.f filter=evil\\n' >.gitattributes; "              \
    "git config core.autocrlf true; git config filter.evil.clean 'touch /tmp/evil-filter; cat'; "  \
    "printf '$Id$\\n' >x.id; echo f >x.f; : >nothing; chmod 700 empty; chmod 4755 a/one; "         \
    "chmod 400 a/crlf; ln -s a/one link; ln -s /nonexistent dangling; ln -s a linkdir; "           \
    "printf odd >'new\nline'; printf odd >\"$(printf 'bytes\\377')\"; echo q >'quo\"te'; "         \
    "echo s >'a space '; mkdir 'per%cent' .github; echo g >.github/x; echo g >.gitmodules.x; "     \
    "git init -q nested 2>/dev/null; echo n >nested/file; (cd nested; git add file; "              \
    "git -c user.name=x -c user.email=x@x commit -qm x); echo 'git~1' >'git~1'; "                  \
    "head -c 3000000 /dev/urandom >large"

static void test_whole(void)
{
    struct checkpoint_report report;
    begin();
    shell(ODD);
    shell("cp -a project expected");
    autoclose int run = take(&report);
    tap_is_str(report.left_out.data ? report.left_out.data : "", "", "nothing is left out");
    tap_ok(!report.unchanged && report.files > 20, "a first checkpoint contains all files");
    tap_is_int((long)report.stored, (long)report.files, "which are all stored");
    shell("cd project; find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +");
    restore(run);
    tap_ok(is_as_expected(), "after rm -rf every file, mode, link and empty directory comes back");
    tap_ok(access("/tmp/evil-filter", F_OK) < 0, "no filter was run");
    tap_is_int(
        shell_status(
            "git -C record/store.git fsck --strict --full 2>fsck && ! grep -v ^notice: fsck"),
        0, "the store is sound");
    tap_is_int(shell_status("cd project/nested && git fsck --strict && git log --oneline HEAD"), 0,
               "and so is the nested repository");
}

/* Whether a file is older than a step of the clock for files: before that it is read again. */
static bool is_older(const char *name)
{
    struct stat info;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return fstatat(root, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           (now.tv_sec - info.st_ctim.tv_sec) * 1000000000L + now.tv_nsec - info.st_ctim.tv_nsec >=
               50000000;
}

static void test_unchanged(void)
{
    struct checkpoint_report report;
    begin();
    shell(ODD "; find . -exec touch -h -d '1 hour ago' {} +");
    /* ctime is now: once more, when the clock has passed it. */
    (void)close(take(&report));
    (void)close(take(&report));
    shell("find record -printf '%p %s %T@\n' | sort >one");
    autoclose int run = take(&report);
    tap_ok(report.unchanged, "the checkpoint of an unchanged tree is the last one");
    tap_is_int((long)report.stored, 0, "nothing is read");
    shell("find record -printf '%p %s %T@\n' | sort >other");
    tap_is_int(shell_status("diff one other"), 0, "and nothing is created");
    tap_is_str(told(run), "", "a run without changes has none");
    shell("echo more >>project/a/one");
    autoclose int next = take(&report);
    tap_ok(!report.unchanged, "a changed tree has a new checkpoint");
    tap_is_int((long)report.stored, 1, "for which one file is read");
    tap_is_str(told(next), "", "and which is the new base");
}

static void test_changes(void)
{
    struct checkpoint_report report;
    begin();
    shell("cd project; mkdir d gone kept; echo a >d/a; echo b >gone/b; echo c >c; echo m >mode; "
          "ln -s c l; echo t >type; mkdir turned; echo x >turned/x; echo same >same");
    autoclose int run = take(&report);
    shell("cd project; echo aa >d/a; rm -r gone; echo new >d/new; mkdir more; echo x >more/x; "
          "chmod 600 mode; ln -sfn d l; rm type; mkdir type; rm -r turned; echo f >turned; "
          "chmod 700 kept");
    tap_is_str(told(run),
               "!d/a +d/new -gone -gone/b !kept !l !mode +more +more/x !turned -turned/x !type",
               "added, modified and deleted entries are found in order");
    const struct run_changes_count count = finish(run);
    tap_ok(count.added == 3 && count.deleted == 3 && count.modified == 6, "and counted");
    shell("echo later >project/later");
    tap_ok(!strstr(told(run), "later"), "what comes after the run is not part of it");
}

/* A write in the same tick of the clock, of the same size, is noticed. */
static void test_quick_writes(void)
{
    struct checkpoint_report report;
    begin();
    int missed = 0;
    for (int i = 0; i < 40; i++) {
        int fd = openat(root, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, "one", 3) != 3)
            tap_bail("write");
        autoclose int run = take(&report);
        missed += pwrite(fd, "two", 3, 0) != 3 || strcmp(told(run), "!file") != 0;
        (void)close(fd);
    }
    tap_is_int(missed, 0, "a write right after the checkpoint is always found");
}

static void test_left_out(void)
{
    struct checkpoint_report report;
    begin();
    shell("cd project; git init -q . 2>/dev/null; printf 'big/\nsmall/\n*.o\n' >.gitignore; "
          "mkdir big small nested; head -c 2000 /dev/zero >big/file; echo s >small/s; "
          "echo o >x.o; head -c 1001 /dev/zero >y.o; head -c 5000 /dev/zero >tracked; mkfifo pipe; "
          "git init -q nested 2>/dev/null; echo big >nested/.gitignore; mkdir nested/big; "
          "head -c 2000 /dev/zero >nested/big/file");
    autoclose int run = take(&report);
    tap_is_str(report.left_out.data,
               "left out: big/ (2.0 KiB), nested/big/ (2.0 KiB), y.o (1001 bytes); raise "
               "--checkpoint-size to include ignored files of this size\n"
               "left out: pipe (not a file, link or directory)\n",
               "large ignored files and special ones are left out, and named");
    str_done(&report.left_out);
    shell("cd project; rm -rf big small nested/big x.o y.o pipe tracked");
    tap_is_str(told(run), "-small -small/s -tracked -x.o",
               "all others, large tracked ones and small ignored ones, are in it");
    begin();
    shell("cd project; git init -q . 2>/dev/null; echo big >.gitignore; mkdir big; "
          "head -c 1000 /dev/zero >big/file");
    autoclose int at_limit = take(&report);
    tap_ok(!report.left_out.data, "an ignored directory of exactly the limit is in it");
    tap_ok(shell_status("ls -d record/checkpoints/clones 2>/dev/null") != 0, "as an object");
}

static void test_clones(void)
{
    struct checkpoint_report report;
    begin();
    clones = true;
    shell("cd project; git init -q . 2>/dev/null; echo big >.gitignore; mkdir -p big/more; "
          "head -c 2000 /dev/urandom >big/file; head -c 2000 /dev/urandom >big/more/file; "
          "ln -s file big/link; : >big/empty; cp -a . ../expected");
    autoclose int run = take(&report);
    tap_ok(!report.left_out.data, "where blocks can be shared, nothing is left out");
    tap_is_int(shell_status("test $(ls record/checkpoints/clones | wc -l) = 3"), 0,
               "large ignored files are clones");
    (void)await(is_older("big/empty"));
    (void)close(take(&report)); /* the files were young when they were cloned */
    shell("ls record/checkpoints/clones >one; echo x >project/x; cp -a project/x expected");
    autoclose int next = take(&report);
    tap_is_int(shell_status("ls record/checkpoints/clones | diff one -"), 0,
               "which the next checkpoint shares");
    shell("rm -rf project/big project/.gitignore");
    restore(run);
    tap_ok(is_as_expected(), "and which are restored");
}

static void test_masked(void)
{
    struct checkpoint_report report;
    struct brig_error err = {0};
    char path[PATH_LENGTH_MAX];
    autostr struct str masked = {0};
    int run = -1;
    begin();
    shell("cd project; mkdir -p secret a; echo s >secret/s; echo k >a/key; echo o >a/other");
    str_list_add(&masked, "secret");
    str_list_add(&masked, "a/key");
    struct checkpoint_root what = project(path);
    what.masked = &masked;
    tap_is_int(take_as(&what, 1000, &run, &report, &err), 0, "masked files: %s", err.message);
    tap_is_int(report.files, 1, "they are not in the checkpoint");
    tap_ok(!report.left_out.data, "which is not worth a message");
    shell("rm -r project/secret project/a");
    tap_is_str(told(run), "-a -a/other", "and are no changes");
    (void)close(run);
    what.masked = NULL;
    tap_is_int(take_as(&what, 1000, &run, &report, &err), 0, "without the mask: %s", err.message);
    tap_ok(!report.unchanged, "other masks are not the same checkpoint");
    (void)close(run);
}

static void test_single(void)
{
    struct checkpoint_report report;
    struct brig_error err = {0};
    char path[PATH_LENGTH_MAX];
    int run = -1;
    begin();
    shell("cd project; echo one >one; echo other >other");
    struct checkpoint_root what = project(path);
    what.only = "one";
    tap_is_int(take_as(&what, 1000, &run, &report, &err), 0, "a single file: %s", err.message);
    tap_is_int(report.files, 1, "only it is in the checkpoint");
    shell("cd project; echo changed >one; rm other");
    tap_is_str(told(run), "!one", "and in the changes");
    (void)close(run);
}

static void test_git_at_top(void)
{
    struct checkpoint_report report;
    struct brig_error err = {0};
    char path[PATH_LENGTH_MAX];
    int run = -1;
    begin();
    shell("cd project; git init -q . 2>/dev/null; cp -a . ../expected");
    struct checkpoint_root what = project(path);
    what.with_git = true;
    tap_is_int(take_as(&what, 1000, &run, &report, &err), 0, "with .git: %s", err.message);
    shell("rm -rf project/.git");
    restore(run);
    tap_is_int(shell_status("diff -r expected/.git project/.git"), 0,
               "the git directory at the top is restored if the run could write to it");
    (void)close(run);
}

static void test_damage(void)
{
    struct checkpoint_report report;
    struct brig_error err = {0};
    char path[PATH_LENGTH_MAX];
    int run = -1;
    begin();
    shell("echo x >project/x");
    (void)close(take(&report));
    shell("for f in record/checkpoints/*/manifest; do head -c 300 $f >cut; cat cut >$f; done");
    const struct checkpoint_root what = project(path);
    tap_ok(take_as(&what, 1000, &run, &report, &err) == BRIG_E_SYSTEM,
           "a damaged list is an error");
    tap_has_str(err.message, "damaged", "which says so");
    (void)close(run);
    const struct git none = {.user = {(uid_t)-1, (gid_t)-1}};
    const struct checkpoint_place at = {.record = record, .git = &none, .limit_bytes = 1};
    run = new_run();
    err = (struct brig_error){0};
    tap_is_int(checkpoint_take(&at, &what, run, 0, &report, &err), BRIG_E_NOT_FOUND,
               "without git there is no checkpoint");
    tap_has_str(err.message, "git is not installed", "and the message says why");
    (void)close(run);
}

/* Kills the process that takes a checkpoint, at many points; the next checkpoint works. */
static void test_killed(void)
{
    struct checkpoint_report report;
    int rounds = tap_rounds(12, 60), bad = 0;
    begin();
    shell("cd project; for i in $(seq 300); do echo $i >$i; done; cp -a . ../expected");
    for (int i = 0; i < rounds; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            (void)setpgid(0, 0);
            (void)take(&report);
            _exit(0);
        }
        runs++; /* the child has used the name */
        (void)setpgid(pid, pid);
        (void)usleep((useconds_t)(i * 60000 / rounds));
        (void)kill(-pid, SIGKILL);
        (void)process_wait(pid);
        shell("echo changed >>project/1; cp -a project/1 expected/1");
        bad += shell_status("test ! -d record/store.git || git -C record/store.git fsck --full "
                            ">/dev/null 2>&1") != 0;
    }
    tap_is_int(bad, 0, "after a kill at any point the store is sound");
    autoclose int run = take(&report);
    shell("rm -rf project/*");
    restore(run);
    tap_ok(is_as_expected(), "and the next checkpoint is complete");
    tap_is_int(shell_status("! ls record/store.git/objects/pack | grep tmp_"), 0,
               "nothing of the killed ones is left");
}

static void test_lost_store(void)
{
    struct checkpoint_report report;
    begin();
    shell("echo x >project/x; cp -a project expected");
    (void)close(take(&report));
    shell("rm -rf record/store.git");
    autoclose int run = take(&report);
    tap_is_int((long)report.stored, 1, "if the store was deleted, everything is stored again");
    shell("rm project/x");
    restore(run);
    tap_ok(is_as_expected(), "and restored");
}

/* A FIFO in place of a file that git would open. */
static void test_fifos(void)
{
    struct checkpoint_report report;
    begin();
    shell("cd project; git init -q . 2>/dev/null; mkdir sub; mkfifo sub/.gitignore; echo x >sub/x; "
          "git init -q nested 2>/dev/null; rm nested/.git/HEAD; mkfifo nested/.git/HEAD");
    (void)close(take(&report));
    tap_has_str(report.left_out.data, "sub/.gitignore", "a FIFO does not block a checkpoint");
    tap_has_str(report.left_out.data, "nested/.git/HEAD", "nor one in a nested repository");
    str_done(&report.left_out);
}

/* Files that would take too long are left out, not the whole checkpoint. */
static void test_large(void)
{
    struct checkpoint_report report;
    struct brig_error err = {0};
    char path[PATH_LENGTH_MAX];
    int run = -1;
    begin();
    shell("cd project; echo x >x; truncate -s 1T holes; { echo a; head -c 200000 /dev/zero; echo "
          "b; } "
          ">zeros; truncate -s 1M sparse; echo end >>sparse; cp x zeros sparse ..");
    run = take(&report);
    tap_is_str(report.left_out.data,
               "left out: holes (1 TiB); more than 1 GiB of holes would be stored\n",
               "a file of holes is left out");
    str_done(&report.left_out);
    shell("cd project; rm x zeros sparse; echo more >>holes");
    tap_is_str(told(run), "-sparse -x -zeros", "and it is not compared");
    restore(run);
    tap_is_int(shell_status("for i in x zeros sparse; do cmp $i project/$i; done"), 0,
               "the others are restored, also holes");
    (void)close(run);
    begin();
    shell("cd project; echo x >x; fallocate -l 700K a; fallocate -l 600K b; fallocate -l 100K c");
    const struct checkpoint_root what = project(path);
    const struct checkpoint_place at = {
        .record = record, .git = &git, .limit_bytes = 1000, .most_bytes = 1 << 20};
    run = new_run();
    (void)await(is_older("c"));
    tap_is_int(checkpoint_take(&at, &what, run, 0, &report, &err), 0, "%s", err.message);
    tap_is_str(report.left_out.data,
               "left out: b (600 KiB); more than 1 MiB would be read: --checkpoint does that\n",
               "an optional one leaves out what would take too long");
    str_done(&report.left_out);
    (void)close(run);
    run = new_run();
    tap_ok(checkpoint_take(&at, &what, run, 0, &report, &err) == 0 && !report.left_out.data &&
               report.stored == 1,
           "the next one reads it");
    (void)close(run);
}

static void test_top(void)
{
    struct checkpoint_report report;
    begin();
    shell("echo x >project/x; chmod 750 project");
    (void)await(is_older("x"));
    autoclose int run = take(&report);
    tap_is_str(told(run), "", "if the mode of the root is the same nothing has changed");
    autoclose int next = take(&report);
    tap_ok(report.unchanged, "and the next checkpoint finds that");
    shell("chmod 700 project");
    tap_is_str(told(next), "!", "another mode is a change of the root");
    autoclose int last = take(&report);
    tap_ok(!report.unchanged, "which the next checkpoint contains");
    tap_is_str(told(last), "", "so that it is no change then");
}

#define OBJECTS                                                                                    \
    "$(for i in record/store.git/objects/pack/*.idx; do git show-index <$i; done | wc -l)"

static void test_collect(void)
{
    struct checkpoint_report report;
    struct brig_error err = {0};
    begin();
    shell("head -c 100000 /dev/urandom >project/old; echo x >project/x; mkdir record/operations");
    int run = take(&report);
    shell("rm project/old; cp -a project expected");
    (void)await(is_older("x"));
    (void)close(take(&report));
    tap_is_int(checkpoint_collect(record, &git, &err), 0, "collecting: %s", err.message);
    tap_is_int(shell_status("test $(du -sk record/store.git | cut -f1) -lt 200 && "
                            "test " OBJECTS " = 1"),
               0, "what no run needs is removed");
    (void)close(run);
    autoclose int next = take(&report);
    tap_is_int((long)report.stored, 0, "the newest checkpoint stays");
    shell("rm project/x");
    restore(next);
    tap_ok(is_as_expected(), "and can be restored");
    shell("mkdir -p record/operations; mv run* record/operations/ 2>/dev/null; rm -rf project/*; "
          "head -c 1000 /dev/urandom >project/new");
    (void)close(take(&report));
    tap_is_int(checkpoint_collect(record, &git, &err), 0, "collecting again: %s", err.message);
    shell("echo x >project/x; cp -a expected/x project/x; rm project/new; rm project/x");
    tap_is_int(shell_status("test " OBJECTS " = 2"), 0, "a run in the log keeps its own");
}

/* What runs keep does not grow with the number of files, and goes when it is too old. */
static void test_small(void)
{
    struct brig_error err = {0};
    struct checkpoint_report report;
    begin();
    shell("mkdir record/operations; cd project; for i in $(seq 400); do echo $i "
          ">a-file-of-the-project-$i; "
          "done");
    (void)await(is_older("a-file-of-the-project-1"));
    (void)close(take(&report));
    shell("find record run* -type f -printf '%s\\n' | awk '{s+=$1} END {print s}' >size");
    for (int i = 0; i < 10; i++) {
        autoclose int run = take(&report);
        shell("echo more >>project/a-file-of-the-project-7");
        if (finish(run).modified != 1)
            tap_fail("a change is found");
    }
    tap_is_int(
        shell_status("test $(find record run* -type f -printf '%s\\n' | awk '{s+=$1} END {print "
                     "s}') -lt $(($(cat size) + 10 * 2500))"),
        0, "a run keeps what it has changed, not a list of all files");
    shell("mv run[0-9]* record/operations");
    tap_is_int(checkpoint_tidy(record, &git, &err), 0, "%s", err.message);
    tap_is_int(shell_status("test -e record/checkpoints/collected && test " OBJECTS " -gt 400"), 0,
               "nothing is collected the first time");
    shell("touch -d '2 days ago' record/checkpoints/collected; "
          "touch -d '40 days ago' record/operations/*/0.after; "
          "touch $(ls record/operations/*/0.after | head -n 3)");
    tap_is_int(checkpoint_tidy(record, &git, &err), 0, "%s", err.message);
    tap_is_int(shell_status("test $(ls record/operations/*/0.after | wc -l) = 3 && "
                            "test " OBJECTS " -lt 405"),
               0, "what a run kept long ago is collected, and what is younger stays");
    tap_is_int(shell_status("test $(find record/checkpoints/collected -mmin -1 | wc -l) = 1"), 0,
               "and the time is noted");
}

static void test_many_packs(void)
{
    struct checkpoint_report report;
    struct brig_error err = {0};
    struct store store;
    begin();
    for (int i = 0; i < 42; i++) {
        shell("echo more >>project/file");
        (void)close(take(&report));
    }
    tap_is_int(store_open(record, &git, false, &store, &err), 0, "the store opens");
    tap_is_int(store_tidy(&store, &err), 0, "packs are joined: %s", err.message);
    tap_is_int(shell_status("test $(ls record/store.git/objects/pack/*.pack | wc -l) -lt 10"), 0,
               "if there are many");
    store_done(&store);
    autoclose int run = take(&report);
    shell("cp -a project expected; rm project/file");
    restore(run);
    tap_ok(is_as_expected(), "and nothing is lost");
}

int main(void)
{
    struct brig_error err = {0};
    if (!mkdtemp(place) || git_find(&git, (const char *const *)environ, NULL,
                                    (struct git_user){(uid_t)-1, (gid_t)-1}, &err) < 0)
        tap_bail("%s", err.message);
    if (!git.program) {
        tap_skip("git is not installed", "checkpoints");
        return tap_done();
    }
    test_whole();
    test_unchanged();
    test_changes();
    test_quick_writes();
    test_left_out();
    test_clones();
    test_masked();
    test_single();
    test_git_at_top();
    test_damage();
    test_killed();
    test_lost_store();
    test_fifos();
    test_large();
    test_top();
    test_collect();
    test_small();
    test_many_packs();
    git_done(&git);
    shell("chmod -R u+rwX . && rm -rf \"$PWD\"");
    return tap_done();
}
