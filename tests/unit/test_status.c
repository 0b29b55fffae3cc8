/* SPDX-License-Identifier: MIT */
/* The changes of a layer for people: order, renames, ignored files, and the line at the end of a
 * run. With upper directories made by hand. */
#include "changes/show/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "changes/layer/layer.h"
#include "changes/show/renames.h"
#include "changes_support.h"
#include "git/git.h"
#include "tap.h"

static struct git git;

/* ---- making trees ---- */

static void put_link(const char *place, const char *path, const char *target)
{
    if (symlink(target, join(place, path)) < 0)
        tap_bail("cannot make '%s'", path);
}

static void put_whiteout(const char *path)
{
    put(upper, path, ""); /* makes its directory */
    if (unlink(join(upper, path)) < 0)
        tap_bail("cannot remove '%s'", path);
    make_whiteout(upper, path);
}

static void run_git(const char *const *words)
{
    autoclose int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autostr struct str says = {0};
    if (git_run(&git, &(struct git_call){.words = words, .dir = dir, .says = &says}, NULL) != 0)
        tap_bail("git %s: %s", words[0], says.data ? says.data : "");
}
#define GIT(...) run_git((const char *const[]){__VA_ARGS__, NULL})

/* ---- listing ---- */

static int list_item(void *context, const struct status_item *item, struct brig_error *err)
{
    static const char letters[] = "DTMPA";
    struct str *out = context;
    (void)err;
    str_appendf(out, "%c %s", letters[item->kind], item->path);
    if (item->target_before || item->target_after)
        str_concat(out, " ", item->target_before ? item->target_before : "", ">",
                   item->target_after ? item->target_after : "");
    if (item->renamed_from)
        str_concat(out, " from ", item->renamed_from);
    if (item->risk)
        str_concat(out, " !", item->risk);
    str_append(out, item->ignored ? " ignored\n" : "\n");
    return 0;
}

static int list_group(void *context, const struct status_group *group, struct brig_error *err)
{
    (void)err;
    str_appendf(context, "I %s%s %ju %ju%s%s\n", group->path, group->whole ? "/**" : "",
                (uintmax_t)group->files, (uintmax_t)group->bytes, group->risk ? " !" : "",
                group->risk ? group->risk : "");
    return 0;
}

static struct status_counts expect(const char *wanted, const char *sentence)
{
    struct layers layers;
    struct status *status = NULL;
    struct brig_error err = {0};
    struct status_counts counts = {0};
    autostr struct str out = {0};
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0 || layers.count != 1)
        tap_bail("%s", err.message);
    int result =
        status_collect(&layers.items[0], &(struct status_options){.git = &git}, &status, &err);
    if (result == 0)
        result = status_each(status, list_item, &out, &err);
    if (result == 0)
        result = status_each_group(status, list_group, &out, &err);
    tap_is_int(result, 0, "%s: no error %s", sentence, err.message);
    tap_is_str(out.data ? out.data : "", wanted, "%s", sentence);
    if (status)
        counts = *status_counts(status);
    status_free(status);
    layers_done(&layers);
    return counts;
}

/* ---- tests ---- */

static void sorts_by_kind(void)
{
    begin_trees();
    expect("", "nothing has changed");
    put(root, "a-modified", "one");
    put(upper, "a-modified", "two");
    put(root, "b-deleted", "b");
    put_whiteout("b-deleted");
    put(root, "c-type", "c");
    put_link(upper, "c-type", "c");
    put_link(root, "d-link", "old");
    put_link(upper, "d-link", "new");
    put(root, "e-mode", "e");
    put(upper, "e-mode", "e");
    char path[256];
    (void)snprintf(path, sizeof path, "%s/e-mode", upper);
    (void)chmod(path, 0600);
    put(upper, "A-added", "12345");
    put(upper, "Makefile", "all:");
    struct status_counts counts = expect("D b-deleted\n"
                                         "T c-type >c\n"
                                         "M a-modified\n"
                                         "M d-link old>new\n"
                                         "P e-mode\n"
                                         "A A-added\n"
                                         "A Makefile !runs when you build or test\n",
                                         "deletions and type changes come first");
    tap_is_int(counts.kinds[CHANGE_DELETED], 1, "one deleted");
    tap_is_int(counts.kinds[CHANGE_MODIFIED], 2, "two modified");
    tap_is_int(counts.kinds[CHANGE_ADDED], 2, "two added");
    tap_is_int(counts.risky, 1, "one flagged");
    tap_is_int(counts.bytes, 3 + 5 + 4, "bytes of added and modified files");
}

static void finds_renames(void)
{
    begin_trees();
    put(root, "old", "the contents");
    put(root, "other", "THE CONTENTS");
    put(root, "empty", "");
    put(root, "dir/in/one", "first");
    put(root, "dir/in/two", "second");
    put_whiteout("old");
    put_whiteout("other");
    put_whiteout("empty");
    put_whiteout("dir");
    put(upper, "a/new", "the contents");
    put(upper, "a/copy", "the contents");
    put(upper, "moved/one", "first");
    put(upper, "moved/two", "Second");
    put(upper, "nothing", "");
    expect("D dir\nD empty\nD old\nD other\n"
           "A a\nA a/copy from old\nA a/new\n"
           "A moved\nA moved/one from dir/in/one\nA moved/two\nA nothing\n",
           "an added file with the contents of a deleted one was renamed");
}

static void bounds_renames(void)
{
    begin_trees();
    char path[64], text[32];
    for (int i = 0; i < RENAMES_MAX + 10; i++) {
        (void)snprintf(path, sizeof path, "gone/%05d", i);
        (void)snprintf(text, sizeof text, "text %d", i);
        put(root, path, text);
    }
    put_whiteout("gone");
    put(upper, "first", "text 0");
    (void)snprintf(text, sizeof text, "text %d", RENAMES_MAX + 9);
    put(upper, "last", text);
    expect("D gone\nA first from gone/00000\nA last\n", "the number of candidates is bounded");
}

static void groups_ignored_files(void)
{
    begin_trees();
    GIT("init", "-q", ".");
    put(root, ".gitignore", "*.o\nbuild/\n/node_modules\n!keep.o\n");
    put(root, "src/a.c", "c");
    put(root, "node_modules/old/x.js", "x");
    put(upper, "src/a.o", "12");
    put(upper, "src/b.o", "345");
    put(upper, "src/keep.o", "6");
    put(upper, "src/deep/c.o", "7");
    put(upper, "src/z.o", "8");
    put(upper, "build/x/y", "90");
    put(upper, "build/z", "1");
    put(upper, "node_modules/new/y.js", "y");
    put(upper, "node_modules/old/z.js", "z");
    put(upper, "top.o", "t");
    put(upper, "plain", "p");
    put(upper, ":!magic", "m");
    /* Rules of the jail's own do not count. */
    put(upper, "sub/.gitignore", "*\n");
    put(upper, "sub/file", "f");
    struct status_counts counts =
        expect("A :!magic\n"
               "A build ignored\nA build/x ignored\nA build/x/y ignored\nA build/z ignored\n"
               "A node_modules/new ignored\n"
               "A node_modules/new/y.js !code of an installed package ignored\n"
               "A node_modules/old/z.js !code of an installed package ignored\n"
               "A plain\n"
               "A src/a.o ignored\nA src/b.o ignored\nA src/deep\nA src/deep/c.o ignored\n"
               "A src/keep.o\nA src/z.o ignored\n"
               "A sub\nA sub/.gitignore\nA sub/file\n"
               "A top.o ignored\n"
               "I build/** 2 3\n"
               "I node_modules/** 2 2 !code of an installed package\n"
               "I src/deep/c.o 1 1\n"
               "I src 3 6\n"
               "I top.o 1 1\n",
               "ignored files are grouped by directory");
    tap_is_int(counts.ignored, 9, "and counted");
}

static void survives_what_git_refuses(void)
{
    begin_trees();
    GIT("init", "-q", ".");
    put(root, ".gitignore", "*.o\n");
    GIT("update-index", "--add", "--cacheinfo",
        "160000,0123456789012345678901234567890123456789,mod");
    put(root, "mod/file", "m");
    put_link(root, "lnk", "elsewhere");
    put(upper, "a.o", "a");
    put(upper, "lnk/x.o", "l");
    put(upper, "mod/b.o", "b");
    put(upper, "mod/c.o", "c");
    put(upper, "z.o", "z");
    expect("T lnk elsewhere>\n"
           "A a.o ignored\nA lnk/x.o\nA mod/b.o\nA mod/c.o\nA z.o ignored\n"
           "I  2 2\n",
           "paths in a submodule and below a link are not asked about");
}

static void knows_no_repository(void)
{
    begin_trees();
    put(upper, "a.o", "a");
    put(upper, ".gitignore", "*\n");
    expect("A .gitignore\nA a.o\n", "without a repository nothing is ignored");
}

static void expect_line(int64_t since_ns, const char *wanted, const char *sentence)
{
    struct layers layers;
    struct brig_error err = {0};
    autostr struct str out = {0};
    if (layers_open(storage, "x", NULL, NULL, &layers, &err) < 0)
        tap_bail("%s", err.message);
    tap_is_int(status_line(&layers, since_ns, NULL, &out, &err), 0, "%s: no error %s", sentence,
               err.message);
    tap_is_str(out.data ? out.data : "", wanted, "%s", sentence);
    layers_done(&layers);
}

static void writes_a_line(void)
{
    char wanted[512];
    begin_trees();
    expect_line(0, "", "no line if nothing has changed");
    put(root, "modified", "one");
    put(upper, "modified", "other");
    put(upper, "new/file", "x");
    put(upper, "Makefile", "x");
    put(root, "gone/1", "1");
    put(root, "gone/2", "2");
    put_whiteout("gone");
    (void)snprintf(wanted, sizeof wanted,
                   "5 files changed in %s, 2 new, 2 deleted, 1 flagged; see brig status", root);
    expect_line(0, wanted, "files are counted, directories are not");
    int64_t now_ns = clock_wall_ns();
    expect_line(now_ns + 60 * CLOCK_SECOND_NS, "", "files that were changed before do not count");
    expect_line(now_ns - 3600 * CLOCK_SECOND_NS, wanted, "files that were changed since do");
}

int main(void)
{
    name_trees("status");
    const char *const environment[] = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", NULL};
    if (git_find(&git, environment, NULL, (struct git_user){-1U, -1U}, NULL) < 0 || !git.program)
        tap_bail("git is not installed");
    sorts_by_kind();
    finds_renames();
    bounds_renames();
    groups_ignored_files();
    survives_what_git_refuses();
    knows_no_repository();
    writes_a_line();
    git_done(&git);
    remove_trees();
    return tap_done();
}
